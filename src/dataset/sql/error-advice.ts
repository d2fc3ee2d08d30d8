import { isSimilar, sortBySimilarity } from '../../api/nearest.ts';
import { joinNames, quote } from '../../views/safe-text.ts';
import { quoteId, quoteUntrustedText } from '../../views/tokens.ts';
import { getColumnNames, type TableName, tableNames, viewNames } from '../tables.ts';

/**
 * Explains an SQLite error message: what is wrong, and which valid name is most similar. Quotes and shortens parts of
 * the message that may come from an advertiser. Returns undefined if there is no explanation for the message.
 */
export function explainSqliteMessage(message: string): string | undefined {
  for (const [pattern, explain] of explanations) {
    const name = pattern.exec(message)?.[1];
    if (name !== undefined) return explain(name);
  }
}

const explanations: readonly (readonly [message: RegExp, explain: (name: string) => string])[] = [
  [/^no such column: "([\s\S]*)" - should this be a string literal/, explainDoubleQuotedText],
  [/^no such column: ([\s\S]+)$/, explainColumn],
  [/^no such table: ([\s\S]+)$/, explainTable],
  [/^ambiguous column name: (json)$/, () => ambiguousJson],
  [/^ambiguous column name: ([\s\S]+)$/, explainAmbiguousColumn],
  [/^no such function: ([\s\S]+)$/, explainFunction],
  [/^(integer overflow)$/, () => integerOverflow],
];

const ambiguousJson =
  'json_each and json_tree have a column json of their own: write ads.json, or the name of the table.';

const integerOverflow =
  'An integer is outside the range of 64 bits. For a large sum, write total(x) instead of sum(x): its result is a decimal number.';

/** The names of the tables and views that SQL statements can read. */
const readableTableNames = [...tableNames, ...viewNames];

/** Returns the tables that have a certain column, ignoring the case of its name, as SQLite does. */
const listTablesWithColumn = (columnName: string): TableName[] =>
  tableNames.filter((table) => getColumnNames(table).some((name) => name.toLowerCase() === columnName.toLowerCase()));

const columnNames = [...new Set(tableNames.flatMap(getColumnNames))];

/**
 * Returns the name of the most similar column, e.g. `headline` for `headlin`. Returns undefined if no column name is
 * similar enough.
 */
function findNearestColumn(columnName: string): string | undefined {
  const [nearestName] = sortBySimilarity(columnName, columnNames);
  return nearestName !== undefined && isSimilar(columnName, nearestName) ? nearestName : undefined;
}

/** The maximum length, in characters, of a text that an explanation repeats in single quotes. */
const maxQuotedChars = 60;
/** The maximum length, in tokens, of any other text that an explanation repeats. */
const maxQuotedTokens = 60;

function explainDoubleQuotedText(text: string): string {
  const nearestName = findNearestColumn(text);
  // Do not repeat a long text, or a text with characters that would have to be escaped in the explanation.
  const canRepeatText = text.length <= maxQuotedChars && !/[\p{Cc}\p{Cf}"\\]/u.test(text);
  const quotingAdvice = `Write a text in single quotes${canRepeatText ? `: ${quote(`'${text.replaceAll("'", "''")}'`)}` : ''}.`;
  const nearestColumnText = nearestName === undefined ? '' : ` The nearest column is ${nearestName}.`;
  return `Double quotes mark a column, and there is no column ${quoteUntrustedText(text, maxQuotedTokens)}. ${quotingAdvice}${nearestColumnText}`;
}

/**
 * The SQL clause with which a statement about ads joins each table. The clause of `ads` is for statements about other
 * tables.
 */
const joinClauses: Readonly<Record<TableName, string>> = {
  ads: 'JOIN ads USING (id), from pages JOIN ads USING (pageId), from labels JOIN ads ON ads.id = adId',
  ad_countries: 'JOIN ad_countries USING (id)',
  ad_platforms: 'JOIN ad_platforms USING (id)',
  ad_reach: 'JOIN ad_reach USING (id)',
  ad_cards: 'JOIN ad_cards USING (id)',
  ad_versions: 'JOIN ad_versions USING (id)',
  pages: 'JOIN pages USING (pageId)',
  gatherings: 'JOIN gathered ON adId = ads.id JOIN gatherings ON gatherings.id = gatheringId',
  gathered: 'JOIN gathered ON adId = id',
  labels: 'JOIN labels ON adId = id',
  months: 'JOIN months ON month = startedMonth',
};

/**
 * Advice about columns whose name suggests a value of an ad, although they contain something else. Says where the value
 * of an ad is.
 */
const adviceByColumn: Readonly<Record<string, string>> = {
  countries: ` The countries of an ad are in ad_countries: ${joinClauses.ad_countries}.`,
  languages: ' The language of an ad is ads.language.',
  reach: ' The total reach of an ad is ads.audienceReach.',
};

/** Advice for names that may be a text without quotes, e.g. `WHERE pageName = Acme`. */
const unquotedTextAdvice = 'If it is a text, write it in single quotes.';

function explainColumn(name: string): string {
  const unqualifiedName = name.slice(name.lastIndexOf('.') + 1);
  const shownName = quoteId(name);
  const tablesWithColumn = listTablesWithColumn(unqualifiedName);
  if (tablesWithColumn.length > 0) {
    const correction = name.includes('.')
      ? 'write the name of its table before it. If the table is missing, add'
      : 'add';
    const [join = ''] = tablesWithColumn.map((table) => joinClauses[table]);
    const advice = adviceByColumn[unqualifiedName.toLowerCase()] ?? '';
    return `There is no column ${shownName} here. ${quoteId(unqualifiedName)} is a column of ${joinNames(tablesWithColumn)}: ${correction} ${join}.${advice}`;
  }
  const nearestName = findNearestColumn(unqualifiedName);
  if (nearestName !== undefined)
    return `There is no column ${shownName}. The nearest is ${nearestName}, of ${joinNames(listTablesWithColumn(nearestName))}. ${unquotedTextAdvice}`;
  return `There is no column ${shownName}. ${unquotedTextAdvice} ${formatColumnList()}`;
}

function explainTable(name: string): string {
  const unqualifiedName = name.slice(name.lastIndexOf('.') + 1);
  const [nearestName = ''] = sortBySimilarity(unqualifiedName, readableTableNames);
  const advice = isSimilar(unqualifiedName, nearestName) ? `The nearest is ${nearestName}.` : `${formatTableList()}`;
  return `There is no table ${quoteId(name)}. ${advice}`;
}

function explainAmbiguousColumn(name: string): string {
  return `Several tables of the statement have a column ${quoteId(name)}: write the name of its table before it.`;
}

function explainFunction(name: string): string {
  return `There is no function ${quoteId(name)}. Functions are those of SQLite, with median, percentile, JSON and dates, and text REGEXP pattern.`;
}

/** Lists the names of the tables. Omits their columns, because the description of the `query_ads` tool lists them. */
export const formatTableList = (): string => `The tables are ${joinNames(readableTableNames)}.`;

const formatColumnList = (): string =>
  `Tables and columns: ${tableNames.map((table) => `${table}(${getColumnNames(table).join(', ')})`).join('; ')}; current_ads(the columns of ads).`;
