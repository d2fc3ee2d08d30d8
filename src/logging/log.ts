import { maskPrefixedKeys } from './key-masking.ts';

/** The log levels, from `debug`, which logs everything, to `silent`, which logs nothing. */
export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
type LogLevel = (typeof logLevels)[number];

/**
 * Returns true if a log with the minimum level `minLevel` contains events of `level`. For example, a log with `warn`
 * contains `error` events but no `info` events.
 */
export const isLogged = (level: keyof Log, minLevel: LogLevel): boolean =>
  logLevels.indexOf(level) >= logLevels.indexOf(minLevel);

/** A log with one method per level. Each call logs one event with a message and optional fields. */
export type Log = Record<Exclude<LogLevel, 'silent'>, (message: string, fields?: Record<string, unknown>) => void>;

/** Prints a status message, e.g. the URL of a started server. The log level does not apply to it. */
export type PrintStatus = (level: 'error' | 'warn' | 'info', message: string) => void;

/** Formats a log event as one line, without a line feed. */
type FormatLine = (level: keyof Log, message: string, fields: Record<string, unknown>) => string;

/**
 * Creates a log that writes each event at or above `minLevel` as one line. `write` must not write to standard output,
 * which carries MCP messages.
 */
function createFilteredLog(minLevel: LogLevel, write: (line: string) => void, formatLine: FormatLine): Log {
  const createLogMethod = (method: keyof Log): Log[keyof Log] =>
    isLogged(method, minLevel)
      ? (message, fields = {}) => write(maskPrefixedKeys(`${formatLine(method, message, fields)}\n`))
      : () => {};
  return {
    debug: createLogMethod('debug'),
    info: createLogMethod('info'),
    warn: createLogMethod('warn'),
    error: createLogMethod('error'),
  };
}

/** The formats of log lines: `text` for people, and `json` for programs that collect logs. */
export const logFormats = ['text', 'json'] as const;
export type LogFormat = (typeof logFormats)[number];

/** Formats a line for people, e.g. `ad-library-mcp: warn: message field="value"`. Leaves out undefined fields. */
const formatText: FormatLine = (level, message, fields) => {
  const definedFields = Object.entries(fields).filter(([, value]) => value !== undefined);
  const details = definedFields.map(([key, value]) => ` ${key}=${JSON.stringify(value)}`);
  return `ad-library-mcp: ${level}: ${message}${details.join('')}`;
};

interface LogOptions {
  /** The format of the log lines. Default: `text`. */
  format?: LogFormat | undefined;
  /**
   * Returns the time for the timestamps of JSON lines, in milliseconds since 1970. Without it, lines have no timestamp.
   */
  now?: () => number;
}

/**
 * Creates a log. Each event is a line for people (format `text`), or a line of JSON for programs that collect logs
 * (format `json`).
 */
export const createLog = (minLevel: LogLevel, write: (line: string) => void, { format, now }: LogOptions = {}): Log =>
  createFilteredLog(minLevel, write, format === 'json' ? createJsonFormat(now) : formatText);

const createJsonFormat =
  (now: LogOptions['now']): FormatLine =>
  (level, msg, fields) =>
    JSON.stringify({
      level,
      ...(now && { time: new Date(now()).toISOString() }),
      name: 'ad-library-mcp',
      ...fields,
      msg,
    });

/** Describes a finished tool call, for the log and the metrics. */
export interface CallEvent {
  /** The name of the tool. An unknown name becomes `unknown`, because the caller may have chosen any text. */
  tool: string;
  /** The id of the tenant (API key) that made the call. The log shows only a hash of it. */
  tenantId: string;
  /** The id of the sign-in connection, if the caller has signed in. Never logged. */
  connection?: string | undefined;
  /** How long the tool call took, in milliseconds. */
  ms: number;
  /** The reason why the call failed, e.g. `timeout`, or `cancelled` if the caller cancelled it. */
  kind?: string | undefined;
  /**
   * The part of this server's own storage that failed, e.g. `data`. If it is set, the service did not cause the
   * failure.
   */
  storage?: string | undefined;
  /** True if the response of the service has no documented error body. Another server may have sent it. */
  isUndocumented?: true | undefined;
  /** The HTTP status of the service's response, if there was one. */
  status?: number | undefined;
  requestId?: string | null | undefined;
  /** The charged credits. Null if the service did not report them. */
  charged?: number | null | undefined;
  remaining?: number | null | undefined;
  cached?: boolean | undefined;
}

