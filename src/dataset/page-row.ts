import type { Fields } from '../present/copy-fields.ts';
import { pageFields } from '../present/fields.ts';
import { idCell, isoTime, jsonCell, sentCells } from './cells.ts';
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
  return Object.assign({ pageId: idCell(fields.pageId) ?? '' }, sentPageCells(fields), {
    firstGatheredAt: isoTime(firstGatheredAt),
    gatheredAt: isoTime(gatheredAt),
    json: jsonCell(json ?? JSON.stringify(page)),
  });
}

const sentPageCells = sentCells(pageFields);
