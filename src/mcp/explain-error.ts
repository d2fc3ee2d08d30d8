import {
  AdLibraryError,
  type BaseUrlProblem,
  type ErrorKind,
  type ExceededLimit,
  type Failure,
  mayBeCharged,
} from '../api/errors.ts';
import { canCostCredits } from '../api/operations.ts';
import type { ParsedUsageLimit } from '../api/schemas.ts';
import type { ToolDescription } from '../tools/tool.ts';
import { sanitizeValue } from '../views/full-view.ts';
import { formatCount, formatCreditAmount } from '../views/numbers.ts';
import { joinNames } from '../views/safe-text.ts';
import { quoteId, quoteUntrustedText, sanitizeId } from '../views/tokens.ts';

/** The content of `_meta["ad-library/error"]` in a failed result. Fields without a value are omitted. */
interface ErrorMeta extends Record<string, unknown> {
  kind: ErrorKind;
  retryable: boolean;
  status?: number;
  requestId?: string;
}

/**
 * Explains an error to a model. Quotes text from the service, so that the model treats the text as data. Never shows
 * details of internal errors.
 * @param wasSent true if the tool call had sent a request before it failed
 * @param maxTextTokens the maximum number of tokens of the text; each quote from the service gets at most an eighth of
 * them
 */
export function explainError(
  thrownError: unknown,
  offeredTools: readonly ToolDescription[],
  { wasSent = false, maxTextTokens = Number.POSITIVE_INFINITY } = {},
) {
  const failure: Failure = thrownError instanceof AdLibraryError ? thrownError.failure : { kind: 'internal' };
  const { problem, serviceMessage, requestId, retryAfterSeconds } = failure;
  const usageLimit = failure.kind === 'usage_limit' ? failure.usageLimit : undefined;
  const { retry, nextStep } = findExplanation(failure);
  const maxQuoteTokens = Math.min(600, Math.floor(maxTextTokens / 8));
  const lines = [
    formatFailureText(failure),
    problem,
    serviceMessage && `The service says: ${quoteUntrustedText(serviceMessage, maxQuoteTokens)}`,
    formatDetails(failure, maxQuoteTokens),
    usageLimit && formatUsageWindows(usageLimit, failure),
    retryAfterSeconds && `The response asks to wait ${formatCount(retryAfterSeconds, 'second')} before the next call.`,
    formatCharge(failure, wasSent),
    [retryTexts[retry], nextStep, formatWorkingTools(failure, offeredTools)].filter(Boolean).join(' '),
    requestId && `Request id: ${quoteId(requestId)}`,
  ];
  return { text: lines.filter(Boolean).join('\n'), error: buildErrorMeta(failure, maxQuoteTokens) };
}

type RetryAdvice = 'now' | 'later' | 'never' | 'atACost' | 'ifUserAgrees';

const retryTexts: Record<RetryAdvice, string> = {
  now: 'Retrying may help.',
  later: 'Retrying may help later, but not now.',
  never: 'Retrying the same call will not help.',
  atACost: 'Retrying may help, but may be charged again: ask the user first.',
  ifUserAgrees: 'Repeat the call only if the user agrees.',
};