/** The tool name under which the sign-in page reports that it has checked an API key. */
export const signInToolName = 'sign_in';

/** Called after each tool call, e.g. to log or count it. */
export type OnCall = (event: CallEvent) => void;

/**
 * Creates a handler that logs each tool call without the ids of the tenant (API key) and of the sign-in connection.
 * @param hashTenant returns the hash that is logged instead of the tenant id; without it, no hash is logged
 */
export const createCallLogger =
  (log: Log, hashTenant?: (tenantId: string) => string): OnCall =>
  ({ tenantId, connection: _, ...fields }) =>
    log.info('call', { ...fields, ...(hashTenant && { tenant: hashTenant(tenantId) }) });

/** The kinds of failures that the caller of a tool did not cause. The log warns the server's operator about them. */
const operatorFailures = new Set(['network', 'unavailable', 'unexpected_response', 'timeout']);
const isOperatorFailure = ({ kind, isUndocumented }: CallEvent): boolean =>
  isUndocumented === true || (kind !== undefined && operatorFailures.has(kind));
/** The minimum time between two warnings with the same message, in milliseconds. */
const warningIntervalMs = 60_000;

/**
 * Creates a function that logs a warning at most once a minute, however often it is called.
 * @param monotonicNow a monotonic clock, in milliseconds
 * @returns a function to call at each occurrence; `getFields` receives the number of occurrences since the last warning
 */
export function createRareWarning(log: Log, monotonicNow: () => number, message: string) {
  let occurrences = 0;
  let warnedAt = Number.NEGATIVE_INFINITY;
  return (getFields: (occurrences: number) => Record<string, unknown>): void => {
    occurrences++;
    if (monotonicNow() - warnedAt < warningIntervalMs) return;
    log.warn(message, getFields(occurrences));
    warnedAt = monotonicNow();
    occurrences = 0;
  };
}

/**
 * Creates a handler that warns if a call fails because of the service or because of this server's storage. Each of the
 * two warnings is logged at most once a minute.
 */
export function createFailureWarnings(log: Log, monotonicNow: () => number): OnCall {
  const warnOfServiceFailure = createRareWarning(
    log,
    monotonicNow,
    'the service fails; check AD_LIBRARY_BASE_URL if it has never answered',
  );
  const warnOfStorage = createRareWarning(
    log,
    monotonicNow,
    'the storage of this server fails; check the shared store or the data folder',
  );
  return (event) => {
    if (!isOperatorFailure(event)) return;
    const { kind, status, tool, storage } = event;
    const warn = storage === undefined ? warnOfServiceFailure : warnOfStorage;
    warn((failures) => ({ kind, storage, status, tool, failures }));
  };
}

/**
 * Creates a handler that remembers whether the service responded to the latest call.
 * @returns `getServiceState` returns `up` if it responded, `away` if it did not, and undefined before the first call
 */
export function trackServiceState(): { onCall: OnCall; getServiceState(): 'up' | 'away' | undefined } {
  let serviceState: 'up' | 'away' | undefined;
  return {
    onCall(event) {
      const { storage, requestId, status } = event;
      if (isOperatorFailure(event)) {
        if (storage === undefined) serviceState = 'away';
      } else if (requestId !== undefined || status !== undefined) serviceState = 'up';
    },
    getServiceState: () => serviceState,
  };
}

/**
 * Matches control characters and invisible characters, except line feeds, tabs, and a carriage return at the start of a
 * progress line.
 */
const controlCharacters = /(?!^\r|[\n\t])[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/**
 * Replaces characters that could control a terminal with JSON escapes, e.g. `\u001b`. JSON text keeps its meaning,
 * because a parser turns the escape back into the character.
 */
export const escapeControlCharacters = (text: string): string =>
  text.replace(controlCharacters, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
