/*
 * Reads the literals of an SQL statement. The text is split into tokens in the same way as in SQLite, so that comments,
 * quoted names and texts that contain SQL are recognized. The columns that a statement reads are never derived from its
 * text, because SQLite reports them. The text only shows which advertisers and which JSON paths the statement names.
 */

/**
 * A `LIKE` pattern of SQL. `searchText` is the pattern in lower case without the `%` at its start and end, e.g. `acme`
 * for `%Acme%`.
 */
interface LikePattern {
  searchText: string;
  hasLeadingWildcard: boolean;
  hasTrailingWildcard: boolean;
}

/** The advertisers to which a `WHERE` condition limits the rows, by their ids or names. */
interface AdvertiserCondition {
  /** The texts that the id or name of a matching advertiser may be equal to, ignoring case. */
  exactValues: readonly string[];
  patterns: readonly LikePattern[];
}

/** The literals of an SQL statement, which show which advertisers and fields the statement is about. */
export interface StatementLiterals {
  /**
   * The condition that limits the rows to certain advertisers. Undefined if the statement may read ads of any
   * advertiser.
   */
  advertiserCondition: AdvertiserCondition | undefined;
  /** The first field of each JSON path, e.g. `lastSeenAt` for `$.lastSeenAt`. */
  jsonFields: ReadonlySet<string>;
}

/** A token of an SQL statement: a text, an operator, or a name or number in lower case. */
interface SqlToken {
  kind: 'text' | 'name' | 'operator';
  value: string;
}

/**
 * The maximum number of tokens in a `WHERE` clause. A statement with a longer clause is treated as if it named no
 * advertiser.
 */
const maxConditionTokens = 1000;

/** Returns the advertisers and the JSON fields that an SQL statement mentions. */
export function readStatementLiterals(sql: string): StatementLiterals {
  const jsonFields = new Set<string>();
  const conditionTokens: SqlToken[] = [];
  let selectCount = 0;
  let depth = 0;
  let isInCondition = false;
  let previousToken: SqlToken | undefined;
  for (const token of readSqlTokens(sql)) {
    if (token.kind === 'text') {
      const jsonField = isOperator(previousToken, '->', '->>') ? token.value : undefined;
      const pathField = readFirstJsonField(token.value) ?? jsonField;
      if (pathField !== undefined) jsonFields.add(pathField);
    }
    previousToken = token;
    if (isKeyword(token, 'select')) selectCount++;
    if (isOperator(token, '(')) depth++;
    if (isOperator(token, ')')) depth--;
    if (depth === 0 && isKeyword(token, 'where')) isInCondition = true;
    else if (depth === 0 && isKeyword(token, 'group', 'having', 'window', 'order', 'limit')) isInCondition = false;
    else if (isInCondition && conditionTokens.length <= maxConditionTokens) conditionTokens.push(token);
  }
  // If a statement contains several SELECTs, the condition of one SELECT does not limit the rows of the others.
  // Therefore ignore the conditions of such a statement.
  const canReadCondition = selectCount === 1 && conditionTokens.length <= maxConditionTokens;
  return { advertiserCondition: canReadCondition ? readAdvertiserCondition(conditionTokens) : undefined, jsonFields };
}

/**
 * Determines the advertisers to which a condition limits the rows. In a condition with `AND`, it is enough that one
 * part names advertisers. In a condition with `OR`, every part must name advertisers, because the other rows could
 * belong to any advertiser.
 */
function readAdvertiserCondition(tokens: readonly SqlToken[]): AdvertiserCondition | undefined {
  const alternatives = splitCondition(tokens, 'or');
  if (alternatives.length > 1) {
    const conditions = alternatives.map(readAdvertiserCondition);
    return conditions.includes(undefined) ? undefined : mergeConditions(conditions);
  }
  const requirements = splitCondition(tokens, 'and');
  if (requirements.length > 1) return mergeConditions(requirements.map(readAdvertiserCondition));
  const innerTokens = removeParentheses(tokens);
  return innerTokens === undefined ? readComparison(tokens) : readAdvertiserCondition(innerTokens);
}

function mergeConditions(conditions: readonly (AdvertiserCondition | undefined)[]): AdvertiserCondition | undefined {
  const readableConditions = conditions.flatMap((condition) => condition ?? []);
  if (readableConditions.length === 0) return undefined;
  return {
    exactValues: readableConditions.flatMap(({ exactValues }) => exactValues),
    patterns: readableConditions.flatMap(({ patterns }) => patterns),
  };
}

/** Splits a condition at each `AND` or `OR` that is not inside parentheses, `CASE … END` or `BETWEEN … AND …`. */
function splitCondition(tokens: readonly SqlToken[], operator: 'and' | 'or'): (readonly SqlToken[])[] {
  const conditionParts: SqlToken[][] = [[]];
  let depth = 0;
  let isInsideBetween = false;
  for (const token of tokens) {
    if (isOperator(token, '(') || isKeyword(token, 'case')) depth++;
    if (isOperator(token, ')') || isKeyword(token, 'end')) depth--;
    const isEndOfBetween = depth === 0 && isInsideBetween && isKeyword(token, 'and');
    if (depth === 0 && isKeyword(token, 'between')) isInsideBetween = true;
    if (isEndOfBetween) isInsideBetween = false;
    if (depth === 0 && !isEndOfBetween && isKeyword(token, operator)) conditionParts.push([]);
    else conditionParts.at(-1)?.push(token);
  }
  return conditionParts;
}

/** Returns the tokens inside a pair of parentheses, or undefined unless the parentheses enclose all tokens. */
function removeParentheses(tokens: readonly SqlToken[]): readonly SqlToken[] | undefined {
  if (!isOperator(tokens[0], '(')) return undefined;
  let depth = 0;
  for (const [index, token] of tokens.entries()) {
    if (isOperator(token, '(')) depth++;
    if (isOperator(token, ')')) depth--;
    if (depth === 0) return index === tokens.length - 1 ? tokens.slice(1, -1) : undefined;
  }
  return undefined;
}

