import { AdLibraryError, type ErrorKind, type Failure, mayBeCharged } from '../api/errors.ts';
import { isGated, namesOf, tools } from '../tools/catalog.ts';
import type { Tool } from '../tools/define-tool.ts';
import { untrustedId, untrustedText, untrustedValue, untrustedWord } from './untrusted-text.ts';

/** What goes out instead of a result: MCP's tool error, `isError` and a text, never structured content. */
export interface Explanation {
  text: string;
  error: ErrorMeta;
}

/** `_meta["ad-library/error"]`: facts that are not known are left out. */
export interface ErrorMeta extends Record<string, unknown> {
  kind: ErrorKind;
  retryable: boolean;
  status?: number;
  requestId?: string;
}

/**
 * The only author of error texts. Texts of the service are quoted, as data; the rest never leaves the process.
 * @param offered the tools that its reader can call
 */
export function explainError(thrown: unknown, offered: readonly Tool[] = tools): Explanation {
  const failure: Failure = thrown instanceof AdLibraryError ? thrown.failure : { kind: 'internal' };
  const { problem, serviceMessage, usageLimit, requestId } = failure;
  const { retry, next } = explanationOf(failure);
  const lines = [
    happenedText(failure),
    problem,
    serviceMessage && `The service says: ${untrustedText(serviceMessage, 600)}`,
    detailsText(failure),
    usageLimit && windowsText(usageLimit),
    chargeText(failure),
    [retryTexts[retry], next, stillWorks(failure, offered)].filter(Boolean).join(' '),
    requestId && `Request id: ${untrustedWord(requestId)}`,
  ];
  return { text: lines.filter(Boolean).join('\n'), error: errorMeta(failure) };
}

type Retry = 'now' | 'later' | 'never' | 'atACost';

const retryTexts: Record<Retry, string> = {
  now: 'Trying again can help.',
  later: 'Trying again can help later, not now.',
  never: 'Trying the same call again cannot help.',
  atACost: 'Trying again can help, but may be charged a second time: ask the person first.',
};

/** What happened, whether the same call can succeed later, and what to do next, by kind. */
const explanations: Record<ErrorKind, { retry: Retry; happened: string; next: string }> = {
  no_api_key: {
    retry: 'never',
    happened: 'The server has no API key or no address of the service, so nothing was sent.',
    next: 'Set AD_LIBRARY_API_KEY and AD_LIBRARY_BASE_URL in the configuration of this MCP server and restart it, or set AD_LIBRARY_DEMO=true to try it on generated data. Keys are made in the developer portal. Do not put a key into the conversation.',
  },
  unauthorized: {
    retry: 'never',
    happened: 'The service does not accept the API key: it is wrong or was revoked.',
    next: 'Ask the person to check the key in the developer portal and in the configuration of this MCP server.',
  },
  payment_required: {
    retry: 'never',
    happened: 'The account has no credits left or no active subscription.',
    next: 'get_credits and get_account say which.',
  },
  forbidden: {
    retry: 'never',
    happened: 'The API key is valid but lacks the scope this call needs.',
    next: 'A key with that scope is made in the developer portal. Other tools may still work.',
  },
  not_found: {
    retry: 'never',
    happened: 'The service has nothing under this id.',
    next: 'Use an id as a search or a collection gave it: ad ids for get_ad, page ids for get_page, collection ids from list_collections.',
  },
  invalid_request: {
    retry: 'never',
    happened: 'The call was refused as invalid.',
    next: 'Correct it as said above and call again.',
  },
  usage_limit: {
    retry: 'later',
    happened: 'A usage limit is reached: the service gives out no more credits for now.',
    next: 'Until the window ends, calls that cost credits are answered here without being sent; as soon as get_credits shows it open they go out again.',
  },
  credit_budget: {
    retry: 'never',
    happened: 'The credit budget of this server would be passed, so the call was not sent and nothing was charged.',
    next: 'Ask the person whether to raise AD_LIBRARY_CREDIT_BUDGET in the configuration of this MCP server and restart it; do not work around it. What was asked before and is kept, and tools that cost no credits, still work.',
  },
  unavailable: {
    retry: 'now',
    happened: 'The service failed to answer the call.',
    next: 'Try again in a minute. If it stays so, the service has a problem of its own.',
  },
  unexpected_response: {
    retry: 'never',
    happened: 'The service gave an answer that its document does not describe, so it cannot be shown.',
    next: 'Check that AD_LIBRARY_BASE_URL is the address of the API and not of a web page or a proxy. If it is, report this to the service.',
  },
  network: {
    retry: 'now',
    happened: 'The service could not be reached.',
    next: 'Check AD_LIBRARY_BASE_URL and the network connection, then try again.',
  },
  timeout: {
    retry: 'now',
    happened: 'The service did not answer in time.',
    next: 'If it happens again, ask for less (a smaller limit) or later.',
  },
  busy: {
    retry: 'now',
    happened: 'This server has too many calls at once.',
    next: 'Try again in a few seconds.',
  },
  internal: {
    retry: 'never',
    happened: 'This server failed on its own account; the failure is in its log.',
    next: 'Another call may work. If it happens again, report it with what was called.',
  },
};

