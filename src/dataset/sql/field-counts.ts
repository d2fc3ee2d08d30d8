import { adFields } from '../../views/fields.ts';
import { groupBy } from '../../views/group-by.ts';
import { createAdvertiserKeyFinder } from '../advertisers.ts';
import { type Cell, getColumnNames, type TableName, tables } from '../tables.ts';
import { includesAdvertiser, type StatementLiterals } from './literals.ts';
import type { ReadField, ReadFields } from './statement.ts';

/**
 * The tables that contain ad fields, each with the column that counts as read if a statement only counts rows. For
 * example, `SELECT count(*) FROM ad_countries` reads `country`.
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

/** Columns that have a value in every row. They are not counted as ad fields, because no ad lacks them. */
const alwaysFilledColumns = new Set(['id', 'number', 'firstGatheredAt', 'gatheredAt', 'json']);

/** Tables without ads. Missing ads do not affect statements that read only these tables. */
const tablesWithoutAds = new Set(['gatherings', 'months']);

/** Maps an API field to its table and column, if the table `ads` has no column of that name. */
const columnByJsonField: Record<string, readonly [table: AdTable, column: string]> = {
  countries: ['ad_countries', 'country'],
  publisherPlatform: ['ad_platforms', 'platform'],
  cards: ['ad_cards', 'number'],
  page: ['ads', 'pageName'],
};

/**
 * The view of the current ads. If a statement reads ads only through this view, only the ads in the view are counted.
 */
const currentAdsView = 'current_ads';
/**
 * If this column is read through `current_ads`, the statement uses the view. A common table expression with the same
 * name hardly ever reads it.
 */
const columnReadByView = 'gathered.adId';

/** The columns that an SQL statement reads, as SQLite reports them while compiling the statement. */
export class ReadColumns {
  readonly #tables = new Set<string>();
  /** Columns such as `ads.headline`. `ads.` means that the statement only counts the rows of the table. */
  readonly #columns = new Set<string>();
  /** Columns that the view `current_ads`, or a common table expression of this name, reads. */
  readonly #columnsOfView = new Set<string>();