const explanations: Record<ErrorKind, { retry: RetryAdvice; failureText: string; nextStep: string }> = {
  no_api_key: {
    retry: 'never',
    failureText: 'The API key or the service address is not set.',
    nextStep:
      'Ask the user to set AD_LIBRARY_API_KEY and AD_LIBRARY_BASE_URL in this MCP server\'s configuration, or "API key" and "API address" in the host\'s form, and to restart it. To try this server with generated data, set AD_LIBRARY_DEMO=true ("Demo data"). Keys come from the developer portal. Never put a key into the conversation.',
  },
  unauthorized: {
    retry: 'never',
    failureText: 'The service rejected the API key: it is wrong or has been revoked.',
    nextStep: "Ask the user to check the key in the developer portal and in this MCP server's configuration.",
  },
  payment_required: {
    retry: 'never',
    failureText: 'The account has no credits left or no active subscription.',
    nextStep: 'get_credits and get_account show which of the two.',
  },
  forbidden: {
    retry: 'never',
    failureText: 'The API key is valid but lacks the scope this call needs.',
    nextStep: 'Create a key with that scope in the developer portal. Other tools may still work.',
  },
  not_found: {
    retry: 'never',
    failureText: 'The service has nothing with this id.',
    nextStep:
      'Use an id from an earlier result: ad ids for get_ad, page ids for get_page, collection ids from list_collections. If the service no longer has an ad that was read earlier, get_ad with seen: true returns it.',
  },
  invalid_request: {
    retry: 'never',
    failureText: 'The call is not valid.',
    nextStep: 'Correct it as described above and call again.',
  },
  usage_limit: {
    retry: 'later',
    failureText: 'A usage limit is reached: no more credits can be spent for now.',
    nextStep:
      'Until the window ends, this server rejects calls that cost credits without sending them; once get_credits shows room, it sends them again.',
  },
  credit_budget: {
    retry: 'never',
    failureText: "The call would exceed this server's credit budget.",
    nextStep:
      'Ask the user whether to raise AD_LIBRARY_CREDIT_BUDGET in this MCP server\'s configuration (in the host\'s form: "Credit budget") and restart it; do not work around it. Cached answers and tools that cost no credits still work.',
  },
  unavailable: {
    retry: 'now',
    failureText: 'The service failed to answer the call.',
    nextStep: 'Try again in a minute. If it keeps failing, the problem is on the side of the service.',
  },
  unexpected_response: {
    retry: 'never',
    failureText: 'The service sent an answer that does not match its API document, so it cannot be shown.',
    nextStep:
      'Check that AD_LIBRARY_BASE_URL is the address of the API, not of a web page or a proxy. If it is, report this to the service.',
  },
  network: {
    retry: 'now',
    failureText: 'The service could not be reached.',
    nextStep: 'Check AD_LIBRARY_BASE_URL and the network connection, then try again.',
  },
  timeout: {
    retry: 'now',
    failureText: 'The service did not answer in time.',
    nextStep: 'If it happens again, ask for less or try later.',
  },
  busy: {
    retry: 'now',
    failureText: 'This server is handling too many calls.',
    nextStep: 'Try again in a few seconds.',
  },
  internal: {
    retry: 'never',
    failureText: 'Internal server error; see the server log.',
    nextStep: 'Other calls may still work. If it happens again, report it together with the call.',
  },
};

function findExplanation(failure: Failure): (typeof explanations)[ErrorKind] {
  if (failure.storage) return storageExplanations[failure.storage];
  const generalExplanation = explanations[failure.kind];
  if (failure.isUndocumented && isCallerRejected(failure))
    return {
      ...generalExplanation,
      ...undocumentedRejectionExplanation,
      ...(failure.kind === 'usage_limit' && undocumentedUsageLimitExplanation),
    };
  switch (failure.kind) {
    case 'no_api_key':
      return failure.hasInvalidSettings ? invalidSettingsExplanation : generalExplanation;
    case 'usage_limit':
      if (failure.usageLimit?.isLimitReached !== false) return markCostlyRetry(failure, generalExplanation);
      return failure.wasSent === false
        ? insufficientWindowCreditsExplanation
        : markCostlyRetry(failure, unclearUsageLimitExplanation);
    case 'credit_budget':
      return { ...generalExplanation, ...explainExceededLimit(failure) };
    case 'payment_required': {
      const { remainingCredits } = failure;
      if (remainingCredits === undefined) return markCostlyRetry(failure, generalExplanation);
      return {
        ...generalExplanation,
        failureText: remainingCredits > 0 ? `${insufficientCreditsText} ${remainingCredits}.` : noCreditsText,
      };
    }
    case 'timeout':
      return failure.wasSent === false ? outOfTimeExplanation : markCostlyRetry(failure, generalExplanation);
    case 'unexpected_response': {
      const { isTooLarge, baseUrlProblem } = failure;
      // Do not suggest a retry, even if the call was charged, because every request to a wrong base URL fails.
      if (baseUrlProblem) return { ...generalExplanation, ...explainBaseUrlProblem(baseUrlProblem) };
      return markCostlyRetry(failure, { ...generalExplanation, ...(isTooLarge && tooLargeResponseExplanation) });
    }
    default:
      return markCostlyRetry(failure, generalExplanation);
  }
}

