import { type ApiField, adFields } from '../../views/fields.ts';
import { groupBy } from '../../views/group-by.ts';
import { createAdvertiserKeyFinder } from '../advertisers.ts';
import { type Cell, getColumnNames, type TableName, tables } from '../tables.ts';
import { isMatchingAdvertiser, type StatementLiterals } from './literals.ts';
import type { StatementField, StatementFields } from './statement.ts';

/**
 * The tables that contain ad fields, each with its main column. A statement that only counts the rows of a table is
 * treated as if it read this column. For example, `SELECT count(*) FROM ad_countries` is treated as reading `country`.
 */
const mainColumnByTable = {
  ads: undefined,
  ad_countries: 'country',
  ad_platforms: 'platform',
  ad_reach: 'reach',
  ad_cards: 'number',
} as const satisfies Partial<Record<TableName, string | undefined>>;
type AdTable = keyof typeof mainColumnByTable;

const isAdTable = (table: string): table is AdTable => Object.hasOwn(mainColumnByTable, table);

/** Columns that have a value in every row. They are not counted as ad fields, because no ad lacks a value for them. */
const alwaysFilledColumns = new Set(['id', 'number', 'firstGatheredAt', 'gatheredAt', 'json']);

/** Tables without ads. Missing ads do not affect the results of statements that read only these tables. */
const tablesWithoutAds = new Set(['gatherings', 'months']);

/** The table and the column for each API field that has no column of the same name in the `ads` table. */
const columnByJsonField: Record<string, readonly [table: AdTable, column: string]> = {
  countries: ['ad_countries', 'country'],
  publisherPlatform: ['ad_platforms', 'platform'],
  cards: ['ad_cards', 'number'],
  page: ['ads', 'pageName'],
};

/**
 * The SQL view of the current ads. If a statement reads ads only through this view, its field counts include only the
 * ads in the view.
 */
const currentAdsView = 'current_ads';
/**
 * The column that tells whether a statement uses the `current_ads` view. If SQLite reports that `current_ads` reads
 * this column, the statement uses the view. A common table expression called `current_ads` hardly ever reads this
 * column.
 */
const viewDetectionColumn = 'gathered.adId';

/** The columns that an SQL statement reads, as SQLite reports them while it compiles the statement. */
export class StatementColumns {
  readonly #tables = new Set<string>();
  /**
   * Columns such as `ads.headline`. The value `ads.` means that the statement only counts the rows of the `ads` table.
   */
  readonly #columns = new Set<string>();
  /** The columns that are read by the `current_ads` view, or by a common table expression called `current_ads`. */
  readonly #columnsReadInCurrentAds = new Set<string>();

  /**
   * Adds a column that the statement reads.
   * @param readerName the name of the view or common table expression that reads the column; empty for other reads
   */
  addColumn(table: string, column: string, readerName: string): void {
    this.#tables.add(table.toLowerCase());
    (readerName === currentAdsView ? this.#columnsReadInCurrentAds : this.#columns).add(
      `${table.toLowerCase()}.${column}`,
    );
  }

  /**
   * Adds a table that the statement joins. Ignores the `ads` table, because a statement that reads only the
   * `current_ads` view opens this table too.
   */
  addJoinedTable(table: string): void {
    if (isAdTable(table) && table !== 'ads') this.addColumn(table, '', '');
  }

