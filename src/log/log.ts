export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
type LogLevel = (typeof logLevels)[number];

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

/** Anything shorter is not a secret, and may be a word in an ad. */
const minLength = 12;
/** The service may show this many characters to tell keys apart. */
const shownLength = 18;
/** A cut escape may stand between the last character of a cut key and the ellipsis. */
const escapeLength = 8;

const mask = '***';
/** Excludes quotes, so that masked text stays inside them. */
const WORD = /[^\s"]+/g;
/** The service's cursor inside one of ours, which encodes whatever it holds. */
const IN_CURSOR = /@[\d+]*\.[\w-]{11}=[\w-]{16,}/g;
/** The Kelvin sign is the one other character whose lower case is a letter of ASCII. */
const ESCAPED = String.raw`[%&\\\u212a]|@[\d+]*\.`;
const HIDDEN = /[^ -~]+/g;

/**
 * Masks a key in texts in which a service may have sent it back: whole or half of it, cut to fit, in another case,
 * escaped as in JSON, an address or HTML, and in base64 or hexadecimal; in field names, too. Expects texts that were
 * made safe, without hidden characters.
 */
export function keyMasker(key = ''): <Value>(value: Value) => Value {
  if (key.length < minLength) return (value) => value;
  const { holdsKey, masked } = spellingsOf(key);
  return (value) => (someText(value, holdsKey) ? mapTexts(value, masked) : value);
}

/**
 * Masks a key in what a service sent, before anything of it is kept, hidden characters or not. Looks for it once in the
 * whole body, and in each of its texts only where the body may hold it.
 */
export function keyRemover(key: string): <Value>(body: string, value: Value) => Value {
  if (key.length < minLength) return (_, value) => value;
  const { holdsKey, masked, parts, base64 } = spellingsOf(key);
  const isUsual = USUAL_KEY.test(key);
  const mayHold = (body: string): boolean => {
    const visible = holdsHidden(body) ? body.replace(KELVIN, 'k').replace(UNSEEN, '') : body;
    const lower = visible.toLowerCase();
    const isIn = parts.some((part) => lower.includes(part)) || base64.some((part) => visible.includes(part));
    return isIn || (isUsual ? leads.some((lead) => isEscapedIn(visible, lead)) : ANY_ESCAPE.test(visible));
  };
  const seen = (text: string) => text.replace(HIDDEN, '');
  const holds = (text: string) => holdsKey(text) || holdsKey(seen(text));
  const without = (text: string): string => {
    if (!holds(text)) return text;
    const words = masked(text).replace(WORD, (word) => (holdsKey(seen(word)) ? mask : word));
    return holds(words) ? mask : words;
  };
  return (body, value) => (mayHold(body) && someText(value, holds) ? mapTexts(value, without) : value);
}

/** What hidden characters begin with where JSON escapes them. */
const HIDDEN_IN_JSON = /\\u(?:00ad|034f|061c|1[17]|180|20[0-6]|212a|3164|f[ef]|ffa|d[bc])/i;
const HIDDEN_CHARACTER =
  /\u00ad|\u034f|\u061c|[\u115f-\u17b5]|[\u180b-\u180f]|[\u200b-\u206f]|\u212a|\u3164|[\ufe00-\ufe0f]|\ufeff|\uffa0|\udb40/;

const holdsHidden = (body: string): boolean =>
  (Buffer.byteLength(body) > body.length && HIDDEN_CHARACTER.test(body)) ||
  (body.includes(String.raw`\u`) && HIDDEN_IN_JSON.test(body));

/** Every escape begins with one of these, and goes on with one of those. */
const leads = [
  { lead: '%', next: '0123456789abcdefABCDEF' },
  { lead: '\\', next: 'uUxX-_.~%&' },
  { lead: '&', next: '#aApPbBlL' },
];

function isEscapedIn(body: string, { lead, next }: (typeof leads)[number]): boolean {
  for (let at = body.indexOf(lead); at >= 0; at = body.indexOf(lead, at + 1)) {
    if (!next.includes(body.charAt(at + 1))) continue;
    ESCAPED_WORD.lastIndex = at;
    if (ESCAPED_WORD.test(body)) return true;
  }
  return false;
}

/** All keys of the service are made of these. */
const USUAL_KEY = /^[\w.~-]+$/;
/** An escape of one of them, or of what begins an escape; in JSON, too. */
const ESCAPED_WORD = new RegExp(
  [
    String.raw`%(?:25)*(?:2[de]|3\d|[46][1-9a-f]|5[0-9af]|7[0-9ae]|5c)`,
    String.raw`\\(?:u\{?0*|x)(?:2[5de]|3\d|[46][1-9a-f]|5[0-9acf]|7[0-9ae])`,
    String.raw`\\[-_.~%&]`,
    String.raw`&(?:amp;)*#(?:x0*(?:2[56de]|3\d|[46][1-9a-f]|5[0-9acf]|7[0-9ae])(?![\da-f])|0*(?:3[78]|4[5-9]|5\d|6[5-9]|[7-9]\d|1[01]\d|12[0-6])(?!\d))`,
    '&(?:amp;)*(?:percnt|bsol|lowbar|period)',
    String.raw`(?:%(?:25)*26|\\(?:u\{?0*|x)26\}?)(?:[#%\\]|amp|percnt|bsol|lowbar|period)`,
  ].join('|'),
  'iy',
);
const ANY_ESCAPE = /[%&\\]/;
/** Characters that are no ASCII, escaped in JSON or not. */
const UNSEEN = /[^ -~]+|(?<!\\)\\+u(?!00[0-7])[\da-f]{4}/gi;

/** The one other character whose lower case is a letter of ASCII. */
const KELVIN = /\\u212a|\u212a/gi;

/** A key, and how it may be spelled. */
function spellingsOf(key: string) {
  const whole = key.toLowerCase();
  const start = whole.slice(0, minLength);
  const half = whole.slice(0, Math.max(shownLength, whole.length / 2));
  // The secret is what follows the prefix, which all keys share.
  const end = whole.slice(-Math.max(minLength, whole.length / 2));
  const hex = Buffer.from(key.slice(0, minLength)).toString('hex');
  const base64 = inBase64(key.slice(0, minLength));
  // Nearly no text has any of these, and looking for all of them at once is six times as fast as what follows.
  let suspicious: RegExp | undefined;
  const isSuspicious = (text: string): boolean => {
    suspicious ??= new RegExp([ESCAPED, ...[start, end, hex, ...base64].map(literal)].join('|'), 'i');
    return suspicious.test(text);
  };
  const isIn = (text: string): boolean => {
    const spelled = spelledOut(text);
    const plain = spelled.toLowerCase();
    if (plain.includes(end) || plain.includes(hex) || base64.some((part) => spelled.includes(part))) return true;
    for (let at = plain.indexOf(start); at >= 0; at = plain.indexOf(start, at + 1)) {
      const rest = plain.slice(at, at + whole.length + escapeLength);
      if (rest.startsWith(half) || rest.includes('…')) return true;
    }
    return false;
  };
  const holdsKey = (text: string): boolean =>
    text.length >= minLength &&
    isSuspicious(text) &&
    (isIn(text) || (text.match(IN_CURSOR) ?? []).some((cursor) => isIn(decoded(cursor))));
  const masked = (text: string): string => {
    if (!holdsKey(text)) return text;
    return text.replaceAll(key, mask).replace(WORD, (word) => (holdsKey(word) ? mask : word));
  };
  return { holdsKey, masked, parts: [start, end, hex], base64 };
}

const literal = (text: string) => text.replace(/[$()*+./?[\\\]^{|}]/g, String.raw`\$&`);

const decoded = (cursor: string) =>
  Buffer.from(cursor.slice(cursor.indexOf('=') + 1), 'base64url')
    .toString('latin1')
    .replace(HIDDEN, '');

/** A text in both alphabets of base64, wherever it stands in what is encoded: without what it shares with its neighbours. */
function inBase64(text: string): string[] {
  const bytes = Buffer.from(text);
  const aligned = [0, 1, 2].map((skipped) => bytes.subarray(skipped, bytes.length - ((bytes.length - skipped) % 3)));
  return [...new Set(aligned.flatMap((part) => [part.toString('base64'), part.toString('base64url')]))];
}

function someText(value: unknown, holds: (text: string) => boolean): boolean {
  if (typeof value === 'string') return holds(value);
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return value.some((item) => someText(item, holds));
  for (const name in value) if (holds(name) || someText((value as Record<string, unknown>)[name], holds)) return true;
  return false;
}

function mapTexts<Value>(value: Value, change: (text: string) => string): Value {
  if (typeof value === 'string') return change(value) as Value;
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, change)) as Value;
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, item]) => [change(name), mapTexts(item, change)]);
  return Object.fromEntries(entries) as Value;
}

