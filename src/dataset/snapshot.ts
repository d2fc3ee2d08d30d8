import { toCanonicalJson } from '../api/json.ts';
import { createLazyGetter } from '../lazy-getter.ts';
import { type DatasetContents, type Gathering, normalizeAdId } from '../storage/dataset.ts';
import { listContentVersions, parseItem, type StoredItem } from '../storage/item-versions.ts';
import { pageFields } from '../views/fields.ts';
import { roundCredits } from '../views/numbers.ts';
import type { UntypedFields } from '../views/view.ts';
import type { AdRowReader, AdRowReaderFactory, AdRows } from './ad-rows.ts';
import { getLaunchCoverage, selectCurrentGatherings } from './gatherings.ts';
import { groupLabelsByAd } from './labels.ts';
import type { LastSeenRange } from './last-seen.ts';
import type { DatasetSnapshot, SqlExport, SqlQuery, TableRows } from './sql/pool.ts';
import {
  buildMonthRows,
  createCellReader,
  formatIsoTime,
  type PageRow,
  type Row,
  toIdCell,
  toJsonCell,
} from './tables.ts';

/**
 * Creates the functions that run SQL statements on the datasets of all tenants (API keys). The SQL engine is loaded
 * when the first statement runs, because most sessions run no statement.
 */
export function createDatasetSql(adRowReaders: AdRowReaderFactory) {
  const openPool = createLazyGetter(async () => new (await import('./sql/pool.ts')).SqlPool());
  return {
    forTenant(tenantId: string) {
      const createTenantSnapshot = (contents: DatasetContents) => ({
        tenantId,
        ...createSnapshot(adRowReaders.forTenant(tenantId), contents),
      });
      return {
        query: async (contents: DatasetContents, query: SqlQuery) =>
          (await openPool()).query(createTenantSnapshot(contents), query),
        /** Runs an SQL statement and passes all its rows to `readRows` in batches, without shortening the cells. */
        exportRows: async <Result>(
          contents: DatasetContents,
          query: Pick<SqlQuery, 'sql' | 'signal'>,
          readRows: (sqlExport: SqlExport) => Promise<Result>,
        ) => (await openPool()).exportRows(createTenantSnapshot(contents), query, readRows),
      };
    },
    close: async () => (await openPool.getIfCreated())?.close(),
  };
}

/** The functions that run SQL statements on the dataset of one tenant (API key). */
export type DatasetSql = ReturnType<ReturnType<typeof createDatasetSql>['forTenant']>;

/**
 * Creates a snapshot of a dataset for SQL. The version of the snapshot changes whenever SQL statements may return
 * different results.
 */
export function createSnapshot(adRowReader: AdRowReader, contents: DatasetContents): Omit<DatasetSnapshot, 'tenantId'> {
  return {
    version: `${contents.version} ${contents.labelsVersion} ${contents.pictureRecordsVersion} ${adRowReader.getDailyVersion()}`,
    async *readTables({ includeJson }): AsyncGenerator<TableRows> {
      let earliestStartedAt: string | undefined;
      for await (const batch of adRowReader.readRows(contents, { includeJson })) {
        for (const { ad } of batch)
          if (ad.startedAt !== null && ad.startedAt < (earliestStartedAt ?? '~')) earliestStartedAt = ad.startedAt;
        yield* listAdTables(batch);
      }
      yield* listOtherTables(contents, await adRowReader.readLastSeenRanges(contents), includeJson);
      const launchCoverage = getLaunchCoverage(contents);
      yield {
        table: 'months',
        rows: earliestStartedAt && launchCoverage ? buildMonthRows(earliestStartedAt, launchCoverage) : [],
      };
    },
  };
}

function* listAdTables(rows: readonly AdRows[]): Generator<TableRows> {
  yield { table: 'ads', rows: rows.map(({ ad }) => ad) };
  yield { table: 'ad_countries', rows: rows.flatMap(({ countries }) => countries) };
  yield { table: 'ad_platforms', rows: rows.flatMap(({ platforms }) => platforms) };
  yield { table: 'ad_reach', rows: rows.flatMap(({ reach }) => reach) };
  yield { table: 'ad_cards', rows: rows.flatMap(({ cards }) => cards) };
}

