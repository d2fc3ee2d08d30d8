import { maskPrefixedKeys } from './key-masking.ts';

/** The log levels, from `debug`, which logs everything, to `silent`, which logs nothing. */
export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
type LogLevel = (typeof logLevels)[number];

/**
 * Returns true if a log whose minimum level is `minLevel` records events of `level`. For example, a `warn` log records
 * `error` events but no `info` events.
 */
export const isLogged = (level: keyof Logger, minLevel: LogLevel): boolean =>
  logLevels.indexOf(level) >= logLevels.indexOf(minLevel);

/** A logger with one method per level. A method call logs one event, which has a message and optional fields. */
export type Logger = Record<Exclude<LogLevel, 'silent'>, (message: string, fields?: Record<string, unknown>) => void>;

/** Prints a status message, e.g. the URL of a started server. Status messages are printed at every log level. */
export type PrintStatus = (level: 'error' | 'warn' | 'info', message: string) => void;

/** Formats a log event as one line, without the final line feed. */
type FormatLine = (level: keyof Logger, message: string, fields: Record<string, unknown>) => string;

/**
 * Creates a logger that writes each event at or above `minLevel` as one line. `writeLine` must not write to standard
 * output, because standard output carries MCP messages.
 */
function createFilteredLogger(minLevel: LogLevel, writeLine: (line: string) => void, formatLine: FormatLine): Logger {
  const createLogMethod = (level: keyof Logger): Logger[keyof Logger] =>
    isLogged(level, minLevel)
      ? (message, fields = {}) => writeLine(maskPrefixedKeys(`${formatLine(level, message, fields)}\n`))
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
/** The format of the log: text for people, or JSON for programs. */
export type LogFormat = (typeof logFormats)[number];

/** Formats a log event for people, e.g. `ad-library-mcp: warn: message field="value"`. Omits undefined fields. */
const formatTextLine: FormatLine = (level, message, fields) => {
  const definedFields = Object.entries(fields).filter(([, value]) => value !== undefined);
  const details = definedFields.map(([key, value]) => ` ${key}=${JSON.stringify(value)}`);
  return `ad-library-mcp: ${level}: ${message}${details.join('')}`;
};

interface LoggerOptions {
  /** The format of the log lines. Default: `text`. */
  format?: LogFormat | undefined;
  /**
   * Returns the time in milliseconds since 1970, for the timestamps of JSON lines. Without this function, lines have no
   * timestamp.
   */
  now?: () => number;
}

/**
 * Creates a logger that writes each event as one line: as text for people, or as JSON for programs that collect logs.
 */
export const createLogger = (
  minLevel: LogLevel,
  writeLine: (line: string) => void,
  { format, now }: LoggerOptions = {},
): Logger =>
  createFilteredLogger(minLevel, writeLine, format === 'json' ? createJsonLineFormatter(now) : formatTextLine);

const createJsonLineFormatter =
  (now: LoggerOptions['now']): FormatLine =>
  (level, msg, fields) =>
    JSON.stringify({
      level,
      ...(now && { time: new Date(now()).toISOString() }),
      name: 'ad-library-mcp',
      ...fields,
      msg,
    });

/** A finished tool call, as it is reported to the log and the metrics. */
export interface CallEvent {
  /** The name of the tool. An unknown name is replaced with `unknown`, because the caller may have sent any text. */
  tool: string;
  /** The id of the tenant (API key) that made the call. The log contains only a hash of this id. */
  tenantId: string;
  /** The id of the connection that the user created by signing in, if any. This id is never logged. */
  connection?: string | undefined;
  /** How long the tool call took, in milliseconds. */
  ms: number;
  /** The reason why the call failed, e.g. `timeout`, or `cancelled` if the caller cancelled the call. */
  kind?: string | undefined;
  /**
   * The part of this server's storage that failed, e.g. `data`. Set only if this server, not the service, caused the
   * failure.
   */
  storage?: string | undefined;
  /**
   * True if an error response does not match the API documentation of the service. A proxy may have sent this response.
   */
  isUndocumented?: true | undefined;
  /**
   * True if a tool that calls no API operation, e.g. `query_ads`, reached the deadline of its call without sending
   * anything. Such a timeout says nothing about the service.
   */
  isLocalTimeout?: true | undefined;
  /** The HTTP status of the service's response, if there was one. */
  status?: number | undefined;
  requestId?: string | null | undefined;
  /** The sum of the known charges of the call, in credits. Null if the service reported no charge. */
  charged?: number | null | undefined;
  remaining?: number | null | undefined;
  cached?: boolean | undefined;
}

/**
 * The tool name under which the log and the metrics record that the sign-in page has checked an API key. Such a check
 * is recorded like a tool call, although no tool has this name.
 */
export const signInToolName = 'sign_in';

/** Handles a finished tool call, e.g. logs or counts the call. */
export type OnCall = (event: CallEvent) => void;

/**
 * Creates a handler that logs each tool call, but omits the ids of the tenant (API key) and of the sign-in connection.
 * @param hashTenant returns the hash that is logged instead of the tenant id; without it, no hash is logged
 */
export const createCallLogger =
  (log: Logger, hashTenant?: (tenantId: string) => string): OnCall =>
  ({ tenantId, connection: _, ...fields }) =>
    log.info('call', { ...fields, ...(hashTenant && { tenant: hashTenant(tenantId) }) });

/**
 * The kinds of failures that are not the caller's fault. The log warns the operator of this server about such failures.
 */
const serverSideFailureKinds = new Set(['network', 'unavailable', 'unexpected_response', 'timeout']);
const isServerSideFailure = ({ kind, isUndocumented, isLocalTimeout }: CallEvent): boolean =>
  isUndocumented === true || (kind !== undefined && serverSideFailureKinds.has(kind) && !isLocalTimeout);
/**
 * The minimum time between two warnings with the same message, in milliseconds. It keeps a long outage from filling the
 * log.
 */
const warningIntervalMs = 60_000;

/**
 * Creates a function that logs a warning at most once a minute, however often the function is called.
 * @param monotonicNow returns the time of a clock that is never set back, in milliseconds
 * @returns a function to call at each occurrence; `getFields` receives the number of occurrences since the last warning
 */
export function createRateLimitedWarner(log: Logger, monotonicNow: () => number, message: string) {
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
 * Creates a handler that warns if a tool call fails because of the service or because of this server's storage. Each of
 * these two warnings is logged at most once a minute.
 */
export function createFailureWarner(log: Logger, monotonicNow: () => number): OnCall {
  const warnOfServiceFailure = createRateLimitedWarner(
    log,
    monotonicNow,
    'the service fails; check AD_LIBRARY_BASE_URL if it has never answered',
  );
  const warnOfStorageFailure = createRateLimitedWarner(
    log,
    monotonicNow,
    'the storage of this server fails; check the shared store or the data folder',
  );
  return (event) => {
    if (!isServerSideFailure(event)) return;
    const { kind, status, tool, storage } = event;
    const warn = storage === undefined ? warnOfServiceFailure : warnOfStorageFailure;
    warn((failures) => ({ kind, storage, status, tool, failures }));
  };
}

/**
 * Creates a tracker that records whether the service responded to the latest tool call. A call that the server answers
 * from stored data changes nothing, because it sends no request to the service.
 * @returns the handler for finished tool calls, and `getServiceState`, which returns `up` if the service responded,
 *   `away` if it did not, and undefined before the first call
 */
export function createServiceStateTracker(): { onCall: OnCall; getServiceState(): 'up' | 'away' | undefined } {
  let serviceState: 'up' | 'away' | undefined;
  return {
    onCall(event) {
      const { storage, cached, status } = event;
      if (isServerSideFailure(event)) {
        if (storage === undefined) serviceState = 'away';
      } else if (cached === false || status !== undefined) serviceState = 'up';
    },
    getServiceState: () => serviceState,
  };
}

/**
 * Matches control characters and invisible characters, except line feeds, tabs, and a carriage return at the start of a
 * text. Progress messages start with a carriage return to overwrite the previous message.
 */
const controlCharacterPattern = /(?!^\r|[\n\t])[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/**
 * Replaces characters that could control a terminal with JSON escapes, e.g. `\u001b`. JSON text keeps its meaning,
 * because a JSON parser converts the escapes back.
 */
export const escapeControlCharacters = (text: string): string =>
  text.replace(controlCharacterPattern, (character) =>
    character
      .split('')
      .map((codeUnit) => `\\u${codeUnit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
