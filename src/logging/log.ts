import { maskPrefixedKeys } from './key-masking.ts';

/** The log levels, from the most to the least detailed. */
export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
type LogLevel = (typeof logLevels)[number];

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
    logLevels.indexOf(method) < logLevels.indexOf(level)
      ? () => {}
      : (message, fields = {}) => write(maskPrefixedKeys(`${formatLine(method, message, fields)}\n`));
  return {
    debug: createMethod('debug'),
    info: createMethod('info'),
    warn: createMethod('warn'),
    error: createMethod('error'),
  };
}

/** Creates a log for people: `ad-library-mcp: level: message field=value …`. Fields with undefined values are left out. */
export const createLog = (level: LogLevel, write: (line: string) => void): Log =>
  createFilteredLog(level, write, (name, message, fields) => {
    const definedFields = Object.entries(fields).filter(([, value]) => value !== undefined);
    const details = definedFields.map(([key, value]) => ` ${key}=${JSON.stringify(value)}`);
    return `ad-library-mcp: ${name}: ${message}${details.join('')}`;
  });

/** Creates a log for log collectors: one JSON object per line. */
export const createStructuredLog = (level: LogLevel, write: (line: string) => void, now: () => number): Log =>
  createFilteredLog(level, write, (name, msg, fields) =>
    JSON.stringify({ level: name, time: new Date(now()).toISOString(), name: 'ad-library-mcp', ...fields, msg }),
  );

/** Describes a finished tool call, for the log and the metrics. */
export interface CallEvent {
  /** The name of the tool; `unknown` if no such tool exists. The name is input of the caller, so it is not logged then. */
  tool: string;
  /** Never logged. */
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

/** Returns a handler that logs each call without the ids of the tenant and the connection. */
export const logCalls =
  (log: Log): OnCall =>
  ({ tenantId: _, connection: __, ...fields }) =>
    log.info('call', fields);

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
