import { masked } from './mask-key.ts';

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

/** One line per event, fields after the message. */
export type Log = Record<Exclude<LogLevel, 'silent'>, (message: string, fields?: Record<string, unknown>) => void>;

/** Never pass it standard output: that belongs to the protocol. */
export function createLog(level: LogLevel, write: (line: string) => void): Log {
  const threshold = logLevels.indexOf(level);
  const at =
    (name: keyof Log) =>
    (message: string, fields: Record<string, unknown> = {}) => {
      if (logLevels.indexOf(name) < threshold) return;
      const known = Object.entries(fields).filter(([, value]) => value !== undefined);
      const details = known.map(([key, value]) => ` ${key}=${JSON.stringify(value)}`);
      write(masked(`ad-library-mcp: ${name}: ${message}${details.join('')}\n`));
    };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** One tool call that has ended. */
export interface CallEvent {
  /** `unknown` if there is no such tool: its name is caller input. */
  tool: string;
  /** Never logged. */
  tenantId: string;
  ms: number;
  /** Why it failed; `cancelled` if its caller left. */
  kind?: string | undefined;
  /** HTTP status of the service's error. */
  status?: number | undefined;
  requestId?: string | null | undefined;
  charged?: number | null | undefined;
  remaining?: number | null | undefined;
  cached?: boolean | undefined;
}

export type OnCall = (event: CallEvent) => void;

export const logCalls =
  (log: Log): OnCall =>
  ({ tenantId: _, ...fields }) =>
    log.info('call', fields);

/** Control and invisible characters, but for line breaks, tabs and the return at the start of a progress line. */
const hidden = /(?!^\r|[\n\t])[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/**
 * Writes characters that could steer a terminal as escapes. Those of JSON, so that a line of JSON still means the same.
 */
export const printable = (text: string): string =>
  text.replace(hidden, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );

/** One JSON object per line, for log collectors. Anything that looks like a key is masked. */
export async function createStructuredLog(level: LogLevel, write: (line: string) => void): Promise<Log> {
  // Loaded only where it is used: most processes serve one person.
  const { default: pino } = await import('pino');
  const logger = pino(
    {
      level,
      base: { name: 'ad-library-mcp' },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: ['key', 'apiKey', 'authorization', 'headers.authorization'],
    },
    { write: (line) => write(masked(line)) },
  );
  const at =
    (name: keyof Log): Log[keyof Log] =>
    (message, fields = {}) =>
      logger[name](fields, message);
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}
