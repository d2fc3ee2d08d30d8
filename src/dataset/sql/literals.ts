/*
 * Reads the literals of a statement. The text is split into tokens as SQLite splits it, so comments, names in quotes and
 * texts that contain SQL are told apart. What a statement reads is never derived from its text: SQLite reports the
 * columns, and the literals only say which advertisers and which paths in JSON the statement names.
 */

/** A text of a `LIKE` pattern, without the `%` at its ends. Upper and lower case do not matter. */
interface NamePattern {
  text: string;
  startsWithAny: boolean;
  endsWithAny: boolean;
}

/** The literals that say about which advertisers and fields a statement is. */
export interface Literals {
  /** Texts and long numbers that the statement compares with something, in lower case. */
  comparedTexts: ReadonlySet<string>;
  /** Patterns that the statement compares with `pageName`. */
  namePatterns: readonly NamePattern[];
  /** The first field of each path in JSON, such as `lastSeenAt` in `$.lastSeenAt`. */
  jsonFields: ReadonlySet<string>;
}

/** A token: a text, a name or number in lower case, or one or more characters of an operator. */
interface Token {
  kind: 'text' | 'name' | 'operator';
  value: string;
}

/** Long numbers may be ids of pages. Short numbers are limits and bounds. */
const minIdDigits = 5;
const maxNamePatterns = 20;

/** Reads the literals of a statement. Texts that a statement excludes, such as `<> 'Acme'`, are left out. */
export function readLiterals(sql: string): Literals {
  const tokens = listTokens(sql);
  const comparedTexts = new Set<string>();
  const jsonFields = new Set<string>();
  const namePatterns: NamePattern[] = [];
  /** For each open parenthesis, whether its contents are excluded. */
  const exclusions: boolean[] = [];
  const isWord = (index: number, ...words: string[]) =>
    tokens[index]?.kind === 'name' && words.includes(tokens[index].value);
  const isOperator = (index: number, ...operators: string[]) =>
    tokens[index]?.kind === 'operator' && operators.includes(tokens[index].value);
  for (const [index, { kind, value }] of tokens.entries()) {
    if (isOperator(index, '('))
      exclusions.push(exclusions.at(-1) === true || (isWord(index - 1, 'in') && isWord(index - 2, 'not')));
    if (isOperator(index, ')')) exclusions.pop();
    const isNumber = kind === 'name' && value.length >= minIdDigits && /^\d+$/.test(value);
    if (kind !== 'text' && !isNumber) continue;
    const jsonField = isOperator(index - 1, '->', '->>') ? value : undefined;
    const pathField = readFirstField(value) ?? jsonField;
    if (pathField !== undefined) jsonFields.add(pathField);
    if (exclusions.at(-1) || isOperator(index - 1, '<>', '!=') || isWord(index - 1, 'not')) continue;
    if (!isWord(index - 1, 'like')) comparedTexts.add(value.toLowerCase());
    else if (isWord(index - 2, 'pagename') || (isOperator(index - 2, ')') && isWord(index - 3, 'pagename'))) {
      const pattern = parseNamePattern(value);
      if (pattern && namePatterns.length < maxNamePatterns) namePatterns.push(pattern);
    }
  }
  return { comparedTexts, namePatterns, jsonFields };
}

/** Returns the first field of a path such as `$.page.pageName`. Returns undefined for any other text. */
function readFirstField(text: string): string | undefined {
  const [, quoted, plain] = /^\$\.(?:"([^"]*)"|([^."[]+))/.exec(text) ?? [];
  return quoted ?? plain;
}

/** Parses a pattern that has no wildcards but `%` at its ends. Returns undefined for any other pattern. */
function parseNamePattern(pattern: string): NamePattern | undefined {
  const [, before = '', text = '', after = ''] = /^(%?)([^%_]+)(%?)$/.exec(pattern) ?? [];
  if (text === '') return undefined;
  return { text: text.toLowerCase(), startsWithAny: before !== '', endsWithAny: after !== '' };
}

/** Returns whether a name matches a pattern. */
export function matchesPattern(name: string, { text, startsWithAny, endsWithAny }: NamePattern): boolean {
  const lowerName = name.toLowerCase();
  if (startsWithAny) return endsWithAny ? lowerName.includes(text) : lowerName.endsWith(text);
  return endsWithAny ? lowerName.startsWith(text) : lowerName === text;
}

/** Matches one token at `lastIndex`. The groups are a text, a name in quotes, a name or number, and an operator. */
const tokenPattern =
  /\s+|--[^\n]*|\/\*(?:[^*]|\*(?!\/))*(?:\*\/)?|[xX]'[^']*'|'((?:[^']|'')*)'?|"((?:[^"]|"")*)"?|`((?:[^`]|``)*)`?|\[([^\]]*)\]?|([\w$\u0080-\uffff]+)|(->>|->|<>|!=|==|<=|>=|\|\||[\s\S])/y;

/** Splits a statement into tokens, without spaces and comments. */
function listTokens(sql: string): Token[] {
  const tokens: Token[] = [];
  tokenPattern.lastIndex = 0;
  for (let match = tokenPattern.exec(sql); match !== null; match = tokenPattern.exec(sql)) {
    const [, text, doubleQuoted, backQuoted, bracketed, word, operator] = match;
    const name = doubleQuoted ?? backQuoted ?? bracketed ?? word;
    if (text !== undefined) tokens.push({ kind: 'text', value: text.replaceAll("''", "'") });
    else if (name !== undefined) tokens.push({ kind: 'name', value: name.toLowerCase() });
    else if (operator !== undefined) tokens.push({ kind: 'operator', value: operator });
  }
  return tokens;
}
