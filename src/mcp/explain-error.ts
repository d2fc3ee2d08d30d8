import { AdLibraryError, type ErrorKind, type Failure } from '../api/errors.ts';
import { foreignText, foreignWord } from './foreign-text.ts';

/** What goes out instead of a result: MCP's tool error, `isError` and a text, never structured content. */
export interface Explanation {
  text: string;
  /** `_meta["ad-library/error"]`. */
  error: Record<string, unknown>;
}

/** What happened and what to do next, by kind; whether the same call can succeed later; and nothing else. */
const explanations: Record<ErrorKind, { retryable: boolean; happened: string; next: string }> = {
  no_api_key: {
    retryable: false,
    happened: 'The server has no API key or no address of the service, so nothing was sent.',
    next: 'Set AD_LIBRARY_API_KEY and AD_LIBRARY_BASE_URL in the configuration of this MCP server and restart it, or set AD_LIBRARY_DEMO=true to try it on generated data. Keys are made in the developer portal. Do not put a key into the conversation.',
  },
  unauthorized: {
    retryable: false,
    happened: 'The service does not accept the API key: it is wrong or was revoked.',
    next: 'Ask the person to check the key in the developer portal and in the configuration of this MCP server. Calling again with the same key cannot help.',
  },
  payment_required: {
    retryable: false,
    happened: 'The account has no credits left or no active subscription.',
    next: 'get_credits and get_account say which. whoami, get_account, get_credits, list_collections and add_collection_item are not gated by credits and still work.',
  },
  forbidden: {
    retryable: false,
    happened: 'The API key is valid but lacks the scope this call needs.',
    next: 'A key with that scope is made in the developer portal. Other tools may still work.',
  },
  not_found: {
    retryable: false,
    happened: 'The service has nothing under this id.',
    next: 'Use an id as a search or a collection gave it: ad ids for get_ad, page ids for get_page, collection ids from list_collections.',
  },
  invalid_request: {
    retryable: false,
    happened: 'The call was refused as invalid.',
    next: 'Correct it as said above and call again.',
  },
  usage_limit: {
    retryable: true,
    happened: 'A usage limit is reached: the credits of this hour or day are used up.',
    next: 'The call can work again when the window ends; calling again before that cannot. When it ends is not in the API: an hourly window lasts an hour at most. Tools that are not gated still work: whoami, get_account, get_credits, list_collections, add_collection_item.',
  },
  credit_budget: {
    retryable: false,
    happened: 'The credit budget of this server would be passed, so the call was not sent and nothing was charged.',
    next: 'Ask the person whether to raise AD_LIBRARY_CREDIT_BUDGET and restart the server. Tools that are not gated still work.',
  },
  unavailable: {
    retryable: true,
    happened: 'The service failed to answer the call.',
    next: 'Try again in a minute. If it stays so, the service has a problem of its own.',
  },
  unexpected_response: {
    retryable: false,
    happened: 'The service gave an answer that its document does not describe, so it cannot be shown.',
    next: 'Check that AD_LIBRARY_BASE_URL is the address of the API and not of a web page or a proxy. If it is, report the request id to the service.',
  },
  network: {
    retryable: true,
    happened: 'The service could not be reached.',
    next: 'Check AD_LIBRARY_BASE_URL and the network connection, then try again.',
  },
  timeout: {
    retryable: true,
    happened: 'The service did not answer in time.',
    next: 'Try again, or ask for less (a smaller limit).',
  },
  busy: {
    retryable: true,
    happened: 'This server has too many calls at once.',
    next: 'Try again in a few seconds.',
  },
  internal: {
    retryable: false,
    happened: 'This server failed on its own account; the failure is in its log.',
    next: 'Another call may work. If it happens again, report it with what was called.',
  },
};

/** The only author of error texts. Texts of the service are quoted, as data; the rest never leaves the process. */
export function explainError(thrown: unknown): Explanation {
  const failure: Failure = thrown instanceof AdLibraryError ? thrown.failure : { kind: 'internal' };
  const { retryable, happened, next } = explanations[failure.kind];
  const lines = [
    happened,
    failure.problem && detailOf(failure),
    failure.serviceMessage && `The service says: ${foreignText(failure.serviceMessage, 600)}`,
    detailsText(failure),
    failure.usageLimit && windowsText(failure.usageLimit),
    chargeText(failure),
    `Retry: ${retryable ? 'can help' : 'the same call will fail again'}. ${next}`,
    failure.requestId && `Request id: ${foreignWord(failure.requestId)}`,
  ];
  return { text: lines.filter(Boolean).join('\n'), error: errorMeta(failure, retryable) };
}

/** Our own words are shown as they are; what quotes an answer is somebody else's text. */
function detailOf({ kind, problem = '' }: Failure): string {
  return kind === 'unexpected_response' ? foreignText(problem, 600) : problem;
}

/** Details that only repeat what the message says are left to `_meta`. */
function detailsText({ details, serviceMessage = '' }: Failure): string {
  if (details === undefined) return '';
  const text = JSON.stringify(details);
  const words = text.match(/"[^"]+"(?!:)/g) ?? [];
  const repeated = words.length > 0 && words.every((word) => serviceMessage.includes(word.slice(1, -1)));
  return repeated ? '' : `Details: ${foreignText(text, 1000)}`;
}

function errorMeta(failure: Failure, retryable: boolean): Record<string, unknown> {
  const { kind, status, code, requestId, usageLimit, details } = failure;
  const meta = { kind, retryable, status, code, requestId, usageLimit, details };
  return Object.fromEntries(Object.entries(meta).filter(([, value]) => value !== undefined));
}

function windowsText(limit: NonNullable<Failure['usageLimit']>): string {
  const window = (name: string, used?: number, most?: number) =>
    used === undefined || most === undefined ? '' : `${name} window ${used} of ${most} credits used`;
  const windows = [
    window('hourly', limit.hourlyCredits, limit.hourlyLimit),
    window('daily', limit.dailyCredits, limit.dailyLimit),
  ];
  const full =
    limit.limitType === 'hourly' || limit.limitType === 'daily' ? ` The ${limit.limitType} one is full.` : '';
  return `Usage: ${windows.filter(Boolean).join(', ')}.${full}`;
}

/** What a failed call cost is the first thing a person who pays asks. */
function chargeText({ sent, charged, kind }: Failure): string {
  if (charged) return `The service says it charged ${charged} credits for this call.`;
  if (sent === false) return 'Nothing was sent, nothing was charged.';
  const unknown = sent === undefined && (kind === 'network' || kind === 'timeout');
  return unknown ? 'Whether the service charged for this call is unknown: get_credits shows the balance.' : '';
}
