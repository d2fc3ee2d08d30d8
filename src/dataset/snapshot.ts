import { canonical } from '../api/json.ts';
import { type DatasetContents, type Gathering, normalizeAdId } from '../storage/dataset.ts';
import { listContentVersions, parseItem, type StoredItem } from '../storage/item-versions.ts';
import { pageFields } from '../views/fields.ts';
import type { Fields } from '../views/view.ts';
import type { AdRowReader, AdRowReaders, AdRows } from './ad-rows.ts';
import { getLaunchesKnownUntil, selectCurrentGatherings } from './gatherings.ts';
import { groupLabelsByAd } from './labels.ts';
import type { Snapshot, SqlExport, SqlPool, SqlQuery, TableRows } from './sql/pool.ts';
import {
  buildMonthRows,
  createCellReader,
  formatIsoTime,
  type PageRow,
  type Row,
  toIdCell,
  toJsonCell,
} from './tables.ts';

/** Opens SQL over the datasets of all tenants. The engine is loaded with the first statement. */
export function openDatasetSql(adRows: AdRowReaders) {
  let pool: Promise<SqlPool> | undefined;
  const open = () => {
    pool ??= import('./sql/pool.ts').then(({ SqlPool }) => new SqlPool());
    return pool;
  };
  return {
    forTenant(tenantId: string) {
      const snapshot = (contents: DatasetContents) => ({
        tenantId,
        ...createSnapshot(adRows.forTenant(tenantId), contents),
      });
      return {
        query: async (contents: DatasetContents, query: SqlQuery) => (await open()).query(snapshot(contents), query),
        /** Hands all rows of a statement to `read`, uncut and in batches. */
        export: async <Result>(
          contents: DatasetContents,
          query: Pick<SqlQuery, 'sql' | 'signal'>,
          read: (exported: SqlExport) => Promise<Result>,
        ) => (await open()).export(snapshot(contents), query, read),
      };
    },
    close: async () => (await pool)?.close(),
  };
}

export type DatasetSql = ReturnType<ReturnType<typeof openDatasetSql>['forTenant']>;

export function createSnapshot(reader: AdRowReader, contents: DatasetContents): Omit<Snapshot, 'tenantId'> {
  return {
    version: `${contents.version} ${contents.labelsVersion} ${contents.picturesVersion}`,
    async *tables({ json }): AsyncGenerator<TableRows> {
      let earliest: string | undefined;
      for await (const part of reader.readRows(contents, { json })) {
        for (const { ad } of part)
          if (ad.startedAt !== null && ad.startedAt < (earliest ?? '~')) earliest = ad.startedAt;
        yield* adTables(part);
      }
      yield* otherTables(contents, json);
      const knownUntil = getLaunchesKnownUntil(contents);
      yield { table: 'months', rows: earliest && knownUntil ? buildMonthRows(earliest, knownUntil) : [] };
    },
  };
}

function* adTables(rows: readonly AdRows[]): Generator<TableRows> {
  yield { table: 'ads', rows: rows.map(({ ad }) => ad) };
  yield { table: 'ad_countries', rows: rows.flatMap(({ countries }) => countries) };
  yield { table: 'ad_platforms', rows: rows.flatMap(({ platforms }) => platforms) };
  yield { table: 'ad_cards', rows: rows.flatMap(({ cards }) => cards) };
}

function* otherTables(contents: DatasetContents, json: boolean): Generator<TableRows> {
  const { ads, pages, gatherings } = contents;
  yield { table: 'ad_versions', rows: each(ads, (item) => versionRows(item, json)) };
  yield { table: 'pages', rows: each(pages, (item) => [buildPageRow(parseItem(item), item, jsonOf(item.json, json))]) };
  const current = new Set(selectCurrentGatherings(contents));
  yield { table: 'gatherings', rows: each(gatherings, (one) => [gatheringRow(one, current.has(one))]) };
  const spelling = new Map(ads.map(({ id }) => [normalizeAdId(id), id]));
  const spelled = (id: string) => spelling.get(id) ?? id;
  const adsOf = ({ id: gatheringId, adIds }: Gathering) => [...adIds].map((id) => ({ gatheringId, adId: spelled(id) }));
  yield { table: 'gathered', rows: each(gatherings, adsOf) };
  const labels = groupLabelsByAd(contents).values();
  yield { table: 'labels', rows: each(labels, (all) => all.map((one) => ({ ...one, adId: spelled(one.adId) }))) };
}

/** Rows are made only when they are read: all at once would take too much memory. */
function* each<Item, Row>(items: Iterable<Item>, rowsOf: (item: Item) => readonly Row[]): Generator<Row> {
  for (const item of items) yield* rowsOf(item);
}

const decoder = new TextDecoder();

const jsonOf = (bytes: Uint8Array, wanted: boolean): string => (wanted ? decoder.decode(bytes) : '');

const versionRows = (item: StoredItem, wanted: boolean): Row<'ad_versions'>[] =>
  listContentVersions(item).map(({ at, json }) => ({
    id: item.id,
    gatheredAt: formatIsoTime(at),
    json: toJsonCell(jsonOf(json, wanted)),
  }));

function gatheringRow(gathering: Gathering, isNewest: boolean): Row<'gatherings'> {
  const { id, filters, collectionId, found, adIds, charged, complete, gatheredAt } = gathering;
  return {
    id,
    filters: filters === null ? null : canonical(filters),
    collectionId,
    found,
    read: adIds.size,
    charged,
    complete: Number(complete),
    gatheredAt: formatIsoTime(gatheredAt),
    newest: Number(isNewest),
  };
}

export function buildPageRow(page: object, { at, firstAt }: Pick<StoredItem, 'at' | 'firstAt'>, json: string): PageRow {
  return Object.assign({ pageId: toIdCell((page as Fields).pageId) ?? '' }, sentPageCells(page), {
    firstGatheredAt: formatIsoTime(firstAt),
    gatheredAt: formatIsoTime(at),
    json: toJsonCell(json),
  });
}

const sentPageCells = createCellReader(pageFields);
