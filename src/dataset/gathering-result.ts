import { truncate } from '../present/fit.ts';
import { sanitizeLine } from '../present/text.ts';
import { type DatasetContents, type Gathering, idKey } from '../state/dataset.ts';
import type { AdRowReader } from './ad-row-reader.ts';
import type { Row } from './columns.ts';
import { adIdsOf, differences, foundBy, foundInParts, isComplete, lastComplete } from './gatherings.ts';
import { type GatheredRows, type SummaryRow, summarize, summaryRow } from './summary.ts';
import { summaryText } from './summary-text.ts';

/** How a gathering stands, as data. */
export interface GatheringResult {
  gathering: string;
  found: number | null;
  /** In words, where that is not known of all parts. */
  foundInParts?: string;
  read: number;
  added: number;
  updated: number;
  gone: string[] | null;
  complete: boolean;
  gatheredAt: string;
  /** Ads that were read and are no longer kept. */
  missing?: number;
  sinceLast?: SinceLast;
  summary: string;
}

/** What differs from the last complete gathering of the same question. */
export interface SinceLast {
  gatheredAt: string;
  fresh: number;
  updated: number;
  gone: number;
}

export interface ResultOptions {
  contents: DatasetContents;
  adRows: AdRowReader;
  tenantId: string;
  /** What there was before this call, and the ids of the ads that it has read. */
  before: DatasetContents;
  brought: ReadonlySet<string>;
}

/** Ids that are listed; the others are counted. */
const maxGone = 40;

export async function resultOf(gathering: Gathering, options: ResultOptions): Promise<GatheringResult> {
  const { contents, before, brought } = options;
  const ids = adIdsOf(gathering, contents);
  const read = contents.ads.filter(({ id }) => brought.has(idKey(id)));
  const earlier = new Map(before.ads.map(({ id, sinceOrder }) => [idKey(id), sinceOrder]));
  const rows = await rowsOf(ids, options);
  const inParts = foundInParts(gathering, contents);
  const missing = ids.size - rows.ads.length;
  const isWhole = isComplete(gathering, contents);
  const last = isWhole ? lastComplete(gathering, contents) : undefined;
  const changes = last && differences(last, gathering, contents);
  return {
    gathering: gathering.id,
    found: foundBy(gathering, contents),
    ...(inParts && { foundInParts: inParts }),
    read: ids.size,
    added: read.filter(({ id }) => !earlier.has(idKey(id))).length,
    updated: read.filter(({ id, sinceOrder }) => sinceOrder !== (earlier.get(idKey(id)) ?? sinceOrder)).length,
    gone: changes?.gone.slice(0, maxGone).map(cleanId) ?? null,
    complete: isWhole,
    gatheredAt: isoDate(gathering.gatheredAt),
    ...(missing > 0 && { missing }),
    ...(changes && {
      sinceLast: {
        gatheredAt: isoDate(last.gatheredAt),
        fresh: changes.fresh.length,
        updated: changes.updated.length,
        gone: changes.gone.length,
      },
    }),
    summary: summaryText(summarize(rows)),
  };
}

async function rowsOf(ids: ReadonlySet<string>, { contents, adRows, tenantId }: ResultOptions): Promise<GatheredRows> {
  const ads: SummaryRow[] = [];
  const places: Row<'ad_countries'>[] = [];
  for await (const part of adRows.read(tenantId, contents, { json: false, ids }))
    for (const { ad, countries } of part) {
      ads.push(summaryRow(ad));
      places.push(...countries);
    }
  return { ads, countries: places };
}

const cleanId = (id: string) => truncate(sanitizeLine(id.slice(0, 200)), 60);

const isoDate = (at: number) => new Date(at).toISOString();
