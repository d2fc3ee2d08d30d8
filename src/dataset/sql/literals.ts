/*
 * Reads the literals of a statement. The text is split into tokens as SQLite splits it, so that comments, quoted names
 * and texts that contain SQL are recognized. Which columns a statement reads is never derived from its text, because
 * SQLite reports that. The text only says which advertisers and which JSON paths the statement names.
 */

/** The text of a `LIKE` pattern, without the `%` at its start and end. Case is ignored. */
interface NamePattern {
  text: string;
  startsWithAny: boolean;
  endsWithAny: boolean;
}

/** The ids and names of the advertisers to which a `WHERE` condition limits the rows. */
interface AdvertiserCondition {
  /** Ids and names that must match exactly, in lower case. */
  texts: readonly string[];
  patterns: readonly NamePattern[];
}

/** The literals of an SQL statement that show which advertisers and fields it is about. */
export interface Literals {
  /** The condition on advertisers that every row meets. Undefined if the statement may read ads of any advertiser. */
  advertisers: AdvertiserCondition | undefined;
  /** The first field of each JSON path, e.g. `lastSeenAt` for `$.lastSeenAt`. */
  jsonFields: ReadonlySet<string>;
}

/** A token of an SQL statement: a text, a name or number in lower case, or an operator. */
interface Token {
  kind: 'text' | 'name' | 'operator';
  value: string;
}

/** Maximum number of tokens in a `WHERE` clause. A longer clause is not analyzed, as if it mentioned no advertiser. */
const maxConditionTokens = 1000;

/** Reads from an SQL statement which advertisers and JSON fields it is about. */
export function readLiterals(sql: string): Literals {
  const jsonFields = new Set<string>();
  const condition: Token[] = [];
  let selects = 0;
  let depth = 0;
  let isInCondition = false;
  let previous: Token | undefined;
  for (const token of readTokens(sql)) {
    if (token.kind === 'text') {
      const jsonField = isOperator(previous, '->', '->>') ? token.value : undefined;
      const pathField = readFirstField(token.value) ?? jsonField;
      if (pathField !== undefined) jsonFields.add(pathField);
    }
    previous = token;
    if (isWord(token, 'select')) selects++;
    if (isOperator(token, '(')) depth++;
    if (isOperator(token, ')')) depth--;
    if (depth === 0 && isWord(token, 'where')) isInCondition = true;
    else if (depth === 0 && isWord(token, 'group', 'having', 'window', 'order', 'limit')) isInCondition = false;
    else if (isInCondition && condition.length <= maxConditionTokens) condition.push(token);
  }
  // If there are several SELECTs, the condition of one of them does not limit the rows of the others.
  const isReadable = selects === 1 && condition.length <= maxConditionTokens;
  return { advertisers: isReadable ? readCondition(condition) : undefined, jsonFields };
}

/**
 * Determines to which advertisers a condition limits the rows. With `AND`, it is sufficient that one part limits them.
 * With `OR`, every part must limit them, because the remaining rows could belong to any advertiser.
 */
function readCondition(tokens: readonly Token[]): AdvertiserCondition | undefined {
  const alternatives = splitCondition(tokens, 'or');
  if (alternatives.length > 1) {
    const conditions = alternatives.map(readCondition);
    return conditions.includes(undefined) ? undefined : mergeConditions(conditions);
  }
  const parts = splitCondition(tokens, 'and');
  if (parts.length > 1) return mergeConditions(parts.map(readCondition));
  const innerTokens = removeParentheses(tokens);
  return innerTokens === undefined ? readComparison(tokens) : readCondition(innerTokens);
}

function mergeConditions(conditions: readonly (AdvertiserCondition | undefined)[]): AdvertiserCondition | undefined {
  const readableConditions = conditions.flatMap((condition) => condition ?? []);
  if (readableConditions.length === 0) return undefined;
  return {
    texts: readableConditions.flatMap(({ texts }) => texts),
    patterns: readableConditions.flatMap(({ patterns }) => patterns),
  };
}

/** Splits a condition at `AND` or `OR`, but not inside parentheses, `CASE … END` and `BETWEEN … AND …`. */
function splitCondition(tokens: readonly Token[], word: 'and' | 'or'): (readonly Token[])[] {
  const parts: Token[][] = [[]];
  let depth = 0;
  let isBetween = false;
  for (const token of tokens) {
    if (isOperator(token, '(') || isWord(token, 'case')) depth++;
    if (isOperator(token, ')') || isWord(token, 'end')) depth--;
    const endsBetween = depth === 0 && isBetween && isWord(token, 'and');
    if (depth === 0 && isWord(token, 'between')) isBetween = true;
    if (endsBetween) isBetween = false;
    if (depth === 0 && !endsBetween && isWord(token, word)) parts.push([]);
    else parts.at(-1)?.push(token);
  }
  return parts;
}