  /** Adds a column that the statement reads. `reader` is the view or common table expression that reads it, if any. */
  add(table: string, column: string, reader: string): void {
    this.#tables.add(table.toLowerCase());
    (reader === currentAdsView ? this.#columnsOfView : this.#columns).add(`${table.toLowerCase()}.${column}`);
  }

  /** Adds a table that the statement joins. Ignores `ads`, because the view `current_ads` opens it too. */
  addJoinedTable(table: string): void {
    if (isAdTable(table) && table !== 'ads') this.add(table, '', '');
  }

  /** Returns true if the statement reads a table with ads or pages. */
  isAboutAds(): boolean {
    return [...this.#tables].some((table) => !tablesWithoutAds.has(table));
  }

  /**
   * Groups the columns by table or view. Ignores the columns that the view itself reads, because it reads all columns
   * of `ads`, even if the statement needs only a few.
   */
  groupByTable(): ReadonlyMap<string, readonly string[]> {
    const usesView = this.#columnsOfView.has(columnReadByView);
    const columns = [...this.#columns, ...(usesView ? [`${currentAdsView}.`] : this.#columnsOfView)];
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

/** One bit per column of `ads`. A single number can then store which columns of an ad have a value. */
const bitsByColumn = getColumnNames('ads').map((_, index) => 1n << BigInt(index));

/** An ad field: its name in results, and the table and column that contain it. */
interface AdField {
  name: string;
  table: AdTable;
  column: string;
}

/**
 * Returns the ad fields that a statement reads, without duplicates. If it reads the column `json`, its JSON paths, e.g.
 * `$.headline`, determine the fields.
 */
function listReadFields(
  readColumns: ReadonlyMap<string, readonly string[]>,
  { jsonFields }: StatementLiterals,
): AdField[] {
  const adColumns = ['ads', currentAdsView].flatMap((table) => readColumns.get(table) ?? []);
  const columnsInJson = adColumns.includes('json') ? [...jsonFields].flatMap(findColumnOfJsonField) : [];
  return (Object.keys(mainColumnByTable) as AdTable[]).flatMap((table) => {
    const readColumnNames = table === 'ads' ? adColumns : readColumns.get(table);
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
 * Returns the column that contains an API field, e.g. `ad_countries.country` for `countries`. Returns an empty list for
 * a name that is no API field.
 */
function findColumnOfJsonField(field: string): Pick<AdField, 'table' | 'column'>[] {
  const [table, column] = Object.hasOwn(columnByJsonField, field) ? (columnByJsonField[field] ?? []) : [];
  if (table !== undefined && column !== undefined) return [{ table, column }];
  return apiColumns.has(field) ? [{ table: 'ads', column: field }] : [];
}

const apiColumns = new Set(
  ['pageId', 'pageName', ...Object.keys(adFields)].filter((name) => Object.hasOwn(tables.ads, name)),
);

/** The parts of an ad that are needed to count fields: which columns have a value, and the advertiser. */
interface CountedAd {
  /** One bit for each column of `ads`, set if the ad has a value. */
  columnBits: bigint;
  advertiser: AdvertiserNames;
}

/** The id and name of an advertiser in its ads. To save memory, ads with the same id and name share one object. */
interface AdvertiserNames {
  pageId: string | null;
  pageName: string | null;
}

/** A cache of field counts: the ads whose fields are counted, and the counts that are known so far. */
interface FieldCountCache {
  ads: readonly (readonly [id: string, ad: CountedAd])[];
  adsByAdvertiser: ReadonlyMap<string, number>;
  cachedFieldsByName: Map<string, ReadField>;
}

/**
 * Counts how many ads have a value for each field, while the tables are loaded. Counting with SQL would take seconds,
 * because SQLite stores these columns behind long texts.
 */
export class FieldCounts {
  readonly #adsById = new Map<string, CountedAd>();
  readonly #advertisers = new Map<string, AdvertiserNames>();
  /**
   * The field counts for all ads, and for the ads in `current_ads`. They stay valid, because the tables do not change
   * after loading.
   */
  readonly #cachedCounts: { all?: FieldCountCache; current?: FieldCountCache } = {};
  /** The key of each advertiser, computed on first use. */
  #advertiserKeys: ReadonlyMap<AdvertiserNames, string | null> | undefined;
  /**
   * The ids of the ads that have a value in a column of another table than `ads`. The keys are columns such as
   * `ad_countries.country`.
   */
  readonly #idsByColumn = new Map<string, Set<string>>();

  /** Adds rows of a table. The cells of a row are in the order of the table's columns. */
  addRows(table: TableName, rows: readonly (readonly Cell[])[]): void {
    if (!isAdTable(table)) return;
    const columns = getColumnNames(table);
    const idIndex = columns.indexOf('id');
    const [pageIdIndex, pageNameIndex] = [columns.indexOf('pageId'), columns.indexOf('pageName')];
    for (const row of rows) {
      const id = String(row[idIndex]);
      if (table === 'ads') {
        let valueBits = 0n;
        for (const [index, cell] of row.entries()) if (cell !== null) valueBits |= bitsByColumn[index] ?? 0n;
        this.#adsById.set(id, {
          columnBits: valueBits,
          advertiser: this.#addAdvertiser(row[pageIdIndex], row[pageNameIndex]),
        });
      } else
        for (const [index, cell] of row.entries())
          if (cell !== null && index !== idIndex) this.#getIds(table, columns[index] ?? '').add(id);
    }
  }

  #addAdvertiser(pageId: Cell = null, pageName: Cell = null): AdvertiserNames {
    const [id, name] = [pageId, pageName].map((cell) => (cell === null ? null : String(cell)));
    const key = JSON.stringify([id, name]);
    const advertiser = this.#advertisers.get(key) ?? { pageId: id ?? null, pageName: name ?? null };
    this.#advertisers.set(key, advertiser);
    return advertiser;
  }

  #getIds(table: string, column: string): Set<string> {
    const key = `${table}.${column}`;
    const ids = this.#idsByColumn.get(key) ?? new Set();
    this.#idsByColumn.set(key, ids);
    return ids;
  }

  /**
   * Returns the key of each advertiser. Computes the keys once, because all ads are loaded before the first statement
   * runs.
   */
  #getAdvertiserKeys(): ReadonlyMap<AdvertiserNames, string | null> {
    if (this.#advertiserKeys) return this.#advertiserKeys;
    const advertisers = [...this.#advertisers.values()];
    const findAdvertiserKey = createAdvertiserKeyFinder(advertisers);
    this.#advertiserKeys = new Map(advertisers.map((advertiser) => [advertiser, findAdvertiserKey(advertiser)]));
    return this.#advertiserKeys;
  }

  /**
   * Counts how many ads have a value for each field that an SQL statement reads. Returns undefined if the statement
   * reads no table with ads.
   * @param readCurrentIds returns the ids in `current_ads`
   */
  countFields(
    readColumns: ReadColumns,
    literals: StatementLiterals,
    readCurrentIds: () => ReadonlySet<string>,
  ): ReadFields | undefined {
    const columnsByTable = readColumns.groupByTable();
    if (columnsByTable.size === 0) return undefined;
    const readsOnlyView = columnsByTable.has(currentAdsView) && !columnsByTable.has('ads');
    const cacheName = readsOnlyView ? 'current' : 'all';
    const cache = this.#cachedCounts[cacheName] ?? this.#createCache(readsOnlyView ? readCurrentIds() : undefined);
    this.#cachedCounts[cacheName] = cache;
    const { ads, adsByAdvertiser } = cache;
    const fields = listReadFields(columnsByTable, literals).map((field) => this.#countField(field, cache));
    const readsAdvertiserColumns = ['ads', currentAdsView].some((table) =>
      columnsByTable.get(table)?.some((column) => column === 'pageId' || column === 'pageName'),
    );
    const namedAdvertisers = readsAdvertiserColumns ? this.#findNamedAdvertisers(literals) : [];
    return { totalAds: ads.length, adsByAdvertiser, fields, namedAdvertisers: new Set(namedAdvertisers) };
  }

  #createCache(ids: ReadonlySet<string> | undefined): FieldCountCache {
    const ads = [...this.#adsById].filter(([id]) => ids === undefined || ids.has(id));
    return { ads, adsByAdvertiser: this.#countByAdvertiser(ads.map(([, ad]) => ad)), cachedFieldsByName: new Map() };
  }

  #countField(field: AdField, { ads, cachedFieldsByName }: FieldCountCache): ReadField {
    const { name } = field;
    const cachedField = cachedFieldsByName.get(name);
    if (cachedField) return cachedField;
    const hasValue = this.#createValueTest(field);
    const adsWithoutValue = ads.flatMap(([id, ad]) => (hasValue(id, ad) ? [] : [ad]));
    const counts = {
      name,
      adsWithValue: ads.length - adsWithoutValue.length,
      missingByAdvertiser: this.#countByAdvertiser(adsWithoutValue),
    };
    cachedFieldsByName.set(name, counts);
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

  /** Creates a function that checks whether an ad has a value in a column. */
  #createValueTest({ table, column }: Pick<AdField, 'table' | 'column'>): (id: string, ad: CountedAd) => boolean {
    if (table !== 'ads') {
      const ids = this.#getIds(table, column);
      return (id) => ids.has(id);
    }
    const columnBit = bitsByColumn[getColumnNames('ads').indexOf(column)] ?? 0n;
    return (_, { columnBits }) => (columnBits & columnBit) !== 0n;
  }

  /**
   * Returns the keys of the advertisers to which a statement limits its rows. Returns an empty list if it may read ads
   * of any advertiser.
   */
  #findNamedAdvertisers({ advertisers }: StatementLiterals): string[] {
    if (advertisers === undefined) return [];
    return [...this.#getAdvertiserKeys()].flatMap(([names, key]) =>
      key !== null && includesAdvertiser(advertisers, names) ? [key] : [],
    );
  }
}