const markCostlyRetry = <Text extends { retry: RetryAdvice }>(failure: Failure, explanation: Text): Text =>
  failure.charged || (failure.isPaid && mayBeCharged(failure)) ? { ...explanation, retry: 'atACost' } : explanation;

function explainExceededLimit(exceededLimit: ExceededLimit) {
  if (exceededLimit.limit === 'tool call') return maxCreditsExplanation;
  if (exceededLimit.limit === 'confirmation')
    return exceededLimit.isAnswered ? declinedSpendingExplanation : explainUnansweredForm(exceededLimit);
  return {
    ...(exceededLimit.limit === 'connection' && connectionBudgetExplanation),
    ...(exceededLimit.isTransient && reservedCreditsExplanation),
  };
}

function explainBaseUrlProblem(baseUrlProblem: BaseUrlProblem) {
  const wrongUrlText = 'The address of the service (AD_LIBRARY_BASE_URL) is wrong.';
  if (baseUrlProblem.reason === 'endsInVersion')
    return {
      failureText: wrongUrlText,
      nextStep:
        'It ends in /v1, which this server adds itself. Ask the user to remove /v1 from its end and to restart this server.',
    };
  if (baseUrlProblem.reason === 'unknownPath')
    return {
      failureText: wrongUrlText,
      nextStep:
        'The server at this address does not know the path of this call. Ask the user to correct the address, and to restart this server.',
    };
  const { target } = baseUrlProblem;
  const redirect =
    target === undefined ? 'It redirects elsewhere' : `It redirects to ${quoteUntrustedText(target, 100)}`;
  return {
    failureText: wrongUrlText,
    nextStep: `${redirect}; redirects are not followed, because they could carry the API key to another service. Ask the user whether the service has moved, and to enter its new address only if they trust it.`,
  };
}

/** Returns true if the service rejected the caller or the API key, rather than the arguments of the call. */
const isCallerRejected = ({ kind }: Failure) =>
  kind === 'unauthorized' || kind === 'forbidden' || kind === 'usage_limit';

