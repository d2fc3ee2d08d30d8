import { maskPrefixedKeys } from './key-masking.ts';

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
type LogLevel = (typeof logLevels)[number];

/** One line per event, fields after the message. */
export type Log = Record<Exclude<LogLevel, 'silent'>, (message: string, fields?: Record<string, unknown>) => void>;

type FormatLine = (level: keyof Log, message: string, fields: Record<string, unknown>) => string;

/** Writes each event at or above `level` as one line. Never pass standard output: it belongs to the protocol. */
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

export const createLog = (level: LogLevel, write: (line: string) => void): Log =>
  createFilteredLog(level, write, (name, message, fields) => {
    const definedFields = Object.entries(fields).filter(([, value]) => value !== undefined);
    const details = definedFields.map(([key, value]) => ` ${key}=${JSON.stringify(value)}`);
    return `ad-library-mcp: ${name}: ${message}${details.join('')}`;
  });

/** One JSON object per line, for log collectors. */
export const createStructuredLog = (level: LogLevel, write: (line: string) => void, now: () => number): Log =>
  createFilteredLog(level, write, (name, msg, fields) =>
    JSON.stringify({ level: name, time: new Date(now()).toISOString(), name: 'ad-library-mcp', ...fields, msg }),
  );

export interface CallEvent {
  /** `unknown` if there is no such tool: its name is caller input. */
  tool: string;
  /** Never logged. */
  tenantId: string;
  /** The id of the caller's connection, if the caller signed in. Never logged. */
  connection?: string | undefined;
  ms: number;
  /** Why the call failed; `cancelled` if its caller left. */
  kind?: string | undefined;
  status?: number | undefined;
  requestId?: string | null | undefined;
  charged?: number | null | undefined;
  remaining?: number | null | undefined;
  cached?: boolean | undefined;
}

export type OnCall = (event: CallEvent) => void;

export const logCalls =
  (log: Log): OnCall =>
  ({ tenantId: _, connection: __, ...fields }) =>
    log.info('call', fields);

/** Control and invisible characters, but for line breaks, tabs and the return at the start of a progress line. */
const controlCharacters = /(?!^\r|[\n\t])[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** Writes characters that could steer a terminal as escapes of JSON, so that a line of JSON still means the same. */
export const escapeControlCharacters = (text: string): string =>
  text.replace(controlCharacters, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
