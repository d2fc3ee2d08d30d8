import { adFields } from '../../views/fields.ts';
import { groupBy } from '../../views/lists.ts';
import { createAdvertiserKeyFinder } from '../advertisers.ts';
import { type Cell, getColumnNames, type TableName, tables } from '../tables.ts';
import { includesAdvertiser, type StatementLiterals } from './literals.ts';
import type { ReadField, ReadFields } from './statement.ts';

/**
 * The tables that contain ad fields. If a statement only counts the rows of a table, the column in this map counts as
 * read. For example, a statement that counts the rows of `ad_countries` reads `country`.
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

/** Columns that are set in every row. They are not counted as ad fields, because no ad lacks them. */
const keyColumns = new Set(['id', 'number', 'firstGatheredAt', 'gatheredAt', 'json']);

/** Tables without ads. Missing ads do not affect statements that read only these tables. */
const tablesWithoutAds = new Set(['gatherings', 'months']);

/**
 * API fields that the table `ads` does not contain under the same name, with the table and column that contain them.
 */
const columnByJsonField: Record<string, readonly [table: AdTable, column: string]> = {
  countries: ['ad_countries', 'country'],
  publisherPlatform: ['ad_platforms', 'platform'],
  cards: ['ad_cards', 'number'],
  page: ['ads', 'pageName'],
};

/**
 * Name of the view that contains the current ads. If a statement reads ads only through this view, only the ads of the
 * view are counted.
 */
const viewName = 'current_ads';
/**
 * Only the definition of the view `current_ads` is expected to read this column. If SQLite reports such a read, the
 * statement uses the view.
 */
const columnReadOnlyByView = 'gathered.adId';

/** The columns that an SQL statement reads, as SQLite reports them while compiling the statement. */
export class ReadColumns {
  /** The tables and views that the statement reads, in lower case. */
  readonly #tables = new Set<string>();
  /** Columns such as `ads.headline`. The entry `ads.` means that the rows of the table are only counted. */
  readonly #columns = new Set<string>();
  /** Columns that are read by the view `current_ads`, or by a common table expression with the same name. */
  readonly #columnsOfView = new Set<string>();

