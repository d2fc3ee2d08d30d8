/**
 * Returns the names of the columns that certainly contain counts, such as `ads` in `count(*) AS ads`. In such a column,
 * a month, week or name without a row means zero.
 *
 * A column name alone proves nothing: `max(daysRunning) AS ads` is not a count. This function therefore reads the SQL
 * statement. It recognizes counts only in a statement with a single SELECT that keeps the row of every group. After
 * `HAVING` or a reached `LIMIT`, or around a subquery, a missing row can have other reasons. The chart then shows a
 * gap, which is never wrong.
 */
export function findCountColumns({ columns, sql = '', rowCount }: CountColumnsQuery): ReadonlySet<string> {
  const statement = removeCommentsAndLiterals(sql);
  const selectCount = statement.match(/\bselect\b/gi)?.length ?? 0;
  if (
    selectCount > 1 ||
    /\b(?:having|offset|over|values)\b/i.test(statement) ||
    mayHaveReachedLimit(statement, rowCount)
  )
    return new Set();
  const countColumnNames = listCountNames(statement);
  const isUniqueName = (name: string) => columns.filter((column) => column.toLowerCase() === name).length === 1;
  return new Set(
    columns.filter((column) => {
      const name = column.toLowerCase();
      return findCountEnd(name, 0) === name.length || (countColumnNames.has(name) && isUniqueName(name));
    }),
  );
}

/**
 * Returns true if the statement may exclude dates between the first and the last row, e.g. with
 * `WHERE startedMonth IN ('2026-01', '2026-04')`. A date without a row then does not mean zero. Returns false if all
 * conditions on dates compare them with a bound, e.g. `WHERE startedAt >= '2026-01-01'`.
 *
 * Call this function only for statements in which `findCountColumns` has recognized counts. They have a single SELECT.
 * @param axisColumn the name of the column that contains the dates
 */
export function canExcludeDates(sql: string, axisColumn: string): boolean {
  const lowerCaseStatement = removeCommentsAndLiterals(sql).toLowerCase();
  const axisName = axisColumn.toLowerCase();
  const conditionsText = lowerCaseStatement
    // A condition in `FILTER (WHERE …)` decides which ads are counted, and removes no rows.
    .replace(/\bfilter\s*\(\s*where\b/g, ' ')
    .replace(/\bbetween\b/g, '>=')
    // Remove groups without a date, e.g. `(language = 'de' OR language = 'fr')` and `strftime('%Y', 'now')`.
    .replace(/(?:\bstrftime\s*)?\([^()]*\)/g, (group) => (isConditionOnDate(group, axisName) ? group : '()'));
  return [...conditionsText.matchAll(conditionClausePattern)].some(([clause]) => {
    const dateConditions = clause.split(/\b(?:and|or)\b/).filter((condition) => isConditionOnDate(condition, axisName));
    // With `OR`, two bounds can exclude the dates between them.
    if (dateConditions.length > 0 && /\bor\b/.test(clause)) return true;
    return dateConditions.some((condition) => !boundPattern.test(condition) || otherComparisonPattern.test(condition));
  });
}

/** Returns true if a condition contains the column of the axis or another column with dates. */
const isConditionOnDate = (condition: string, axisName: string): boolean =>
  [...condition.matchAll(/\b[a-z_]\w*\b(?!\s*\()/g)].some(
    ([name]) => name === axisName || (name !== 'current_date' && dateNamePattern.test(name)),
  );

/**
 * Matches the conditions after `WHERE`, or those of a join after `ON` or `USING`, up to the next clause or the end of
 * the statement.
 */
const conditionClausePattern =
  /\b(?:where|on|using)\b(?:(?!\b(?:where|on|using|join|group|order|limit|window|select)\b)[\s\S])*/g;
/** Matches names of date columns, in lower case. */
const dateNamePattern = /(?:startedat|seenat|gatheredat|date|month|week|day|year|quarter)$/;
/** Matches a comparison with a bound, or the condition that a date is known or unknown. */
const boundPattern = /[<>]|\bis\s+(?:not\s+)?null\b/;
/**
 * Matches comparisons that can exclude dates between others, and functions after which the order of dates is lost, e.g.
 * `strftime('%m', startedAt)`.
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

const aliasPattern = /\s*(?:\bas\b\s*)?(?:"([^"]+)"|`([^`]+)`|\[([^\]]+)\]|(?!(?:from|as|asc|desc)\b)([a-z_]\w*))/iy;

/** Lists the column names, in lower case, that the SQL statement gives to a single `count(…)` and nothing else. */
function listCountNames(statement: string): ReadonlySet<string> {
  const countColumnNames = new Set<string>();
  for (const { index } of statement.matchAll(/\bcount\s*\(/gi)) {
    aliasPattern.lastIndex = findCountEnd(statement, index) ?? statement.length;
    const aliasMatch = aliasPattern.exec(statement);
    if (aliasMatch === null) continue;
    const startsExpression = /(?:\bselect|,)\s*$/i.test(statement.slice(0, index));
    const endsExpression = /^\s*(?:,|;|$|from\b)/i.test(statement.slice(aliasPattern.lastIndex));
    const name = aliasMatch.slice(1).find((alias) => alias !== undefined) ?? '';
    if (startsExpression && endsExpression) countColumnNames.add(name.toLowerCase());
  }
  return countColumnNames;
}

const [countPattern, filterPattern] = [/count\s*\(/iy, /\s*filter\s*\(/iy];

/**
 * Returns the index after the `count(…)` that starts at `startIndex`, and after its `FILTER (…)`. Returns undefined if
 * no `count(…)` starts there.
 */
function findCountEnd(statement: string, startIndex: number): number | undefined {
  countPattern.lastIndex = startIndex;
  if (!countPattern.test(statement)) return undefined;
  const countEnd = findParenthesisEnd(statement, countPattern.lastIndex);
  filterPattern.lastIndex = countEnd;
  return filterPattern.test(statement) ? findParenthesisEnd(statement, filterPattern.lastIndex) : countEnd;
}

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
