import * as z from 'zod';
import type { ListFrame } from '../present/list-text.ts';
import type { PageListing } from './cursor.ts';
import type { SharedFacts } from './item-views.ts';

/** What every list result holds besides its items. `shown` is present if the service's page was cut to fit. */
export const paging = {
  cursor: z.string().nullable(),
  hasMore: z.boolean(),
  totalHits: z.number().optional(),
  shown: z.looseObject({ from: z.number(), to: z.number(), of: z.number() }).optional(),
  asOf: z.string().optional(),
  appUrlPattern: z.string().optional(),
};

export interface Paging extends SharedFacts {
  cursor: string | null;
  hasMore: boolean;
  totalHits?: number;
  shown?: { from: number; to: number; of: number };
}

/** As much of a list as fits into a result, as data and as text. */
export interface ListPage {
  data: Paging & { items: readonly unknown[] };
  text: string;
  /** Where its cursor continues. */
  next: PageListing | undefined;
}

/** What a list says before and after its items. */
export const frameOf = ({ cursor, hasMore, totalHits, shown, asOf, appUrlPattern }: Paging): ListFrame => ({
  cursor,
  hasMore,
  asOf,
  appUrlPattern,
  total: totalHits,
  of: shown?.of,
  from: shown?.from,
});
