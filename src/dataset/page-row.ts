import type { Fields } from '../present/copy-fields.ts';
import { dateCell, flagCell, idCell, isoTime, jsonCell, listCell, numberCell, textCell } from './cells.ts';
import type { PageRow } from './columns.ts';

export interface PageFacts {
  /** Milliseconds: when this version came. */
  gatheredAt: number;
  /** When its first version came. */
  firstGatheredAt?: number;
  /** The object as it came, where its text is at hand. */
  json?: string;
}

/** The row of a page as the API sent it, where any field may be missing or of another type. */
export function pageRow(page: object, { gatheredAt, firstGatheredAt = gatheredAt, json }: PageFacts): PageRow {
  const fields = page as Fields;
  return {
    pageId: idCell(fields.pageId) ?? '',
    pageName: textCell(fields.pageName),
    sourcePageExternalId: idCell(fields.sourcePageExternalId),
    pageLikes: numberCell(fields.pageLikes),
    pageIgFollowers: numberCell(fields.pageIgFollowers),
    adsAmount: numberCell(fields.adsAmount),
    adsTotalDuplicates: numberCell(fields.adsTotalDuplicates),
    audienceReach: numberCell(fields.audienceReach),
    averageDuplicates: numberCell(fields.averageDuplicates),
    trend: numberCell(fields.trend),
    performance: numberCell(fields.performance),
    pageCreatedAt: dateCell(fields.pageCreatedAt),
    createdAt: dateCell(fields.createdAt),
    detailsEstimated: flagCell(fields.detailsEstimated),
    technologySlugs: listCell(fields.technologySlugs),
    countries: listCell(fields.countries),
    languages: listCell(fields.languages),
    firstGatheredAt: isoTime(firstGatheredAt),
    gatheredAt: isoTime(gatheredAt),
    json: jsonCell(json ?? JSON.stringify(page)),
  };
}