/**
 * Undoes JSON escapes, percent codes and HTML entities, even if one escapes another. The result is for searching only:
 * it leaves out characters that are not ASCII.
 */
function spelledOut(text: string): string {
  let plain = text;
  let again = ESCAPE.test(text);
  for (let round = 0; again && round < maxRounds; round++) {
    again = false;
    plain = plain.replace(ESCAPES, (whole, ...groups) => {
      const character = unescaped(whole, groups);
      again ||= ESCAPE.test(character);
      return character;
    });
  }
  return plain;
}

/** Levels of different escapes inside each other; the same one repeated is undone in one round. */
const maxRounds = 4;

const ESCAPE = /[%&\\]/;
const ESCAPES = new RegExp(
  [
    String.raw`%(?:25)*([\da-f]{2})`,
    String.raw`(?<!\\)\\+(?:u([\da-f]{4})|u\{0*([\da-f]{1,4})\}|x([\da-f]{2})|([!-/:-@[\]-${'`'}{-~]))`,
    String.raw`&(?:amp;)*(?:#x0*([\da-f]{1,4});?|#0*(\d{1,4});?|(amp|apos|bsol|equals|gt|lowbar|lt|percnt|period|plus|quot|sol);)`,
  ].join('|'),
  'gi',
);

const ENTITIES: Record<string, string> = {
  amp: '&',
  apos: "'",
  bsol: '\\',
  equals: '=',
  gt: '>',
  lowbar: '_',
  lt: '<',
  percnt: '%',
  period: '.',
  plus: '+',
  quot: '"',
  sol: '/',
};

