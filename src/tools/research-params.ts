import * as z from 'zod';
import { invalidRequest } from '../api/errors.ts';

/** Arguments that the tools for many ads share, and checks of them. */

type Filters = Record<string, unknown>;

export const adFilters = z.looseObject({}).optional().describe('as in search_ads');
export const split = z.array(z.looseObject({})).min(1).max(30).optional().describe('each laid over filters');

/** @throws AdLibraryError for filters that would turn pages by themselves, or arguments that cannot be combined */
export function checkQuestion(filters: readonly (Filters | undefined)[], exclusive: Record<string, unknown>): void {
  for (const key of ['limit', 'cursor'])
    if (filters.some((one) => one !== undefined && Object.hasOwn(one, key)))
      throw invalidRequest(`filters must not hold "${key}": this tool turns the pages itself.`);
  const given = Object.keys(exclusive).filter((name) => exclusive[name] !== undefined);
  if (given.length > 1) throw invalidRequest(`${given.join(' and ')} cannot be combined: pass one.`);
}
