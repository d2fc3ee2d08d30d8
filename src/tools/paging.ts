import * as z from 'zod';
import type { ListFrame } from '../present/list-text.ts';
import type { Shared } from './item-views.ts';

/** What every list result holds besides its items. `shown` is there when the service's page was cut to fit. */
export const paging = {
  cursor: z.string().nullable(),
  hasMore: z.boolean(),
  totalHits: z.number().optional(),
  shown: z.looseObject({ from: z.number(), to: z.number(), of: z.number() }).optional(),
  asOf: z.string().optional(),
  appUrlPattern: z.string().optional(),
};

export interface Paging extends Shared {
  cursor: string | null;
  hasMore: boolean;
  totalHits?: number;
  shown?: { from: number; to: number; of: number };
}

/** How a list result reads before and after its items. */
export const frameOf = ({ cursor, hasMore, totalHits, shown, asOf, appUrlPattern }: Paging): ListFrame => ({
  cursor,
  hasMore,
  asOf,
  appUrlPattern,
  total: totalHits,
  of: shown?.of,
  from: shown?.from,
});
