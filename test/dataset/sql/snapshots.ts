import { buildAdRows } from '../../../src/dataset/ad-rows.ts';
import type { DatasetSnapshot, TableRows } from '../../../src/dataset/sql/pool.ts';

const gatheredAt = Date.UTC(2026, 10, 20);

/** Creates a snapshot of ads. `wanted` records the options of each request for its tables. */
export function createSnapshot(tenantId: string, ads: object[], version = '1'): DatasetSnapshot & { wanted: object[] } {
  return {
    tenantId,
    version,
    wanted: [],
    *readTables(wanted): Iterable<TableRows> {
      this.wanted.push(wanted);
      const rows = ads.map((ad) => buildAdRows(ad, { gatheredAt }));
      yield { table: 'ads', rows: rows.map(({ ad }) => ad) };
      yield { table: 'ad_countries', rows: rows.flatMap(({ countries }) => countries) };
      yield { table: 'ad_cards', rows: rows.flatMap(({ cards }) => cards) };
    },
  };
}

/** Creates ads whose fields vary with their index. */
export const createAds = (count: number): object[] =>
  Array.from({ length: count }, (_, index) => ({
    id: `ad-${index}`,
    pageId: `page-${index % 5}`,
    headline: index % 3 === 0 ? null : `Headline ${index}`,
    body: `Boots for trail ${index}`,
    displayFormat: index % 2 === 0 ? 'VIDEO' : 'IMAGE',
    duplicates: index,
    countries: index % 2 === 0 ? ['DE', 'AT'] : [],
  }));
