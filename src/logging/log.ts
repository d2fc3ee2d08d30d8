import { LRUCache } from 'lru-cache';
import { hiddenInWord, sanitize } from '../views/safe-text.ts';

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
type LogLevel = (typeof logLevels)[number];

/** One line per event, fields after the message. */
export type Log = Record<Exclude<LogLevel, 'silent'>, (message: string, fields?: Record<string, unknown>) => void>;

type Line = (level: keyof Log, message: string, fields: Record<string, unknown>) => string;

/** Never pass standard output here: it belongs to the protocol. Anything that looks like a key is masked. */
function logOf(level: LogLevel, write: (line: string) => void, line: Line): Log {
  const at = (name: keyof Log): Log[keyof Log] =>
    logLevels.indexOf(name) < logLevels.indexOf(level)
      ? () => {}
      : (message, fields = {}) => write(maskKeys(`${line(name, message, fields)}\n`));
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

export const createLog = (level: LogLevel, write: (line: string) => void): Log =>
  logOf(level, write, (name, message, fields) => {
    const given = Object.entries(fields).filter(([, value]) => value !== undefined);
    const details = given.map(([key, value]) => ` ${key}=${JSON.stringify(value)}`);
    return `ad-library-mcp: ${name}: ${message}${details.join('')}`;
  });

/** One JSON object per line, for log collectors. */
export const createStructuredLog = (level: LogLevel, write: (line: string) => void, now: () => number): Log =>
  logOf(level, write, (name, msg, fields) =>
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
const hidden = /(?!^\r|[\n\t])[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** Writes characters that could steer a terminal as escapes of JSON, so that a line of JSON still means the same. */
export const printable = (text: string): string =>
  text.replace(hidden, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );

/** Anything shorter is not a secret, and may be a word in an ad. */
const minLength = 12;
/** The service may show this many characters to tell keys apart. */
const shownLength = 18;

const mask = '***';
/** Excludes quotes, so that masked text stays inside them. */
const wordPattern = /[^\s"]+/g;

/**
 * Masks a key in what a service sent and in what leaves, names of fields included: the whole key or half of it, in any
 * case, percent-encoded or JSON-escaped, with invisible characters inside. `json` is the value's own JSON, where it is
 * at hand: it is searched first, and the value's texts only if the key is in it.
 */
export function keyMasker(key = ''): MaskKey {
  if (key.length < minLength) return (value) => value;
  const masker = maskers.get(key) ?? maskerOf(key);
  maskers.set(key, masker);
  return masker;
}

type MaskKey = <Value>(value: Value, json?: string) => Value;

/** The patterns of a key that is in use: to compile them takes as long as to search an answer. */
const maskers = new LRUCache<string, MaskKey>({ max: 1000 });

function maskerOf(key: string): MaskKey {
  const half = key.slice(0, Math.max(shownLength, key.length / 2));
  // The secret is the part behind the prefix, which all keys share.
  const end = key.slice(-Math.max(minLength, key.length / 2));
  // One after the other: the engine skips most of a text if it looks for one of them only.
  const parts = [half, end].map((part) => new RegExp(part.replace(syntax, String.raw`\$&`), 'iu'));
  const codes = new RegExp(
    `%(?:${Array.from(new Set(key), (sign) => sign.charCodeAt(0).toString(16)).join('|')})`,
    'i',
  );
  const holdsPlain = (text: string): boolean => parts.some((part) => part.test(text));
  const isDisguised = (text: string): boolean => codes.test(text) || rareEscape.test(text) || hiddenInWord.test(text);
  const holds = (text: string): boolean => holdsPlain(text) || (isDisguised(text) && holdsPlain(spellOut(text)));
  const without = (text: string): string => {
    if (!holds(text)) return text;
    const words = text.replaceAll(key, mask).replace(wordPattern, (word) => (holds(word) ? mask : word));
    return holds(words) ? mask : words;
  };
  return (value, json = JSON.stringify(value) ?? '') =>
    holdsPlain(json) || isDisguised(json) ? mapTexts(value, without) : value;
}

const syntax = /[$()*+./?[\\\]^{|}]/g;

/** How deep a key is looked for: what is nested deeper is masked as a whole, since it was paid for and may not fail. */
const maxDepth = 1000;

/** Maps all texts of a value. Returns the value itself if nothing changes. */
function mapTexts<Value>(value: Value, change: (text: string) => string, depth = 0): Value {
  if (typeof value === 'string') return change(value) as Value;
  if (typeof value !== 'object' || value === null) return value;
  if (depth > maxDepth) return mask as Value;
  const object = value as Record<string, unknown>;
  const entries = Object.entries(object).map(([name, item]): [string, unknown] => [
    change(name),
    mapTexts(item, change, depth + 1),
  ]);
  if (entries.every(([name, item]) => Object.hasOwn(object, name) && object[name] === item)) return value;
  return (Array.isArray(value) ? entries.map(([_, item]) => item) : Object.fromEntries(entries)) as Value;
}

/** A percent code, or a JSON escape of one level or more. */
const escapes = /%([\da-f]{2})|(?<!\\)\\+(?:u([\da-f]{4}))?/gi;
/** A JSON escape that is not one of everyday copy. */
const rareEscape = /\\[^"nrt]/;

/** What a reader sees of a text once its escapes are undone. The result is for searching only. */
const spellOut = (text: string): string =>
  sanitize(
    text.replace(escapes, (_, percent = '', unit = percent) => unit && String.fromCharCode(Number.parseInt(unit, 16))),
  );

/** Keys of the service, whole or in part. No key belongs in a log, wherever it came from. */
const secret = /\b(svc_[a-z]+_|Bearer\s+)[^\s"',;\\]+/gi;
const notPlain = /[%\\]|[^\n -~]/;
/** A word in a line of JSON, in which quotes inside a string have a backslash before them. */
const logWord = /(?:[^\s"\\]|\\.)+/g;

/** Masks keys in a log line, even escaped ones and those with invisible characters inside. */
export function maskKeys(line: string): string {
  const spelled = notPlain.test(line) ? line.replace(logWord, maskedWord) : line;
  return spelled.replace(secret, '$1***');
}

function maskedWord(word: string): string {
  const plain = spellOut(word);
  return plain !== word && plain.search(secret) >= 0 ? mask : word;
}
