/**
 * Returns the names of columns that certainly hold counts, so that a month, week or name without a row has zero.
 * The statement decides, not the name: `max(daysRunning) AS ads` is no count. Where a condition on groups or a limit may
 * have left rows out, or where a name has several meanings in the statement, the column is not returned.
 */
export function countedColumns({ columns, sql = '', rowCount }: CountedQuestion): ReadonlySet<string> {
  const statement = withoutTexts(sql);
  if (/\bhaving\b|\boffset\b|\bover\b/i.test(statement) || hasReachedLimit(statement, rowCount)) return new Set();
  const names = aggregatesIn(statement);
  return new Set(
    columns.filter((column) => {
      if (/^count\s*\(/i.test(column)) return true;
      const meanings = names.filter(({ name }) => name === column.toLowerCase());
      return meanings.length > 0 && meanings.every(({ isCount }) => isCount) && !isCompared(statement, column);
    }),
  );
}

interface CountedQuestion {
  columns: readonly string[];
  sql?: string | undefined;
  rowCount: number;
}

/** The statement without comments and the contents of texts. */
const withoutTexts = (sql: string): string =>
  sql.replace(/--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'(?:[^']|'')*'/g, (part) => (part.startsWith("'") ? "''" : ' '));

/** True unless each `LIMIT` is a number above the number of rows. */
const hasReachedLimit = (statement: string, rowCount: number): boolean =>
  [...statement.matchAll(/\blimit\b\s*(\d+\b(?!\s*[,+*/-]))?/gi)].some(([, limit]) => !(Number(limit) > rowCount));

/** True where rows may have been left out for their count, as with `WHERE ads > 2` around a subquery. */
function isCompared(statement: string, column: string): boolean {
  const [searchable, name] = [statement.toLowerCase(), column.toLowerCase()];
  if (name === '') return false;
  for (let start = searchable.indexOf(name); start >= 0; start = searchable.indexOf(name, start + 1)) {
    const end = start + name.length;
    const isPartOfWord = wordOrDot.test(searchable.charAt(start - 1)) || word.test(searchable.charAt(end));
    if (isPartOfWord) continue;
    comparisonAfter.lastIndex = end;
    if (comparisonAfter.test(statement)) return true;
    const before = statement.slice(Math.max(0, start - maxGap), start);
    if (comparisonBefore.test((before.endsWith('"') ? before.slice(0, -1) : before).trimEnd().slice(-1))) return true;
  }
  return false;
}

const [word, wordOrDot] = [/\w/, /[\w.]/];
const comparisonAfter = /"?\s*(?:[<>=!]|between\b|in\b|is\b)/iy;
const comparisonBefore = /[<>=]/;
/** The most characters between a comparison operator and a name after it, such as spaces. */
const maxGap = 100;

const aliasPattern =
  /\s*(?:\bas\b\s*)?(?:"([^"]+)"|`([^`]+)`|\[([^\]]+)\]|(?!(?:from|filter|then|end|as)\b)([a-z_]\w*))/iy;
const filterPattern = /\s*filter\s*\(/iy;

/** Each name that the statement gives to an expression, and whether the expression is a `count(…)` alone. */
function aggregatesIn(statement: string): { name: string; isCount: boolean }[] {
  const found: { name: string; isCount: boolean }[] = [];
  const aliases = new Map<number, string>();
  for (const match of statement.matchAll(/\bas\b\s*(?:"([^"]+)"|`([^`]+)`|\[([^\]]+)\]|([a-z_]\w*))/gi))
    aliases.set(match.index + match[0].length, nameIn(match));
  const counted = new Set<number>();
  for (const { index, 0: call } of statement.matchAll(/\bcount\s*\(/gi)) {
    const isWhole = /(?:\bselect|\bdistinct|,)\s*$/i.test(statement.slice(0, index));
    let end = closingParenthesis(statement, index + call.length);
    filterPattern.lastIndex = end;
    if (filterPattern.test(statement)) end = closingParenthesis(statement, filterPattern.lastIndex);
    aliasPattern.lastIndex = end;
    const alias = aliasPattern.exec(statement);
    if (alias === null) continue;
    const after = aliasPattern.lastIndex;
    const isLast = /^\s*(?:,|\)|;|$|from\b)/i.test(statement.slice(after));
    found.push({ name: nameIn(alias), isCount: isWhole && isLast });
    counted.add(after);
  }
  for (const [end, name] of aliases) if (!counted.has(end)) found.push({ name, isCount: false });
  for (const match of statement.matchAll(bareAlias)) {
    const end = match.index + match[0].trimEnd().length;
    if (!counted.has(end) && !aliases.has(end)) found.push({ name: nameIn(match), isCount: false });
  }
  return found;
}

/** A name behind an expression, without `AS`. */
const bareAlias = /(?<=[\w)"\]])(?<!\b(?:select|distinct|by|and|or|not))\s+(?:"([^"]+)"|([a-z_]\w*))\s*(?=,|from\b)/gi;

const nameIn = (match: readonly (string | undefined)[]): string =>
  (match.slice(1).find((name) => name !== undefined) ?? '').toLowerCase();

/** Returns the place behind the parenthesis that closes the one before `start`. */
function closingParenthesis(statement: string, start: number): number {
  let depth = 1;
  for (let at = start; at < statement.length; at++) {
    if (statement[at] === '(') depth++;
    else if (statement[at] === ')' && --depth === 0) return at + 1;
  }
  return statement.length;
}