  /** Returns true if the statement reads a table with ads or pages. */
  isAboutAds(): boolean {
    return [...this.#tables].some((table) => !tablesWithoutAds.has(table));
  }

  /**
   * Groups the columns by table or view. If the statement uses the `current_ads` view, ignores the columns that the
   * view itself reads, because the view reads all columns of `ads` even if the statement needs only a few of them.
   */
  groupByTable(): ReadonlyMap<string, readonly string[]> {
    const usesView = this.#columnsReadInCurrentAds.has(viewDetectionColumn);
    const columns = [...this.#columns, ...(usesView ? [`${currentAdsView}.`] : this.#columnsReadInCurrentAds)];
    const columnPairs = columns.map((column) => column.split('.') as [table: string, column: string]);
    const adColumnPairs = columnPairs.filter(([table]) => table === currentAdsView || isAdTable(table));
    return new Map(
      [...groupBy(adColumnPairs, ([table]) => table)].map(([table, tablePairs]) => [
        table,
        tablePairs.map(([, name]) => name),
      ]),
    );
  }
}

/**
 * One bit for each column of the `ads` table, so that a single number can store which columns of an ad have a value.
 */
const columnBitMasks = getColumnNames('ads').map((_, index) => 1n << BigInt(index));

/** An ad field: its name in results, and the table and column that contain its values. */
interface AdField {
  name: string;
  table: AdTable;
  column: string;
}

/**
 * Returns the ad fields that a statement reads, without duplicates. If the statement reads the `json` column, the JSON
 * paths in the statement, e.g. `$.headline`, add further fields.
 */
function listStatementFields(
  statementColumns: ReadonlyMap<string, readonly string[]>,
  { jsonFields }: StatementLiterals,
): AdField[] {
  const adColumns = ['ads', currentAdsView].flatMap((table) => statementColumns.get(table) ?? []);
  const columnsInJson = adColumns.includes('json') ? [...jsonFields].flatMap(findColumnOfJsonField) : [];
  return (Object.keys(mainColumnByTable) as AdTable[]).flatMap((table) => {
    const readColumnNames = table === 'ads' ? adColumns : statementColumns.get(table);
    const jsonColumns = columnsInJson.flatMap((jsonColumn) => (jsonColumn.table === table ? jsonColumn.column : []));
    if (readColumnNames === undefined && jsonColumns.length === 0) return [];
    const columns = [...(readColumnNames ?? []), ...jsonColumns];
    const fields = columns.filter((column) => Object.hasOwn(tables[table], column) && !alwaysFilledColumns.has(column));
    const mainColumn = mainColumnByTable[table];
    const columnsOfFields = fields.length === 0 && mainColumn !== undefined ? [mainColumn] : [...new Set(fields)];
    const hasOneField = table === 'ad_countries' || table === 'ad_platforms';
    return columnsOfFields.map((column) => ({
      name: table === 'ads' || hasOneField ? column : column === mainColumn ? table : `${table}.${column}`,
      table,
      column,
    }));
  });
}

/**
 * Returns the column that contains an API field, e.g. `ad_countries.country` for the `countries` field. Returns an
 * empty list if no column contains the field.
 */
function findColumnOfJsonField(apiFieldName: string): Pick<AdField, 'table' | 'column'>[] {
  const [table, column] = Object.hasOwn(columnByJsonField, apiFieldName) ? (columnByJsonField[apiFieldName] ?? []) : [];
  if (table !== undefined && column !== undefined) return [{ table, column }];
  return apiColumns.has(apiFieldName) ? [{ table: 'ads', column: apiFieldName }] : [];
}

const apiColumns = new Set(
  ['pageId', 'pageName', ...Object.keys(adFields)].filter((name) => Object.hasOwn(tables.ads, name)),
);

/** The columns of the `ads` table with amounts of money. The `currency` column names their currency. */
const amountColumns = Object.entries<ApiField>(adFields).flatMap(([name, { isAmount, hasColumn }]) =>
  isAmount && hasColumn ? [name] : [],
);

/** The parts of an ad that are needed to count fields: its advertiser, and which columns have a value. */
interface CountedAd {
  /** One bit for each column of the `ads` table, which is 1 if the ad has a value in this column. */
  filledColumnBits: bigint;
  advertiser: AdvertiserIdentity;
  /** The currency of the ad's amounts. Only imported ads have one. */
  currency: string | null;
}

/**
 * The id and the name of an advertiser, as its ads state them. To save memory, ads with the same id and name share one
 * object.
 */
interface AdvertiserIdentity {
  pageId: string | null;
  pageName: string | null;
}

/** A cache of field counts: the ads whose fields are counted, and the counts that have been computed so far. */
interface FieldCountCache {
  ads: readonly (readonly [id: string, ad: CountedAd])[];
  adCountByAdvertiser: ReadonlyMap<string, number>;
  fieldCountsByName: Map<string, StatementField>;
}

/**
 * Counts the ads that have a value for each field. Records which fields have values while the tables are loaded.
 * Counting with SQL would take seconds, because SQLite stores these columns behind long texts.
 */
export class FieldCounter {
  readonly #adsById = new Map<string, CountedAd>();
  readonly #advertisers = new Map<string, AdvertiserIdentity>();
  readonly #currencies = new Map<string, string>();
  /**
   * The field counts for all ads, and for the ads in the `current_ads` view. These counts stay valid, because the
   * tables do not change after they were loaded.
   */
  readonly #cachedCounts: { all?: FieldCountCache; current?: FieldCountCache } = {};
  /** The key of each advertiser, e.g. `page 12345`. The keys are computed on first use. */
  #advertiserKeys: ReadonlyMap<AdvertiserIdentity, string | null> | undefined;
  /**
   * The ids of the ads that have a value in a column of any table except `ads`. The keys are columns such as
   * `ad_countries.country`.
   */
  readonly #adIdsByColumn = new Map<string, Set<string>>();

  /** Adds rows of a table. The cells of a row are in the same order as the columns of the table. */
  addRows(table: TableName, rows: readonly (readonly Cell[])[]): void {
    if (!isAdTable(table)) return;
    const columns = getColumnNames(table);
    const idIndex = columns.indexOf('id');
    const [pageIdIndex, pageNameIndex] = [columns.indexOf('pageId'), columns.indexOf('pageName')];
    const currencyIndex = columns.indexOf('currency');
    for (const row of rows) {
      const id = String(row[idIndex]);
      if (table === 'ads') {
        let valueBits = 0n;
        for (const [index, cell] of row.entries()) if (cell !== null) valueBits |= columnBitMasks[index] ?? 0n;
        this.#adsById.set(id, {
          filledColumnBits: valueBits,
          advertiser: this.#addAdvertiser(row[pageIdIndex], row[pageNameIndex]),
          currency: this.#addCurrency(row[currencyIndex]),
        });
      } else
        for (const [index, cell] of row.entries())
          if (cell !== null && index !== idIndex) this.#getAdIds(table, columns[index] ?? '').add(id);
    }
  }