const undocumentedRejectionExplanation = {
  failureText: 'The server at the address of the service rejected the call.',
  nextStep:
    'A proxy or a firewall may have answered instead of the API. Ask the user to check AD_LIBRARY_BASE_URL first, and then the API key.',
};
const undocumentedUsageLimitExplanation = {
  nextStep:
    'A proxy or a firewall may limit the number of calls. Try again later. If it keeps failing, ask the user to check AD_LIBRARY_BASE_URL.',
};
const invalidSettingsExplanation = {
  retry: 'never' as const,
  failureText: 'Some settings of this server are wrong, so it makes no calls.',
  nextStep: "Ask the user to correct them in the host's form or in this MCP server's configuration, and to restart it.",
};
/** Explanations of errors in the storage of this server, by the part of the storage that failed. */
const storageExplanations = {
  data: {
    retry: 'now',
    failureText: 'This server could not use its stored data.',
    nextStep:
      'Try again in a minute. If it keeps failing, the problem is on the side of this server; its log says more.',
  },
  folder: {
    retry: 'later',
    failureText: 'This server cannot write the file.',
    nextStep:
      'Ask the user to make the folder writable, or to choose another one in AD_LIBRARY_FILES (in the host\'s form: "Folder for files").',
  },
  full: {
    retry: 'later',
    failureText: 'The storage of this server is full.',
    nextStep: 'Tell the user.',
  },
  lock: {
    retry: 'now',
    failureText: 'Another process of this server is using the folder.',
    nextStep: 'Try again in a few seconds.',
  },
  slot: {
    retry: 'now',
    failureText: 'Another call is reading the same ads.',
    nextStep: 'Try again when it has ended.',
  },
} as const;
const outOfTimeExplanation = {
  retry: 'now' as const,
  failureText: 'The time for the call was over before it was done.',
  nextStep: 'If it happens again, ask for less or try later.',
};
const tooLargeResponseExplanation = {
  failureText: 'The service sent an answer that is too large to be read.',
  nextStep:
    'Ask for fewer items in one call: with a lower limit, or with a lower maxAds for gather_ads, which then goes on from there. If the call asks for no list, check AD_LIBRARY_BASE_URL.',
};
const noCreditsText = 'The account has no credits left.';
const insufficientCreditsText = 'The call needs a subscription or more credits than the account has; credits left:';
const connectionBudgetExplanation = {
  failureText: 'The call would exceed the credit budget that the user gave this connection when they signed in.',
  nextStep:
    'Ask the user whether to connect this server again with a larger budget; do not work around it. Cached answers and tools that cost no credits still work.',
};
const maxCreditsExplanation = {
  failureText: 'The call may cost more than its maxCredits.',
  nextStep: 'Ask the user whether to call again with a higher maxCredits.',
};
const declinedSpendingExplanation = {
  failureText: 'The person declined to spend the credits of this call.',
  nextStep: 'Do not repeat the call, and do not work around this decision. Ask the user how to go on.',
};
const explainUnansweredForm = ({ costSentence }: { costSentence: string }) => ({
  retry: 'ifUserAgrees' as const,
  failureText: `The host showed a form about the price of this call, and nobody answered it. ${costSentence}`,
  nextStep:
    'Tell the user this price, and ask whether to repeat the call. A lower maxAds, maxCredits or limit costs less. If the host shows no form, this call fails again until the user raises AD_LIBRARY_CONFIRM_CREDITS ("Confirm credits") and restarts this server.',
});
const reservedCreditsExplanation = {
  retry: 'later' as const,
  nextStep: 'Credits are reserved for calls in progress: once those end, this call may fit.',
};
const insufficientWindowCreditsExplanation = {
  retry: 'later' as const,
  failureText: 'The call costs more credits than its usage window has left.',
  nextStep:
    'Ask for less now, or repeat the call when the window has ended. Until get_credits shows more room, this server rejects calls that cost as much without sending them.',
};

/** The explanation of a 429 of the service if `GET /v1/credits` reports that no limit is reached. */
const unclearUsageLimitExplanation = {
  retry: 'later' as const,
  failureText: 'The service rejected the call because of a usage limit, although neither usage window is full.',
  nextStep:
    'The call may cost more credits than a window has left, or there may be too many calls at once. Ask for less now, or repeat the call later.',
};

function formatWorkingTools({ kind, isUndocumented }: Failure, offeredTools: readonly ToolDescription[]): string {
  if (isUndocumented || (kind !== 'payment_required' && kind !== 'usage_limit')) return '';
  const names = joinNames(offeredTools.flatMap((tool) => (canCostCredits(tool) ? [] : tool.name)));
  return `Still working: ${[names, 'cached answers'].filter(Boolean).join(', and ')}.`;
}

/**
 * Formats the details of an error as text. Returns an empty string if the error message already contains all details.
 */
function formatDetails({ details, serviceMessage = '', problem = '' }: Failure, maxTokens: number): string {
  const detailValues: string[] = [];
  const detailsJson = JSON.stringify(sanitizeValue(details, maxTokens), (_, value) => {
    if (typeof value !== 'object') detailValues.push(String(value));
    return value;
  });
  if (detailsJson === undefined) return '';
  const isRepeated =
    detailValues.length > 0 && detailValues.every((value) => `${serviceMessage} ${problem}`.includes(value));
  return isRepeated ? '' : `Details: ${quoteUntrustedText(detailsJson, maxTokens + 100)}`;
}

