import { pino } from 'pino';
import type { Log, LogLevel } from './log.ts';
import { masked } from './mask-key.ts';

/** One JSON object per line, for log collectors. Anything that looks like a key is masked. */
export function createStructuredLog(level: LogLevel, write: (line: string) => void): Log {
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