  /**
   * Adds a column that the statement reads. `reader` is the name of the view or common table expression through which
   * it is read.
   */
  add(table: string, column: string, reader: string): void {
    this.#tables.add(table.toLowerCase());
    (reader === viewName ? this.#columnsOfView : this.#columns).add(`${table.toLowerCase()}.${column}`);
  }

  /** Adds a table that the statement joins. The table `ads` is ignored, because the view `current_ads` opens it too. */
  addJoinedTable(table: string): void {
    if (isAdTable(table) && table !== 'ads') this.add(table, '', '');
  }

  /** Returns true if the statement reads a table with ads or pages. */
  isAboutAds(): boolean {
    return [...this.#tables].some((table) => !tablesWithoutAds.has(table));
  }

  /**
   * Groups the columns by table or view. Columns that the view itself reads are ignored, because the view reads all
   * columns of `ads` even if the statement needs only a few.
   */
  groupByTable(): ReadonlyMap<string, readonly string[]> {
    const usesView = this.#columnsOfView.has(columnReadOnlyByView);
    const columns = [...this.#columns, ...(usesView ? [`${viewName}.`] : this.#columnsOfView)];
    const columnPairs = columns.map((column) => column.split('.') as [table: string, column: string]);
    const adColumnPairs = columnPairs.filter(([table]) => table === viewName || isAdTable(table));
    return new Map(
      [...groupBy(adColumnPairs, ([table]) => table)].map(([table, tablePairs]) => [
        table,
        tablePairs.map(([, name]) => name),
      ]),
    );
  }
}

/** A bit for each column of `ads`. For each ad, a single number can then store which columns have a value. */
const bitsByColumn = getColumnNames('ads').map((_, index) => 1n << BigInt(index));

/** A field of ads: its name in results, and the table and column that contain it. */
interface AdField {
  name: string;
  table: AdTable;
  column: string;
}

/**
 * Returns the ad fields among the columns that a statement reads, without duplicates. If the statement reads the column
 * `json`, the JSON paths in its text determine the fields.
 */
function listFields(readColumns: ReadonlyMap<string, readonly string[]>, { jsonFields }: StatementLiterals): AdField[] {
  const adColumns = ['ads', viewName].flatMap((table) => readColumns.get(table) ?? []);
  const columnsInJson = adColumns.includes('json') ? [...jsonFields].flatMap(findColumnOfJsonField) : [];
  return (Object.keys(mainColumnByTable) as AdTable[]).flatMap((table) => {
    const readColumnNames = table === 'ads' ? adColumns : readColumns.get(table);
    const jsonColumns = columnsInJson.flatMap((jsonColumn) => (jsonColumn.table === table ? jsonColumn.column : []));
    if (readColumnNames === undefined && jsonColumns.length === 0) return [];
    const columns = [...(readColumnNames ?? []), ...jsonColumns];
    const fields = columns.filter((column) => Object.hasOwn(tables[table], column) && !keyColumns.has(column));
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
 * Returns the column that contains a field of the API. Returns no column for other names, because the JSON of an ad
 * contains only API fields.
 */
function findColumnOfJsonField(field: string): Pick<AdField, 'table' | 'column'>[] {
  const [table, column] = Object.hasOwn(columnByJsonField, field) ? (columnByJsonField[field] ?? []) : [];
  if (table !== undefined && column !== undefined) return [{ table, column }];
  return apiColumns.has(field) ? [{ table: 'ads', column: field }] : [];
}

const apiColumns = new Set(
  ['pageId', 'pageName', ...Object.keys(adFields)].filter((name) => Object.hasOwn(tables.ads, name)),
);

/** The values of one ad that are needed to count fields: which columns have a value, and the advertiser. */
interface CountedAd {
  /** The columns of `ads` that have a value, with one bit for each. */
  columnBits: bigint;
  advertiser: AdvertiserNames;
}

/**
 * The id and name of an advertiser as they appear in its ads. Ads with the same values share one object to save memory.
 */
interface AdvertiserNames {
  pageId: string | null;
  pageName: string | null;
}

/** A set of ads whose fields are counted, with the counts that were computed so far. */
interface CountingScope {
  ads: readonly (readonly [id: string, ad: CountedAd])[];
  adsByAdvertiser: ReadonlyMap<string, number>;
  /** Cached field counts, by the name of the field. */
  cachedFields: Map<string, ReadField>;
}

/**
 * Counts how many ads have a value for each field. The values are counted while the tables are loaded. Counting with
 * SQL would take seconds, because SQLite stores these columns behind long texts.
 */
export class FieldCounts {
  readonly #adsById = new Map<string, CountedAd>();
  readonly #advertisers = new Map<string, AdvertiserNames>();
  /**
   * The field counts for all ads, and for the ads in the view `current_ads`. Later statements use the counts again,
   * because the tables do not change after loading.
   */
  readonly #scopes: { all?: CountingScope; current?: CountingScope } = {};
  /** The key of each advertiser, computed on first use. Ads with the same key belong to the same advertiser. */
  #advertiserKeys: ReadonlyMap<AdvertiserNames, string | null> | undefined;
  /**
   * The ids of the ads that have a value, for each column of other tables than `ads`. A key consists of table and
   * column, e.g. `ad_countries.country`.
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
        let values = 0n;
        for (const [index, cell] of row.entries()) if (cell !== null) values |= bitsByColumn[index] ?? 0n;
        this.#adsById.set(id, {
          columnBits: values,
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
   * Returns the key of each advertiser. The keys are computed only once, because all ads are loaded before the first
   * statement runs.
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
    const readsOnlyView = columnsByTable.has(viewName) && !columnsByTable.has('ads');
    const scopeName = readsOnlyView ? 'current' : 'all';
    const scope = this.#scopes[scopeName] ?? this.#createScope(readsOnlyView ? readCurrentIds() : undefined);
    this.#scopes[scopeName] = scope;
    const { ads, adsByAdvertiser } = scope;
    const fields = listFields(columnsByTable, literals).map((field) => this.#countField(field, scope));
    const readsAdvertiserColumns = ['ads', viewName].some((table) =>
      columnsByTable.get(table)?.some((column) => column === 'pageId' || column === 'pageName'),
    );
    const namedAdvertisers = readsAdvertiserColumns ? this.#findNamedAdvertisers(literals) : [];
    return { totalAds: ads.length, adsByAdvertiser, fields, namedAdvertisers: new Set(namedAdvertisers) };
  }

  #createScope(ids: ReadonlySet<string> | undefined): CountingScope {
    const ads = [...this.#adsById].filter(([id]) => ids === undefined || ids.has(id));
    return { ads, adsByAdvertiser: this.#countByAdvertiser(ads.map(([, ad]) => ad)), cachedFields: new Map() };
  }

  #countField(field: AdField, { ads, cachedFields }: CountingScope): ReadField {
    const { name } = field;
    const cachedField = cachedFields.get(name);
    if (cachedField) return cachedField;
    const hasValue = this.#createValueTest(field);
    const adsWithoutValue = ads.flatMap(([id, ad]) => (hasValue(id, ad) ? [] : [ad]));
    const counts = {
      name,
      adsWithValue: ads.length - adsWithoutValue.length,
      missingByAdvertiser: this.#countByAdvertiser(adsWithoutValue),
    };
    cachedFields.set(name, counts);
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
      const ids = this.#getIds(table, column);
      return (id) => ids.has(id);
    }
    const columnBit = bitsByColumn[getColumnNames('ads').indexOf(column)] ?? 0n;
    return (_, { columnBits }) => (columnBits & columnBit) !== 0n;
  }

  /**
   * Returns the keys of the advertisers to which a statement limits its rows. Returns an empty list if it reads all
   * advertisers.
   */
  #findNamedAdvertisers({ advertisers }: StatementLiterals): string[] {
    if (advertisers === undefined) return [];
    return [...this.#getAdvertiserKeys()].flatMap(([names, key]) =>
      key !== null && includesAdvertiser(advertisers, names) ? [key] : [],
    );
  }
}
