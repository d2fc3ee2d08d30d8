/*
 * Reads the literals of a statement. The text is split into tokens as SQLite splits it, so comments, names in quotes and
 * texts that contain SQL are told apart. What a statement reads is never derived from its text: SQLite reports the
 * columns, and the literals only say which advertisers and which paths in JSON the statement names.
 */

/** The text of a `LIKE` pattern, without the `%` at its start and end. Case is ignored. */
interface NamePattern {
  text: string;
  startsWithAny: boolean;
  endsWithAny: boolean;
}

/** The literals of an SQL statement that show which advertisers and fields it is about. */
export interface Literals {
  /** Texts and long numbers that the statement compares with something, in lower case. */
  comparedTexts: ReadonlySet<string>;
  /** Patterns that the statement compares with `pageName`. */
  namePatterns: readonly NamePattern[];
  /** The first field of each JSON path, e.g. `lastSeenAt` for `$.lastSeenAt`. */
  jsonFields: ReadonlySet<string>;
}

/** A token of an SQL statement: a text, a name or number in lower case, or an operator. */
interface Token {
  kind: 'text' | 'name' | 'operator';
  value: string;
}

/** Minimum number of digits of a number that may be a page id. Shorter numbers are usually limits or bounds. */
const minIdDigits = 5;
const maxNamePatterns = 20;

/** Reads the literals of an SQL statement. Literals that a statement excludes, as in `<> 'Acme'`, are omitted. */
export function readLiterals(sql: string): Literals {
  const comparedTexts = new Set<string>();
  const jsonFields = new Set<string>();
  const namePatterns: NamePattern[] = [];
  /** For each open parenthesis, true if its content is excluded, as in `NOT IN (…)`. */
  const exclusions: boolean[] = [];
  // Keep only the three tokens before the current one, so that a long statement needs little memory.
  let previousTokens: readonly (Token | undefined)[] = [];
  for (const token of readTokens(sql)) {
    const { kind, value } = token;
    const [previous, second, third] = previousTokens;
    previousTokens = [token, previous, second];
    if (isOperator(token, '('))
      exclusions.push(exclusions.at(-1) === true || (isWord(previous, 'in') && isWord(second, 'not')));
    if (isOperator(token, ')')) exclusions.pop();
    const isNumber = kind === 'name' && value.length >= minIdDigits && /^\d+$/.test(value);
    if (kind !== 'text' && !isNumber) continue;
    const jsonField = isOperator(previous, '->', '->>') ? value : undefined;
    const pathField = readFirstField(value) ?? jsonField;
    if (pathField !== undefined) jsonFields.add(pathField);
    if (exclusions.at(-1) || isOperator(previous, '<>', '!=') || isWord(previous, 'not')) continue;
    if (!isWord(previous, 'like')) comparedTexts.add(value.toLowerCase());
    else if (isWord(second, 'pagename') || (isOperator(second, ')') && isWord(third, 'pagename'))) {
      const pattern = parseNamePattern(value);
      if (pattern && namePatterns.length < maxNamePatterns) namePatterns.push(pattern);
    }
  }
  return { comparedTexts, namePatterns, jsonFields };
}

const isWord = (token: Token | undefined, ...words: string[]): boolean =>
  token?.kind === 'name' && words.includes(token.value);
const isOperator = (token: Token | undefined, ...operators: string[]): boolean =>
  token?.kind === 'operator' && operators.includes(token.value);

/** Returns the first field of a JSON path, e.g. `page` for `$.page.pageName`. Returns undefined for any other text. */
function readFirstField(text: string): string | undefined {
  const [, quoted, plain] = /^\$\.(?:"([^"]*)"|([^."[]+))/.exec(text) ?? [];
  return quoted ?? plain;
}

/**
 * Parses a `LIKE` pattern whose only wildcards are `%` at the start or end. Returns undefined for any other pattern.
 */
function parseNamePattern(pattern: string): NamePattern | undefined {
  const [, before = '', text = '', after = ''] = /^(%?)([^%_]+)(%?)$/.exec(pattern) ?? [];
  if (text === '') return undefined;
  return { text: text.toLowerCase(), startsWithAny: before !== '', endsWithAny: after !== '' };
}

/** Returns true if a name matches a `LIKE` pattern. */
export function matchesPattern(name: string, { text, startsWithAny, endsWithAny }: NamePattern): boolean {
  const lowerName = name.toLowerCase();
  if (startsWithAny) return endsWithAny ? lowerName.includes(text) : lowerName.endsWith(text);
  return endsWithAny ? lowerName.startsWith(text) : lowerName === text;
}

/**
 * Matches one token of an SQL statement at a time. The groups are a text, a name in each kind of quotes, a name or
 * number, and an operator.
 */
const tokenPattern =
  /\s+|--[^\n]*|\/\*(?:[^*]|\*(?!\/))*(?:\*\/)?|[xX]'[^']*'|'((?:[^']|'')*)'?|"((?:[^"]|"")*)"?|`((?:[^`]|``)*)`?|\[([^\]]*)\]?|([\w$\u0080-\uffff]+)|(->>|->|<>|!=|==|<=|>=|\|\||[\s\S])/gy;

/** Yields the tokens of an SQL statement, without white space and comments. */
function* readTokens(sql: string): Generator<Token> {
  for (const [, text, doubleQuoted, backQuoted, bracketed, word, operator] of sql.matchAll(tokenPattern)) {
    const name = doubleQuoted ?? backQuoted ?? bracketed ?? word;
    if (text !== undefined) yield { kind: 'text', value: text.replaceAll("''", "'") };
    else if (name !== undefined) yield { kind: 'name', value: name.toLowerCase() };
    else if (operator !== undefined) yield { kind: 'operator', value: operator };
  }
}