/** Empty if not ASCII: hidden characters would stand between others. */
function unescaped(whole: string, [percent, u, inBraces, x, sign, hex, decimal, name]: (string | undefined)[]): string {
  if (sign !== undefined) return sign;
  if (name !== undefined) return ENTITIES[name.toLowerCase()] ?? whole;
  const code =
    decimal === undefined ? Number.parseInt(percent ?? u ?? inBraces ?? x ?? hex ?? '', 16) : Number(decimal);
  return code < 0x80 ? String.fromCharCode(code) : '';
}

/** Keys of the service, whole or in part. None belongs in a log, wherever it came from. */
const secret = /\b(svc_[a-z]+_|Bearer\s+)[^\s"',;]+/gi;
const NOT_PLAIN = /[%&\\]|[^\n -~]/;
/** A word in a line of JSON, in which quotes inside a string have a backslash before them. */
const LOG_WORD = /(?:[^\s"\\]|\\.)+/g;

/** Masks keys in a log line, even escaped ones and those with hidden characters inside. */
export function masked(line: string): string {
  const spelled = NOT_PLAIN.test(line) ? line.replace(LOG_WORD, maskedWord) : line;
  return spelled.replace(secret, '$1***');
}

function maskedWord(word: string): string {
  const plain = spelledOut(word.replace(/[^ -~]+/g, ''));
  return plain !== word && plain.search(secret) >= 0 ? '***' : word;
}