  #addAdvertiser(pageId: Cell = null, pageName: Cell = null): AdvertiserIdentity {
    const [id, name] = [pageId, pageName].map((cell) => (cell === null ? null : String(cell)));
    const key = JSON.stringify([id, name]);
    const advertiser = this.#advertisers.get(key) ?? { pageId: id ?? null, pageName: name ?? null };
    this.#advertisers.set(key, advertiser);
    return advertiser;
  }

  /** Returns the currency as a text that all ads with the same currency share, which saves memory. */
  #addCurrency(cell: Cell = null): string | null {
    if (cell === null) return null;
    const currency = this.#currencies.get(String(cell)) ?? String(cell);
    this.#currencies.set(currency, currency);
    return currency;
  }

  #getAdIds(table: string, column: string): Set<string> {
    const key = `${table}.${column}`;
    const ids = this.#adIdsByColumn.get(key) ?? new Set();
    this.#adIdsByColumn.set(key, ids);
    return ids;
  }

  /**
   * Returns the key of each advertiser, e.g. `page 12345`. The keys are computed only once, because all ads are loaded
   * before the first statement runs.
   */
  #getAdvertiserKeys(): ReadonlyMap<AdvertiserIdentity, string | null> {
    if (this.#advertiserKeys) return this.#advertiserKeys;
    const advertisers = [...this.#advertisers.values()];
    const findAdvertiserKey = createAdvertiserKeyFinder(advertisers);
    this.#advertiserKeys = new Map(advertisers.map((advertiser) => [advertiser, findAdvertiserKey(advertiser)]));
    return this.#advertiserKeys;
  }

  /**
   * Counts the ads that have a value for each field that an SQL statement reads. Returns undefined if the statement
   * reads no table with ads.
   * @param readCurrentAdIds returns the ids of the ads in the `current_ads` view
   */
  countFields(
    statementColumns: StatementColumns,
    literals: StatementLiterals,
    readCurrentAdIds: () => ReadonlySet<string>,
  ): StatementFields | undefined {
    const columnsByTable = statementColumns.groupByTable();
    if (columnsByTable.size === 0) return undefined;
    const readsOnlyView = columnsByTable.has(currentAdsView) && !columnsByTable.has('ads');
    const cacheName = readsOnlyView ? 'current' : 'all';
    const cache = this.#cachedCounts[cacheName] ?? this.#createCache(readsOnlyView ? readCurrentAdIds() : undefined);
    this.#cachedCounts[cacheName] = cache;
    const { ads, adCountByAdvertiser } = cache;
    const fields = listStatementFields(columnsByTable, literals).map((field) => this.#countField(field, cache));
    const readsAdvertiserColumns = ['ads', currentAdsView].some((table) =>
      columnsByTable.get(table)?.some((column) => column === 'pageId' || column === 'pageName'),
    );
    const namedAdvertiserKeys = new Set(readsAdvertiserColumns ? this.#findNamedAdvertisers(literals) : []);
    const mixedCurrencies = this.#listMixedCurrencies(fields, cache, namedAdvertiserKeys);
    return { adCount: ads.length, adCountByAdvertiser, fields, namedAdvertiserKeys, mixedCurrencies };
  }

  /**
   * Lists the currencies of the amounts that a statement reads. Returns an empty list if the statement reads no amount,
   * or if it also reads the `currency` column.
   * @param namedAdvertiserKeys the advertisers to which the statement limits its rows; empty for all advertisers
   */
  #listMixedCurrencies(
    fields: readonly StatementField[],
    { ads }: FieldCountCache,
    namedAdvertiserKeys: ReadonlySet<string>,
  ): string[] {
    const names = new Set(fields.map(({ name }) => name));
    const readAmountColumns = amountColumns.filter((column) => names.has(column));
    if (names.has('currency') || readAmountColumns.length === 0 || this.#currencies.size < 2) return [];
    const amountTests = readAmountColumns.map((column) => this.#createValueTest({ table: 'ads', column }));
    const advertiserKeys = this.#getAdvertiserKeys();
    const currencies = new Set<string>();
    for (const [id, ad] of ads) {
      const isCounted =
        namedAdvertiserKeys.size === 0 || namedAdvertiserKeys.has(advertiserKeys.get(ad.advertiser) ?? '');
      if (isCounted && ad.currency !== null && amountTests.some((hasAmount) => hasAmount(id, ad)))
        currencies.add(ad.currency);
    }
    return [...currencies].sort();
  }

  #createCache(ids: ReadonlySet<string> | undefined): FieldCountCache {
    const ads = [...this.#adsById].filter(([id]) => ids === undefined || ids.has(id));
    return { ads, adCountByAdvertiser: this.#countByAdvertiser(ads.map(([, ad]) => ad)), fieldCountsByName: new Map() };
  }

  #countField(field: AdField, { ads, fieldCountsByName }: FieldCountCache): StatementField {
    const { name } = field;
    const cachedField = fieldCountsByName.get(name);
    if (cachedField) return cachedField;
    const hasValue = this.#createValueTest(field);
    const adsWithoutValue = ads.flatMap(([id, ad]) => (hasValue(id, ad) ? [] : [ad]));
    const counts = {
      name,
      adsWithValue: ads.length - adsWithoutValue.length,
      missingCountByAdvertiser: this.#countByAdvertiser(adsWithoutValue),
    };
    fieldCountsByName.set(name, counts);
    return counts;
  }

  #countByAdvertiser(ads: readonly CountedAd[]): Map<string, number> {
    const advertiserKeys = this.#getAdvertiserKeys();
    const counts = new Map<string, number>();
    for (const { advertiser } of ads) {
      const key = advertiserKeys.get(advertiser) ?? null;
      if (key !== null) counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    return counts;
  }

  /** Creates a function that returns true if an ad has a value in a column. */
  #createValueTest({ table, column }: Pick<AdField, 'table' | 'column'>): (id: string, ad: CountedAd) => boolean {
    if (table !== 'ads') {
      const ids = this.#getAdIds(table, column);
      return (id) => ids.has(id);
    }
    const columnBit = columnBitMasks[getColumnNames('ads').indexOf(column)] ?? 0n;
    return (_, { filledColumnBits }) => (filledColumnBits & columnBit) !== 0n;
  }

  /**
   * Returns the keys of the advertisers to which a statement limits its rows. Returns an empty list if the statement
   * may read ads of any advertiser.
   */
  #findNamedAdvertisers({ advertiserCondition }: StatementLiterals): string[] {
    if (advertiserCondition === undefined) return [];
    return [...this.#getAdvertiserKeys()].flatMap(([advertiserIdentity, key]) =>
      key !== null && isMatchingAdvertiser(advertiserCondition, advertiserIdentity) ? [key] : [],
    );
  }
}