function buildErrorMeta(failure: Failure, maxDetailsTokens: number): ErrorMeta {
  const { kind, status, code, requestId, retryAfterSeconds, details } = failure;
  const usageLimit = failure.kind === 'usage_limit' ? failure.usageLimit : undefined;
  const meta = {
    kind,
    retryable: ['now', 'later'].includes(findExplanation(failure).retry),
    status,
    code: code && sanitizeId(code),
    requestId: requestId && sanitizeId(requestId),
    retryAfterSeconds,
    usageLimit: usageLimit && sanitizeValue(usageLimit, 300),
    details: sanitizeValue(details, maxDetailsTokens),
  };
  return Object.fromEntries(Object.entries(meta).filter(([, value]) => value !== undefined)) as ErrorMeta;
}

function formatFailureText(failure: Failure): string {
  const { kind, status, code, wasSent } = failure;
  const { failureText } = findExplanation(failure);
  const shownText =
    kind === 'network' && wasSent !== false ? 'The connection failed before the answer arrived.' : failureText;
  const origin = [status && wasSent !== false && `HTTP ${status}`, code && quoteId(code)].filter(Boolean).join(', ');
  return origin ? `${shownText} (${origin})` : shownText;
}

function formatUsageWindows(limit: ParsedUsageLimit, { wasSent }: Failure): string {
  const { isLimitReached, limitType, hourlyCredits, hourlyLimit, dailyCredits, dailyLimit } = limit;
  const formatWindow = (name: string, used?: number, max?: number) =>
    used === undefined || max === undefined
      ? ''
      : `${name} window ${formatCreditAmount(used)} of ${formatCreditAmount(max)} credits used`;
  const windowTexts = [
    formatWindow('hourly', hourlyCredits, hourlyLimit),
    formatWindow('daily', dailyCredits, dailyLimit),
  ];
  const usageText = windowTexts.filter(Boolean).join(', ');
  // This server refuses a call only if the call costs more than a window has left. For a call that the service has
  // rejected, this is unknown.
  const unfilledText = wasSent === false ? noWindowIsFullText : '';
  // Calls that were sent since the last check may have used further credits.
  const usageTitle = wasSent === false ? 'Usage when last checked' : 'Usage';
  return [usageText && `${usageTitle}: ${usageText}.`, isLimitReached ? formatUsageLimitEnd(limitType) : unfilledText]
    .filter(Boolean)
    .join(' ');
}

/**
 * Formats the time at which an hourly or daily usage limit should end. The returned text calls this an estimate,
 * because the API document does not define when an hour or a day begins.
 */
function formatUsageLimitEnd(limitType: string | undefined): string {
  if (limitType !== 'hourly' && limitType !== 'daily') return '';
  const durationText = limitType === 'hourly' ? 'an hour' : 'a day';
  return `The ${limitType} window is full. It should end within ${durationText}; this is an estimate, because the API does not say.`;
}

const noWindowIsFullText = 'Neither window is full, but this call would exceed one.';

function formatCharge(failure: Failure, hasSentRequests: boolean): string {
  const { charged, isChargeShared, isPaid, changesData, wasSent, storage } = failure;
  const chargedCall = isChargeShared ? 'the request that this call shared with an identical call' : 'this call';
  if (charged) return `The service says it charged ${formatCreditAmount(charged)} credits for ${chargedCall}.`;
  // If the tool call sent earlier requests, return nothing here, because the receipt (what the call cost) states their
  // charges.
  if (wasSent === false || storage) return hasSentRequests ? '' : 'Nothing was sent, nothing was charged.';
  if (!mayBeCharged(failure)) return isPaid ? 'The service stated no charge.' : '';
  if (changesData && isPaid)
    return 'It is unknown whether the item was saved and charged. A collection holds an item only once, but saving it again may be charged again; get_credits shows the balance.';
  if (changesData)
    return 'It is unknown whether the item was saved. Saving it again is safe: a collection holds an item only once.';
  return isPaid
    ? 'It is unknown whether the service charged for this call, so it was not sent again. A credit budget counts what it may have cost; get_credits shows the balance.'
    : '';
}
