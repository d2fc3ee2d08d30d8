import { maskPrefixedKeys } from './key-masking.ts';

/** The log levels, from the most to the least detailed. */
export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
type LogLevel = (typeof logLevels)[number];

/** Returns whether a log of a level writes the events of a method. */
export const isLogged = (method: keyof Log, level: LogLevel): boolean =>
  logLevels.indexOf(method) >= logLevels.indexOf(level);

/** A log with one method for each level. Each call writes one event, with a message and optional fields. */
export type Log = Record<Exclude<LogLevel, 'silent'>, (message: string, fields?: Record<string, unknown>) => void>;

/** Formats one event as one line, without the line feed. */
type FormatLine = (level: keyof Log, message: string, fields: Record<string, unknown>) => string;

/**
 * Creates a log that writes each event at or above `level` as one line. `write` must not write to standard output, which
 * carries the messages of the MCP protocol.
 */
function createFilteredLog(level: LogLevel, write: (line: string) => void, formatLine: FormatLine): Log {
  const createMethod = (method: keyof Log): Log[keyof Log] =>
    isLogged(method, level)
      ? (message, fields = {}) => write(maskPrefixedKeys(`${formatLine(method, message, fields)}\n`))
      : () => {};
  return {
    debug: createMethod('debug'),
    info: createMethod('info'),
    warn: createMethod('warn'),
    error: createMethod('error'),
  };
}

/** The forms of log lines. */
export const logFormats = ['text', 'json'] as const;
type LogFormat = (typeof logFormats)[number];

/** Formats a line for people: `ad-library-mcp: level: message field=value …`. Fields with undefined values are left out. */
const formatText: FormatLine = (level, message, fields) => {
  const definedFields = Object.entries(fields).filter(([, value]) => value !== undefined);
  const details = definedFields.map(([key, value]) => ` ${key}=${JSON.stringify(value)}`);
  return `ad-library-mcp: ${level}: ${message}${details.join('')}`;
};

interface LogOptions {
  /** By default `text`. */
  format?: LogFormat | undefined;
  /** The clock for the times of JSON lines, in milliseconds since the epoch. Without it, the lines have no time. */
  now?: () => number;
}

/** Creates a log for people (`text`) or for log collectors (`json`, one object per line). */
export const createLog = (level: LogLevel, write: (line: string) => void, { format, now }: LogOptions = {}): Log =>
  createFilteredLog(level, write, format === 'json' ? createJsonFormat(now) : formatText);

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
  /** The name of the tool; `unknown` if no such tool exists. The name is input of the caller, so it is not logged then. */
  tool: string;
  /** Logged only as a hash. */
  tenantId: string;
  /** The id of the caller's connection, if the caller signed in. Never logged. */
  connection?: string | undefined;
  /** How long the call took, in milliseconds. */
  ms: number;
  /** Why the call failed; `cancelled` if the caller cancelled it. */
  kind?: string | undefined;
  /** The HTTP status of the service. */
  status?: number | undefined;
  requestId?: string | null | undefined;
  /** Charged credits; null if the service did not state them. */
  charged?: number | null | undefined;
  remaining?: number | null | undefined;
  cached?: boolean | undefined;
}

/** Receives each finished tool call. */
export type OnCall = (event: CallEvent) => void;

/**
 * Returns a handler that logs each call. The ids of the tenant and the connection are left out.
 * @param hashTenant returns what the log shows instead of the tenant id; by default nothing
 */
export const logCalls =
  (log: Log, hashTenant?: (tenantId: string) => string): OnCall =>
  ({ tenantId, connection: _, ...fields }) =>
    log.info('call', { ...fields, ...(hashTenant && { tenant: hashTenant(tenantId) }) });

/** The kinds of failures that an operator should know about, because callers do not cause them. */
const serviceFailures = new Set(['network', 'unavailable', 'unexpected_response', 'timeout']);
/** The time between two warnings of the same kind, in milliseconds. */
const warningIntervalMs = 60_000;

/**
 * Creates a function that writes a warning at most once a minute, however often its cause occurs.
 * @param elapsed a monotonic clock, in milliseconds
 * @returns a function for each occurrence. `getFields` receives the number of occurrences since the last warning
 */
export function createRareWarning(log: Log, elapsed: () => number, message: string) {
  let occurrences = 0;
  let warnedAt = Number.NEGATIVE_INFINITY;
  return (getFields: (occurrences: number) => Record<string, unknown>): void => {
    occurrences++;
    if (elapsed() - warnedAt < warningIntervalMs) return;
    log.warn(message, getFields(occurrences));
    warnedAt = elapsed();
    occurrences = 0;
  };
}

/** Returns a handler that warns of the first failure of the service, and then at most once a minute. */
export function warnOfFailures(log: Log, elapsed: () => number): OnCall {
  const warn = createRareWarning(log, elapsed, 'the service fails; check AD_LIBRARY_BASE_URL if it has never answered');
  return ({ kind, status, tool }) => {
    if (kind !== undefined && serviceFailures.has(kind)) warn((failures) => ({ kind, status, tool, failures }));
  };
}

/** Control characters and invisible characters, except line feeds, tabs, and the carriage return at the start of a progress line. */
const controlCharacters = /(?!^\r|[\n\t])[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/**
 * Replaces characters that could control a terminal by JSON escapes such as `\u001b`. A line of JSON keeps its meaning,
 * because a JSON parser reads the escape as the original character.
 */
export const escapeControlCharacters = (text: string): string =>
  text.replace(controlCharacters, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
