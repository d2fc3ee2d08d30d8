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
      : (message, fields = {}) => write(masked(`${line(name, message, fields)}\n`));
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

export const createLog = (level: LogLevel, write: (line: string) => void): Log =>
  logOf(level, write, (name, message, fields) => {
    const known = Object.entries(fields).filter(([, value]) => value !== undefined);
    const details = known.map(([key, value]) => ` ${key}=${JSON.stringify(value)}`);
    return `ad-library-mcp: ${name}: ${message}${details.join('')}`;
  });

/** One JSON object per line, for log collectors. */
export const createStructuredLog = (level: LogLevel, write: (line: string) => void, now: () => number): Log =>
  logOf(level, write, (name, msg, fields) =>
    JSON.stringify({ level: name, time: new Date(now()).toISOString(), name: 'ad-library-mcp', ...fields, msg }),
  );

/** One tool call that has ended. */
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
  ({ tenantId: _, connection: __, ...fields }) =>
    log.info('call', fields);

/** Control and invisible characters, but for line breaks, tabs and the return at the start of a progress line. */
const hidden = /(?!^\r|[\n\t])[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/**
 * Writes characters that could steer a terminal as escapes. The escapes are those of JSON, so that a line of JSON still
 * means the same.
 */
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
/** A cut escape may stand between the last character of a cut key and the ellipsis. */
const escapeLength = 8;

const mask = '***';
/** Excludes quotes, so that masked text stays inside them. */
const wordPattern = /[^\s"]+/g;

/**
 * Masks a key in what a service sent and in what leaves, names of fields included: the whole key, half of it, cut to
 * fit, in another case, with hidden characters inside, escaped as in JSON, an address or HTML. Looks for the key once in
 * the whole text, which may be the JSON of the value, and in each of the value's texts only where the whole may hold it.
 */
export function keyMasker(key = ''): <Value>(value: Value, text?: string) => Value {
  if (key.length < minLength) return (value) => value;
  const { mayHold, holds } = spellingsOf(key);
  const without = (text: string): string => {
    if (!holds(text)) return text;
    const words = text.replaceAll(key, mask).replace(wordPattern, (word) => (holds(word) ? mask : word));
    return holds(words) ? mask : words;
  };
  return (value, text) => (mayHold(text ?? textsIn(value).join('\n')) ? mapTexts(value, without) : value);
}

/** Characters of keys and of their escapes. */
const inKey = String.raw`[\w.~%&\\#;{}+/=-]`;
/** Invisible characters; those beyond the first plane by their second half. */
const hidden16 = String.raw`[\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]|[\ud82f\ud834\udb40-\udb43][\udc00-\udfff]`;
/**
 * Invisible characters between the characters of a key. Most texts are ASCII, which the engine checks first. The Kelvin
 * sign is a letter in lower case.
 */
const hiddenInKey = new RegExp(String.raw`[^\0-~](?:(?<=\u212a)|(?<=${hidden16})(?=${inKey})(?<=${inKey}[^ -~]*))`);

/** All keys of the service are made of these. */
const usualKey = /^[\w.~-]+$/;
/**
 * An escape of a key's character or of a sign that begins an escape, and in JSON of a hidden character. The engine
 * skips to the first such sign.
 */
const escapedWord = new RegExp(
  String.raw`[%&\\](?:${[
    String.raw`(?<=%)(?:25)*(?:2[de]|3\d|[46][1-9a-f]|5[0-9acf]|7[0-9ae]|26(?:[#%\\]|amp|percnt|bsol|lowbar|period))`,
    String.raw`(?<=\\)(?:[-_.~%&xbf]|u(?!00(?:2[0-46-9abcf]|3[a-f]|5[bde]|7[bcd])))`,
    String.raw`(?<=&)(?:amp;)*#(?:x0*(?:2[56de]|3\d|[46][1-9a-f]|5[0-9acf]|7[0-9ae])(?![\da-f])|0*(?:3[78]|4[5-9]|5\d|6[5-9]|[7-9]\d|1[01]\d|12[0-6])(?!\d))`,
    '(?<=&)(?:amp;)*(?:percnt|bsol|lowbar|period)',
  ].join('|')})`,
  'i',
);

type Spellings = ReturnType<typeof readSpellings>;

/** The spellings of the keys that were used last: to make them takes as long as to search for the key. */
const known = new Map<string, Spellings>();
const maxKnown = 100;

function spellingsOf(key: string): Spellings {
  const spellings = known.get(key) ?? readSpellings(key);
  if (known.size >= maxKnown) known.clear();
  known.set(key, spellings);
  return spellings;
}

/** The ways in which a key may be spelled. */
function readSpellings(key: string) {
  const whole = key.toLowerCase();
  const start = whole.slice(0, minLength);
  const half = whole.slice(0, Math.max(shownLength, whole.length / 2));
  // The secret is the part behind the prefix, which all keys share.
  const end = whole.slice(-Math.max(minLength, whole.length / 2));
  // One after the other: the engine skips most of a text if it looks for one of them only.
  const parts = [start, end].map((part) => new RegExp(literal(part), 'i'));
  const signs = [...parts, hiddenInKey, usualKey.test(key) ? escapedWord : escapes];
  const mayHold = (text: string): boolean => signs.some((sign) => sign.test(text));
  const isIn = (text: string): boolean => {
    const plain = spelledOut(seen(text)).toLowerCase();
    if (plain.includes(end)) return true;
    for (let at = plain.indexOf(start); at >= 0; at = plain.indexOf(start, at + 1)) {
      const rest = plain.slice(at, at + whole.length + escapeLength);
      if (rest.startsWith(half) || rest.includes('…')) return true;
    }
    return false;
  };
  const holds = (text: string): boolean => text.length >= minLength && mayHold(text) && isIn(text);
  return { mayHold, holds };
}

const literal = (text: string) => text.replace(/[$()*+./?[\\\]^{|}]/g, String.raw`\$&`);

/** The text without what may stand between the characters of a key. */
const seen = (text: string) => text.replaceAll('\u212a', 'k').replace(notSeen, '');
const notSeen = /[^ -~…]+/g;

function textsIn(value: unknown, texts: string[] = []): string[] {
  if (typeof value === 'string') {
    if (value.length >= minLength) texts.push(value);
  } else if (Array.isArray(value)) for (const item of value) textsIn(item, texts);
  else if (typeof value === 'object' && value !== null)
    for (const name in value) {
      if (name.length >= minLength) texts.push(name);
      textsIn((value as Record<string, unknown>)[name], texts);
    }
  return texts;
}

/** How deep a key is looked for: what is nested deeper is masked as a whole, since it was paid for and may not fail. */
const maxDepth = 1000;

/** Maps all texts of a value. Returns the value itself if nothing changes. */
function mapTexts<Value>(value: Value, change: (text: string) => string, depth = 0): Value {
  if (typeof value === 'string') return change(value) as Value;
  if (typeof value !== 'object' || value === null) return value;
  if (depth > maxDepth) return mask as Value;
  const own = value as Record<string, unknown>;
  const entries = Object.entries(own).map(([name, item]): [string, unknown] => [
    change(name),
    mapTexts(item, change, depth + 1),
  ]);
  if (entries.every(([name, item]) => Object.hasOwn(own, name) && own[name] === item)) return value;
  return (Array.isArray(value) ? entries.map(([_, item]) => item) : Object.fromEntries(entries)) as Value;
}

/**
 * Undoes JSON escapes, percent codes and HTML entities, even if one escapes another. The result is for searching only:
 * it leaves out characters that are not ASCII.
 */
function spelledOut(text: string): string {
  let plain = text;
  let again = escapes.test(text);
  for (let round = 0; again && round < maxRounds; round++) {
    again = false;
    plain = plain.replace(anyEscape, (whole, ...groups) => {
      const character = unescaped(whole, groups);
      again ||= escapes.test(character);
      return character;
    });
  }
  return plain;
}

/** Levels of different escapes inside each other; the same one repeated is undone in one round. */
const maxRounds = 4;

const escapes = /[%&\\]/;
const anyEscape = new RegExp(
  [
    String.raw`%(?:25)*([\da-f]{2})`,
    String.raw`(?<!\\)\\+(?:u([\da-f]{4})|u\{0*([\da-f]{1,4})\}|x([\da-f]{2})|([!-/:-@[\]-${'`'}{-~]))`,
    String.raw`&(?:amp;)*(?:#x0*([\da-f]{1,4});?|#0*(\d{1,4});?|(amp|apos|bsol|equals|gt|lowbar|lt|percnt|period|plus|quot|sol);)`,
  ].join('|'),
  'gi',
);

const entities: Record<string, string> = {
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

/**
 * Undoes one escape. The result is empty for a character that is not ASCII, because a hidden character would separate
 * others. The Kelvin sign is a letter.
 */
function unescaped(whole: string, [percent, u, inBraces, x, sign, hex, decimal, name]: (string | undefined)[]): string {
  if (sign !== undefined) return sign;
  if (name !== undefined) return entities[name.toLowerCase()] ?? whole;
  const code =
    decimal === undefined ? Number.parseInt(percent ?? u ?? inBraces ?? x ?? hex ?? '', 16) : Number(decimal);
  if (code === 0x212a) return 'k';
  return code < 0x7f && code >= 0x20 ? String.fromCharCode(code) : '';
}

/** Keys of the service, whole or in part. No key belongs in a log, wherever it came from. */
const secret = /\b(svc_[a-z]+_|Bearer\s+)[^\s"',;]+/gi;
const notPlain = /[%&\\]|[^\n -~]/;
/** A word in a line of JSON, in which quotes inside a string have a backslash before them. */
const logWord = /(?:[^\s"\\]|\\.)+/g;

/** Masks keys in a log line, even escaped ones and those with hidden characters inside. */
export function masked(line: string): string {
  const spelled = notPlain.test(line) ? line.replace(logWord, maskedWord) : line;
  return spelled.replace(secret, '$1***');
}

function maskedWord(word: string): string {
  const plain = spelledOut(seen(word));
  return plain !== word && plain.search(secret) >= 0 ? '***' : word;
}