/** Returns the tokens inside a pair of parentheses. Returns undefined unless the parentheses enclose all tokens. */
function removeParentheses(tokens: readonly Token[]): readonly Token[] | undefined {
  if (!isOperator(tokens[0], '(')) return undefined;
  let depth = 0;
  for (const [index, token] of tokens.entries()) {
    if (isOperator(token, '(')) depth++;
    if (isOperator(token, ')')) depth--;
    if (depth === 0) return index === tokens.length - 1 ? tokens.slice(1, -1) : undefined;
  }
  return undefined;
}

/** Functions that may be applied to a name in a comparison. Also contains `IN`, because it looks like a function. */
const harmlessFunctions = ['lower', 'upper', 'trim', 'in'];
const comparisons = ['=', '==', 'in', 'like', 'is'];
const digits = /^\d+$/;

/**
 * Reads a comparison of the column `pageName` or `pageId` with literals, e.g. `lower(pageName) IN ('acme', 'bolt')`.
 * Returns undefined for any other expression.
 */
function readComparison(tokens: readonly Token[]): AdvertiserCondition | undefined {
  const isAboutAdvertiser = tokens.some((token) => isWord(token, 'pagename', 'pageid'));
  const usedComparisons = tokens.filter(({ kind, value }) => kind !== 'text' && comparisons.includes(value));
  const isHarmless = tokens.every((token, index) => {
    if (isWord(token, 'not', 'case', 'escape', 'glob', 'match', 'regexp', 'between', 'distinct')) return false;
    if (!isOperator(token, '(')) return token.kind !== 'operator' || ['=', '==', ')', ',', '.'].includes(token.value);
    const before = tokens[index - 1];
    return before?.kind !== 'name' || harmlessFunctions.includes(before.value);
  });
  if (!isAboutAdvertiser || !isHarmless || usedComparisons.length !== 1) return undefined;
  const literals = tokens.filter(({ kind, value }) => kind === 'text' || digits.test(value)).map(({ value }) => value);
  if (literals.length === 0) return undefined;
  if (usedComparisons[0]?.value !== 'like')
    return { texts: literals.map((literal) => literal.toLowerCase()), patterns: [] };
  // `LIKE` patterns are supported only for names, not for ids.
  if (tokens.some((token) => isWord(token, 'pageid'))) return undefined;
  const patterns = literals.flatMap((literal) => parseNamePattern(literal) ?? []);
  return patterns.length === 1 ? { texts: [], patterns } : undefined;
}

const isWord = (token: Token | undefined, ...words: string[]): boolean =>
  token?.kind === 'name' && words.includes(token.value);
const isOperator = (token: Token | undefined, ...operators: string[]): boolean =>
  token?.kind === 'operator' && operators.includes(token.value);

/** Returns the first field of a JSON path, e.g. `page` for `$.page.pageName`. Returns undefined for any other text. */
function readFirstField(text: string): string | undefined {
  const [, quoted, unquoted] = /^\$\.(?:"([^"]*)"|([^."[]+))/.exec(text) ?? [];
  return quoted ?? unquoted;
}

/**
 * Parses a `LIKE` pattern whose only wildcards are `%` at the start or end. Returns undefined for any other pattern.
 */
function parseNamePattern(pattern: string): NamePattern | undefined {
  const [, before = '', text = '', after = ''] = /^(%?)([^%_]+)(%?)$/.exec(pattern) ?? [];
  if (text === '') return undefined;
  return { text: text.toLowerCase(), startsWithAny: before !== '', endsWithAny: after !== '' };
}

/** Returns true if an advertiser's id or name meets a condition. */
export function includesAdvertiser(
  { texts, patterns }: AdvertiserCondition,
  { pageId, pageName }: { pageId: string | null; pageName: string | null },
): boolean {
  if ([pageId, pageName].some((text) => text !== null && texts.includes(text.toLowerCase()))) return true;
  return patterns.some((pattern) => matchesPattern(pageName ?? '', pattern));
}

/** Returns true if a name matches a `LIKE` pattern. */
function matchesPattern(name: string, { text, startsWithAny, endsWithAny }: NamePattern): boolean {
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