/** The words that may precede a parenthesis in a simple comparison: `IN`, and functions that are applied to a name. */
const allowedWordsBeforeParenthesis = ['lower', 'upper', 'trim', 'in'];
const comparisonOperators = ['=', '==', 'in', 'like', 'is'];
const digitsPattern = /^\d+$/;

/**
 * Reads a comparison of the column `pageName` or `pageId` with literals, e.g. `lower(pageName) IN ('acme', 'bolt')`.
 * Returns undefined for any other expression.
 */
function readComparison(tokens: readonly SqlToken[]): AdvertiserCondition | undefined {
  const isAboutAdvertiser = tokens.some((token) => isKeyword(token, 'pagename', 'pageid'));
  const comparisonTokens = tokens.filter(({ kind, value }) => kind !== 'text' && comparisonOperators.includes(value));
  const isSimpleComparison = tokens.every((token, index) => {
    if (isKeyword(token, 'not', 'case', 'escape', 'glob', 'match', 'regexp', 'between', 'distinct')) return false;
    if (!isOperator(token, '(')) return token.kind !== 'operator' || ['=', '==', ')', ',', '.'].includes(token.value);
    const previousToken = tokens[index - 1];
    return previousToken?.kind !== 'name' || allowedWordsBeforeParenthesis.includes(previousToken.value);
  });
  if (!isAboutAdvertiser || !isSimpleComparison || comparisonTokens.length !== 1) return undefined;
  const literals = tokens
    .filter(({ kind, value }) => kind === 'text' || digitsPattern.test(value))
    .map(({ value }) => value);
  if (literals.length === 0) return undefined;
  if (comparisonTokens[0]?.value !== 'like')
    return { exactValues: literals.map((literal) => literal.toLowerCase()), patterns: [] };
  // `LIKE` is supported only for advertiser names, not for ids.
  if (tokens.some((token) => isKeyword(token, 'pageid'))) return undefined;
  const patterns = literals.flatMap((literal) => parseLikePattern(literal) ?? []);
  return patterns.length === 1 ? { exactValues: [], patterns } : undefined;
}

const isKeyword = (token: SqlToken | undefined, ...words: string[]): boolean =>
  token?.kind === 'name' && words.includes(token.value);
const isOperator = (token: SqlToken | undefined, ...operators: string[]): boolean =>
  token?.kind === 'operator' && operators.includes(token.value);

/** Returns the first field of a JSON path, e.g. `page` for `$.page.pageName`. Returns undefined for any other text. */
function readFirstJsonField(jsonPath: string): string | undefined {
  const [, quotedField, unquotedField] = /^\$\.(?:"([^"]*)"|([^."[]+))/.exec(jsonPath) ?? [];
  return quotedField ?? unquotedField;
}

/** Parses a `LIKE` pattern with `%` only at its start or end, e.g. `%acme`. Returns undefined for any other pattern. */
function parseLikePattern(pattern: string): LikePattern | undefined {
  const [, leadingWildcard = '', text = '', trailingWildcard = ''] = /^(%?)([^%_]+)(%?)$/.exec(pattern) ?? [];
  if (text === '') return undefined;
  return {
    searchText: text.toLowerCase(),
    hasLeadingWildcard: leadingWildcard !== '',
    hasTrailingWildcard: trailingWildcard !== '',
  };
}

/** Returns true if the id or the name of an advertiser meets a condition. */
export function isMatchingAdvertiser(
  { exactValues, patterns }: AdvertiserCondition,
  { pageId, pageName }: { pageId: string | null; pageName: string | null },
): boolean {
  if ([pageId, pageName].some((text) => text !== null && exactValues.includes(text.toLowerCase()))) return true;
  return patterns.some((pattern) => isLikeMatch(pageName ?? '', pattern));
}

/** Returns true if a name matches a `LIKE` pattern, ignoring case. */
function isLikeMatch(name: string, { searchText, hasLeadingWildcard, hasTrailingWildcard }: LikePattern): boolean {
  const lowerName = name.toLowerCase();
  if (hasLeadingWildcard) return hasTrailingWildcard ? lowerName.includes(searchText) : lowerName.endsWith(searchText);
  return hasTrailingWildcard ? lowerName.startsWith(searchText) : lowerName === searchText;
}

/**
 * Matches the next token of an SQL statement. The capturing groups are a text, a name in each kind of quotes, a name or
 * number without quotes, and an operator.
 */
const tokenPattern =
  /\s+|--[^\n]*|\/\*(?:[^*]|\*(?!\/))*(?:\*\/)?|[xX]'[^']*'|'((?:[^']|'')*)'?|"((?:[^"]|"")*)"?|`((?:[^`]|``)*)`?|\[([^\]]*)\]?|([\w$\u0080-\uffff]+)|(->>|->|<>|!=|==|<=|>=|\|\||[\s\S])/gy;

/** Yields the tokens of an SQL statement. Skips white space and comments. */
function* readSqlTokens(sql: string): Generator<SqlToken> {
  for (const [, text, doubleQuotedName, backQuotedName, bracketedName, unquotedName, operator] of sql.matchAll(
    tokenPattern,
  )) {
    const name = doubleQuotedName ?? backQuotedName ?? bracketedName ?? unquotedName;
    if (text !== undefined) yield { kind: 'text', value: text.replaceAll("''", "'") };
    else if (name !== undefined) yield { kind: 'name', value: name.toLowerCase() };
    else if (operator !== undefined) yield { kind: 'operator', value: operator };
  }
}