function* listOtherTables(
  contents: DatasetContents,
  lastSeenRanges: ReadonlyMap<string, LastSeenRange>,
  includeJson: boolean,
): Generator<TableRows> {
  const { ads, pages, gatherings } = contents;
  yield { table: 'ad_versions', rows: buildRowsLazily(ads, (item) => buildVersionRows(item, includeJson)) };
  yield {
    table: 'pages',
    rows: buildRowsLazily(pages, (item) => [buildPageRow(parseItem(item), item, decodeJson(item.json, includeJson))]),
  };
  const currentGatherings = new Set(selectCurrentGatherings(contents));
  yield {
    table: 'gatherings',
    rows: buildRowsLazily(gatherings, (gathering) => [
      buildGatheringRow(gathering, currentGatherings.has(gathering), lastSeenRanges.get(gathering.id)),
    ]),
  };
  const originalIds = new Map(ads.map(({ id }) => [normalizeAdId(id), id]));
  const restoreIdSpelling = (id: string) => originalIds.get(id) ?? id;
  const listGatheredAds = ({ id: gatheringId, adIds }: Gathering) =>
    [...adIds].map((id) => ({ gatheringId, adId: restoreIdSpelling(id) }));
  yield { table: 'gathered', rows: buildRowsLazily(gatherings, listGatheredAds) };
  const labels = groupLabelsByAd(contents).values();
  yield {
    table: 'labels',
    rows: buildRowsLazily(labels, (adLabels) =>
      adLabels.map((adLabel) => ({ ...adLabel, adId: restoreIdSpelling(adLabel.adId) })),
    ),
  };
}

/** Yields the table rows of the items one by one, because all rows together would take too much memory. */
function* buildRowsLazily<Item, Row>(items: Iterable<Item>, buildRows: (item: Item) => readonly Row[]): Generator<Row> {
  for (const item of items) yield* buildRows(item);
}

const decoder = new TextDecoder();

const decodeJson = (bytes: Uint8Array, includeJson: boolean): string => (includeJson ? decoder.decode(bytes) : '');

const buildVersionRows = (item: StoredItem, includeJson: boolean): Row<'ad_versions'>[] =>
  listContentVersions(item).map(({ at, json }) => ({
    id: item.id,
    gatheredAt: formatIsoTime(at),
    json: toJsonCell(decodeJson(json, includeJson)),
  }));

/**
 * Builds the row of the `gatherings` table for the stored ads of one search.
 * @param isCurrent true if the ads of the gathering belong to the `current_ads` SQL view
 * @param lastSeenRange the first and the last date on which any ad of the gathering was seen running
 */
function buildGatheringRow(
  gathering: Gathering,
  isCurrent: boolean,
  lastSeenRange: LastSeenRange = { lastSeenFrom: null, lastSeenTo: null },
): Row<'gatherings'> {
  const { id, filters, collectionId, matchingCount, adIds, chargedCredits, isComplete, gatheredAt } = gathering;
  return {
    id,
    filters: filters === null ? null : toCanonicalJson(filters),
    collectionId,
    found: matchingCount,
    read: adIds.size,
    charged: chargedCredits === null ? null : roundCredits(chargedCredits),
    complete: Number(isComplete),
    gatheredAt: formatIsoTime(gatheredAt),
    newest: Number(isCurrent),
    ...lastSeenRange,
  };
}

/**
 * Builds the table row of an advertiser page. The row contains the API fields, the times at which the page was first
 * and last read, and the JSON of the page.
 */
export function buildPageRow(page: object, { at, firstAt }: Pick<StoredItem, 'at' | 'firstAt'>, json: string): PageRow {
  return Object.assign({ pageId: toIdCell((page as UntypedFields).pageId) ?? '' }, readApiPageCells(page), {
    firstGatheredAt: formatIsoTime(firstAt),
    gatheredAt: formatIsoTime(at),
    json: toJsonCell(json),
  });
}

const readApiPageCells = createCellReader(pageFields);
