import { groupBy } from '../../views/lists.ts';
import { type Cell, getColumnNames, type TableName, tables } from '../tables.ts';
import type { ReadFields } from './statement.ts';

/**
 * The tables that contain ad fields. The value is the column that represents the table if a statement only counts its
 * rows.
 */
const mainColumns = {
  ads: undefined,
  ad_countries: 'country',
  ad_platforms: 'platform',
  ad_reach: 'reach',
  ad_cards: 'number',
} as const satisfies Partial<Record<TableName, string | undefined>>;
type AdTable = keyof typeof mainColumns;

const isAdTable = (table: string): table is AdTable => Object.hasOwn(mainColumns, table);

/** Columns that are set in every row. They do not count as fields of an ad. */
const keyColumns = new Set(['id', 'number', 'firstGatheredAt', 'gatheredAt', 'json']);

/** If a statement reads only ads of this view, fields are counted over the view instead of all ads. */
const viewName = 'current_ads';
/** A column that is read only by the definition of the view. */
const columnOfView = 'gathered.adId';

/** The columns that a statement reads, as SQLite reports them while compiling the statement. */
export class ReadColumns {
  /** Columns such as `ads.headline`. The entry `ads.` means that the rows of the table are only counted. */
  readonly #columns = new Set<string>();
  /** Columns that are read by the view, or by a common table expression with the same name. */
  readonly #columnsOfView = new Set<string>();

  /** Adds a column. `reader` is the name of the view or common table expression that reads the column. */
  add(table: string, column: string, reader: string): void {
    (reader === viewName ? this.#columnsOfView : this.#columns).add(`${table.toLowerCase()}.${column}`);
  }

  /**
   * Groups the columns by table or view. Columns that the view itself reads are ignored: it reads all columns of `ads`,
   * whatever the statement uses.
   */
  groupByTable(): ReadonlyMap<string, readonly string[]> {
    const isView = this.#columnsOfView.has(columnOfView);
    const columns = [...this.#columns, ...(isView ? [`${viewName}.`] : this.#columnsOfView)];
    const pairs = columns.map((column) => column.split('.') as [table: string, column: string]);
    const adPairs = pairs.filter(([table]) => table === viewName || isAdTable(table));
    return new Map(
      [...groupBy(adPairs, ([table]) => table)].map(([table, all]) => [table, all.map(([, name]) => name)]),
    );
  }
}

/** One bit per column of `ads`. */
const columnBits = getColumnNames('ads').map((_, index) => 1n << BigInt(index));

/** A field of ads: the name that results show, and the column that contains the field. */
interface AdField {
  name: string;
  table: AdTable;
  column: string;
}

/** Returns the ad fields among the columns that a statement reads, without duplicates. */
function listFields(readColumns: ReadonlyMap<string, readonly string[]>): AdField[] {
  const adColumns = ['ads', viewName].flatMap((table) => readColumns.get(table) ?? []);
  return (Object.keys(mainColumns) as AdTable[]).flatMap((table) => {
    const columns = table === 'ads' ? adColumns : readColumns.get(table);
    if (columns === undefined) return [];
    const fields = columns.filter((column) => Object.hasOwn(tables[table], column) && !keyColumns.has(column));
    const mainColumn = mainColumns[table];
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
 * Counts how many ads have a value for each field. Values are counted while the tables are loaded. Counting with SQL
 * would take seconds, because SQLite stores these columns behind long texts.
 */
export class FieldCounts {
  /** For each ad, the bits of the columns of `ads` that have a value. */
  readonly #valuesById = new Map<string, bigint>();
  /** For each column of the other tables: the ids of the ads that have a value. */
  readonly #idsByColumn = new Map<string, Set<string>>();

  /** Adds rows of a table. The cells of a row are in the order of the table's columns. */
  addRows(table: TableName, rows: readonly (readonly Cell[])[]): void {
    if (!isAdTable(table)) return;
    const columns = getColumnNames(table);
    const idIndex = columns.indexOf('id');
    for (const row of rows) {
      const id = String(row[idIndex]);
      if (table === 'ads') {
        let values = 0n;
        for (const [index, cell] of row.entries()) if (cell !== null) values |= columnBits[index] ?? 0n;
        this.#valuesById.set(id, values);
      } else
        for (const [index, cell] of row.entries())
          if (cell !== null && index !== idIndex) this.#getIds(table, columns[index] ?? '').add(id);
    }
  }

  #getIds(table: string, column: string): Set<string> {
    const key = `${table}.${column}`;
    const ids = this.#idsByColumn.get(key) ?? new Set();
    this.#idsByColumn.set(key, ids);
    return ids;
  }

  /**
   * Returns how many ads have a value for each field that a statement reads. Returns undefined if the statement reads
   * no table with ads.
   * @param readCurrentIds returns the ids in `current_ads`
   */
  countFields(readColumns: ReadColumns, readCurrentIds: () => ReadonlySet<string>): ReadFields | undefined {
    const columnsByTable = readColumns.groupByTable();
    if (columnsByTable.size === 0) return undefined;
    const readsOnlyView = columnsByTable.has(viewName) && !columnsByTable.has('ads');
    const ids = readsOnlyView ? readCurrentIds() : new Set(this.#valuesById.keys());
    const fields = listFields(columnsByTable).map((field) => ({ name: field.name, ads: this.#countAds(field, ids) }));
    return { ads: ids.size, fields };
  }

  #countAds({ table, column }: AdField, ids: ReadonlySet<string>): number {
    let count = 0;
    if (table === 'ads') {
      const bit = columnBits[getColumnNames('ads').indexOf(column)] ?? 0n;
      for (const id of ids) if (((this.#valuesById.get(id) ?? 0n) & bit) !== 0n) count++;
    } else for (const id of this.#getIds(table, column)) if (ids.has(id)) count++;
    return count;
  }
}