/** What is known of this failure in particular goes before what is true of its kind. */
function explanationOf(failure: Failure): (typeof explanations)[ErrorKind] {
  const { kind, usageLimit, creditsLeft, transient, gated, charged } = failure;
  const general = explanations[kind];
  if (kind === 'usage_limit' && usageLimit?.isLimitReached === false) return tightWindow;
  if (kind === 'credit_budget' && transient) return { ...general, ...budgetSetAside };
  if (kind === 'payment_required' && creditsLeft !== undefined) {
    return { ...general, happened: creditsLeft > 0 ? `${subscriptionNeeded} ${creditsLeft}.` : noCredits };
  }
  if (charged || (gated && mayBeCharged(failure))) return { ...general, retry: 'atACost' };
  return general;
}

const noCredits = 'The account has no credits left.';
const subscriptionNeeded =
  'The service asks for a subscription or for more credits than the account has; credits left:';
const budgetSetAside = {
  retry: 'later' as const,
  next: 'Credits are set aside for calls under way: when those have ended, this call may fit.',
};
const tightWindow = {
  retry: 'later' as const,
  happened: 'A usage limit would be passed: the call costs more than its window has left.',
  next: 'Ask for less now (a smaller limit), or for the same when the window has ended. Calls that cost as much are answered here without being sent until get_credits shows more room.',
};

/** What a caller without credits can do. */
function stillWorks({ kind }: Failure, offered: readonly Tool[]): string {
  if (kind !== 'payment_required' && kind !== 'usage_limit') return '';
  const names = namesOf(offered.filter((tool) => !isGated(tool)));
  return `Still working: ${[names, 'what was asked before and is kept'].filter(Boolean).join(', and ')}.`;
}

/** Details that only repeat what is said anyway are left to `_meta`. */
function detailsText({ details, serviceMessage = '', problem = '' }: Failure): string {
  const values: string[] = [];
  const text = JSON.stringify(untrustedValue(details, 600), (_, value) => {
    if (typeof value !== 'object') values.push(String(value));
    return value;
  });
  if (text === undefined) return '';
  const repeated = values.length > 0 && values.every((value) => `${serviceMessage} ${problem}`.includes(value));
  return repeated ? '' : `Details: ${untrustedText(text, 700)}`;
}

/** What the service sent goes into it made safe and bounded, as into any result. */
function errorMeta(failure: Failure): ErrorMeta {
  const { kind, status, code, requestId, usageLimit, details } = failure;
  const meta = {
    kind,
    retryable: !['never', 'atACost'].includes(explanationOf(failure).retry),
    status,
    code: code && untrustedId(code),
    requestId: requestId && untrustedId(requestId),
    usageLimit: usageLimit && untrustedValue(usageLimit, 300),
    details: untrustedValue(details, 600),
  };
  return Object.fromEntries(Object.entries(meta).filter(([, value]) => value !== undefined)) as ErrorMeta;
}

function happenedText(failure: Failure): string {
  const { kind, status, code, sent } = failure;
  const { happened } = explanationOf(failure);
  const words = kind === 'network' && sent !== false ? 'The connection failed before the answer was there.' : happened;
  const origin = [status && sent !== false && `HTTP ${status}`, code && untrustedWord(code)].filter(Boolean).join(', ');
  return origin ? `${words} (${origin})` : words;
}

function windowsText(limit: NonNullable<Failure['usageLimit']>): string {
  const { isLimitReached, limitType, hourlyCredits, hourlyLimit, dailyCredits, dailyLimit } = limit;
  const window = (name: string, used?: number, most?: number) =>
    used === undefined || most === undefined ? '' : `${name} window ${used} of ${most} credits used`;
  const windows = [window('hourly', hourlyCredits, hourlyLimit), window('daily', dailyCredits, dailyLimit)];
  const used = windows.filter(Boolean).join(', ');
  return [used && `Usage: ${used}.`, isLimitReached ? endsText(limitType) : opensText].filter(Boolean).join(' ');
}

/** The document says how windows are counted nowhere, so when one ends can only be estimated. */
function endsText(limitType: string | undefined): string {
  if (limitType !== 'hourly' && limitType !== 'daily') return '';
  const within = limitType === 'hourly' ? 'an hour' : 'a day';
  return `The ${limitType} window is full. It should end within ${within}; this is an estimate, the API does not say when.`;
}

const opensText = 'No window is full by itself.';

/** What a failed call cost is the first thing a person who pays asks. */
function chargeText(failure: Failure): string {
  const { charged, gated, writes, sent } = failure;
  if (charged) return `The service says it charged ${charged} credits for this call.`;
  if (sent === false) return 'Nothing was sent, nothing was charged.';
  if (!mayBeCharged(failure)) return '';
  if (writes) return 'Whether the item was saved is unknown. Saving it again is safe: twice keeps one.';
  return gated
    ? 'It is unknown whether the service charged for this call, so it was not sent a second time. A credit budget counts what it may have cost; get_credits shows the balance.'
    : '';
}
