/**
 * Returns the names of the columns that certainly contain counts, such as `ads` in `count(*) AS ads`. In such a column,
 * a month, week or name without a row means zero.
 *
 * A column name alone proves nothing: `max(daysRunning) AS ads` is not a count. This function therefore analyzes the
 * SQL statement. It omits a column if `HAVING`, `LIMIT` or a condition on grouped rows may have removed rows, or if the
 * statement uses the name for several expressions.
 */
export function findCountColumns({ columns, sql = '', rowCount }: CountColumnsQuery): ReadonlySet<string> {
  const statement = removeCommentsAndLiterals(sql);
  if (/\bhaving\b|\boffset\b|\bover\b/i.test(statement) || mayHaveReachedLimit(statement, rowCount)) return new Set();
  if (filtersGroupedRows(statement, columns[0] ?? '')) return new Set();
  const aliases = listAliases(statement);
  return new Set(
    columns.filter((column) => {
      if (/^count\s*\(/i.test(column)) return true;
      const meanings = aliases.filter(({ name }) => name === column.toLowerCase());
      return meanings.length > 0 && meanings.every(({ isCount }) => isCount) && !isUsedInComparison(statement, column);
    }),
  );
}

/**
 * Returns true if the statement may leave out dates between the first and the last row, e.g. with
 * `WHERE startedMonth IN ('2026-01', '2026-04')`. A date without a row then does not mean zero. Returns false if all
 * conditions on dates compare them with a bound, e.g. `WHERE startedAt >= '2026-01-01'`.
 *
 * Returns true for every statement with `VALUES` or with a set operation such as `UNION`, because each of its parts can
 * select other dates.
 * @param axisColumn the name of the column that contains the dates
 */
export function canOmitDates(sql: string, axisColumn: string): boolean {
  const lowerCaseStatement = removeCommentsAndLiterals(sql).toLowerCase();
  const axisNames = [axisColumn.toLowerCase(), findSourceColumn(lowerCaseStatement)];
  if (/\b(?:union|intersect|except|values)\b/.test(lowerCaseStatement)) return true;
  const conditionsText = lowerCaseStatement
    // A condition in `FILTER (WHERE …)` decides which ads are counted, and removes no rows.
    .replace(/\bfilter\s*\(\s*where\b/g, ' ')
    .replace(/\bbetween\b/g, '>=')
    // Leave out groups without a date, e.g. `(language = 'de' OR language = 'fr')` and `strftime('%Y', 'now')`.
    .replace(/(?:\bstrftime\s*)?\([^()]*\)/g, (group) => (isConditionOnDate(group, axisNames) ? group : '()'));
  return [...conditionsText.matchAll(conditionClausePattern)].some(([clause]) => {
    const dateConditions = clause
      .split(/\b(?:and|or)\b/)
      .filter((condition) => isConditionOnDate(condition, axisNames));
    // With `OR`, two bounds can leave out the dates between them.
    if (dateConditions.length > 0 && /\bor\b/.test(clause)) return true;
    return dateConditions.some((condition) => !boundPattern.test(condition) || otherComparisonPattern.test(condition));
  });
}

/**
 * Returns the name that the first column of the outer SELECT has in the subquery or table, e.g. `bucket` in `SELECT
 * n.bucket AS month`. Returns an empty string if the column is an expression.
 */
const findSourceColumn = (statement: string): string =>
  /\bselect\s+(?:\w+\.)?(\w+)\b(?!\s*\()/i.exec(blankParentheses(statement))?.[1]?.toLowerCase() ?? '';

/** Returns true if a condition contains the column of the axis or another column with dates. */
const isConditionOnDate = (condition: string, axisNames: readonly string[]): boolean =>
  [...condition.matchAll(/\b[a-z_]\w*\b(?!\s*\()/g)].some(
    ([name]) => axisNames.includes(name) || (name !== 'current_date' && dateNamePattern.test(name)),
  );

/**
 * Matches the conditions after `WHERE`, or those of a join after `ON` or `USING`, up to the next clause or the end of the
 * statement.
 */
const conditionClausePattern =
  /\b(?:where|on|using)\b(?:(?!\b(?:where|on|using|join|group|order|limit|window|select)\b)[\s\S])*/g;
/** Matches names of date columns, in lower case. */
const dateNamePattern = /(?:startedat|seenat|gatheredat|date|month|week|day|year|quarter)$/;
/** Matches a comparison with a bound, or the condition that a date is known or unknown. */
const boundPattern = /[<>]|\bis\s+(?:not\s+)?null\b/;
/**
 * Matches comparisons that can leave out dates between others, and functions after which the order of dates is lost,
 * e.g. `strftime('%m', startedAt)`.
 */
const otherComparisonPattern =
  /<>|!=|(?<![<>])=|\bnot\b(?!\s+null\b)|\b(?:in|like|glob|regexp|match|strftime|length|instr)\b|\bsubstr(?:ing)?\s*\((?!\s*[\w.]+\s*,\s*1\s*,)/;

interface CountColumnsQuery {
  columns: readonly string[];
  sql?: string | undefined;
  rowCount: number;
}

/**
 * Removes comments and the contents of string literals from an SQL statement. Otherwise a text such as `'limit 5'`
 * could look like a keyword.
 */
const removeCommentsAndLiterals = (sql: string): string =>
  sql.replace(/--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'(?:[^']|'')*'/g, (match) => (match.startsWith("'") ? "''" : ' '));

/**
 * Returns true if a `LIMIT` in the SQL statement may have removed rows. Returns false only if every `LIMIT` is a plain
 * number greater than the number of result rows.
 */
const mayHaveReachedLimit = (statement: string, rowCount: number): boolean =>
  [...statement.matchAll(/\blimit\b\s*(\d+\b(?!\s*[,+*/-]))?/gi)].some(([, limit]) => !(Number(limit) > rowCount));

/**
 * Returns true if the outer SELECT filters the rows that a subquery has grouped, e.g. `SELECT month, ads FROM (SELECT …
 * GROUP BY 1) WHERE meanDays > 30`. A month without a row may then have ads. Ignores conditions on the axis column,
 * also under its name in the subquery, e.g. `n.month` in `SELECT n.month AS m`.
 */
function filtersGroupedRows(statement: string, axisColumn: string): boolean {
  const outerStatement = blankParentheses(statement);
  if (/\bgroup\s+by\b|\bcount\s*\(/i.test(outerStatement)) return false;
  const whereIndex = outerStatement.search(/\bwhere\b/i);
  if (whereIndex < 0) return false;
  const conditionStart = whereIndex + 'where'.length;
  const conditionLength = outerStatement.slice(conditionStart).search(/\b(?:order|limit)\b|$/i);
  const condition = statement.slice(conditionStart, conditionStart + conditionLength).toLowerCase();
  const ignoredNames = new Set([axisColumn.toLowerCase(), findSourceColumn(statement), ...conditionKeywords]);
  return [...condition.matchAll(/\b[a-z_]\w*\b(?!\s*[.(])/g)].some(([name]) => !ignoredNames.has(name));
}

const conditionKeywords = ['and', 'or', 'not', 'is', 'null', 'between', 'in', 'like'];

/** Replaces all texts in parentheses with spaces, so that only the outer SELECT remains and keeps its indexes. */
function blankParentheses(statement: string): string {
  let depth = 0;
  let outerStatement = '';
  for (const character of statement.split('')) {
    if (character === ')') depth--;
    outerStatement += depth > 0 ? ' ' : character;
    if (character === '(') depth++;
  }
  return outerStatement;
}

/**
 * Returns true if the statement compares the column, e.g. `WHERE ads > 2` around a subquery. Such a condition may have
 * removed rows with small counts, so a missing row does not mean zero.
 */
function isUsedInComparison(statement: string, columnName: string): boolean {
  const [lowerCaseStatement, lowerCaseColumn] = [statement.toLowerCase(), columnName.toLowerCase()];
  if (lowerCaseColumn === '') return false;
  for (
    let matchIndex = lowerCaseStatement.indexOf(lowerCaseColumn);
    matchIndex >= 0;
    matchIndex = lowerCaseStatement.indexOf(lowerCaseColumn, matchIndex + 1)
  ) {
    const end = matchIndex + lowerCaseColumn.length;
    // A name before a dot is the name of a table, e.g. `ads` in `ads.id`.
    const isOtherName =
      wordPattern.test(lowerCaseStatement.charAt(matchIndex - 1)) ||
      wordOrDotPattern.test(lowerCaseStatement.charAt(end));
    if (isOtherName) continue;
    comparisonAfterPattern.lastIndex = end;
    if (comparisonAfterPattern.test(statement)) return true;
    const qualifiedNameStart = findQualifiedNameStart(statement, matchIndex);
    const textBefore = statement.slice(Math.max(0, qualifiedNameStart - maxOperatorDistance), qualifiedNameStart);
    if (comparisonBeforePattern.test(textBefore.trimEnd().slice(-1))) return true;
  }
  return false;
}

/** Returns the index at which the qualified form of a column name starts, e.g. the index of `n` for `ads` in `n.ads`. */
function findQualifiedNameStart(statement: string, nameStart: number): number {
  let start = nameStart;
  while (nameStart - start < maxOperatorDistance && qualifiedNamePattern.test(statement.charAt(start - 1))) start--;
  return start;
}

const [wordPattern, wordOrDotPattern, qualifiedNamePattern] = [/\w/, /[\w.]/, /[\w."`[\]]/];
const comparisonAfterPattern = /["`\]]?\s*(?:[<>=!]|between\b|in\b|is\b)/iy;
const comparisonBeforePattern = /[<>=]/;
/**
 * The maximum number of characters between a comparison operator and the column name after the operator. Without this
 * limit, searching a long statement for the operator could be slow.
 */
const maxOperatorDistance = 100;

const aliasPattern =
  /\s*(?:\bas\b\s*)?(?:"([^"]+)"|`([^`]+)`|\[([^\]]+)\]|(?!(?:from|filter|then|end|as)\b)([a-z_]\w*))/iy;
const filterPattern = /\s*filter\s*\(/iy;

/**
 * Lists the column names that the SQL statement defines with `AS`, e.g. `ads` in `count(*) AS ads`. `isCount` is true
 * if the alias names a single `count(…)` and nothing else.
 */
function listAliases(statement: string): { name: string; isCount: boolean }[] {
  const aliases: { name: string; isCount: boolean }[] = [];
  const namesByEndIndex = new Map<number, string>();
  for (const match of statement.matchAll(/\bas\b\s*(?:"([^"]+)"|`([^`]+)`|\[([^\]]+)\]|([a-z_]\w*))/gi))
    namesByEndIndex.set(match.index + match[0].length, readAliasName(match));
  const countAliasEnds = new Set<number>();
  for (const { index, 0: countCall } of statement.matchAll(/\bcount\s*\(/gi)) {
    const isWholeExpression = /(?:\bselect|\bdistinct|,)\s*$/i.test(statement.slice(0, index));
    let end = findParenthesisEnd(statement, index + countCall.length);
    filterPattern.lastIndex = end;
    if (filterPattern.test(statement)) end = findParenthesisEnd(statement, filterPattern.lastIndex);
    aliasPattern.lastIndex = end;
    const alias = aliasPattern.exec(statement);
    if (alias === null) continue;
    const aliasEnd = aliasPattern.lastIndex;
    const endsExpression = /^\s*(?:,|\)|;|$|from\b)/i.test(statement.slice(aliasEnd));
    aliases.push({ name: readAliasName(alias), isCount: isWholeExpression && endsExpression });
    countAliasEnds.add(aliasEnd);
  }
  for (const [end, name] of namesByEndIndex) if (!countAliasEnds.has(end)) aliases.push({ name, isCount: false });
  for (const match of statement.matchAll(bareAliasPattern)) {
    const end = match.index + match[0].trimEnd().length;
    if (!countAliasEnds.has(end) && !namesByEndIndex.has(end))
      aliases.push({ name: readAliasName(match), isCount: false });
  }
  return aliases;
}

/** Matches an alias without `AS`, such as `ads` in `count(*) ads`. */
const bareAliasPattern =
  /(?<=[\w)"\]])(?<!\b(?:select|distinct|by|and|or|not))\s+(?:"([^"]+)"|([a-z_]\w*))\s*(?=,|from\b)/gi;

const readAliasName = (match: readonly (string | undefined)[]): string =>
  (match.slice(1).find((name) => name !== undefined) ?? '').toLowerCase();

/**
 * Returns the index after the parenthesis that closes the opening parenthesis just before `startIndex`. If there is no
 * closing parenthesis, returns the length of the statement.
 */
function findParenthesisEnd(statement: string, startIndex: number): number {
  let depth = 1;
  for (let index = startIndex; index < statement.length; index++) {
    if (statement[index] === '(') depth++;
    else if (statement[index] === ')' && --depth === 0) return index + 1;
  }
  return statement.length;
}
