import * as z from 'zod';
import { quote, word } from '../present/fence.ts';
import { count, notesText } from '../present/list-text.ts';
import { sanitizeLine } from '../present/text.ts';
import { type Count, countAll } from './count-parts.ts';
import { defineTool, readOnly } from './define-tool.ts';
import { type KeyValues, valuesOf } from './filter-values.ts';
import { adFilters, checkQuestion, fresh, split } from './params.ts';

/** Of all parts together. */
const maxNotes = 10;

const moreCredits = 'To count the rest, call again with a larger maxCredits.';

interface CountOutput {
  total: number | null;
  /** If the total comes from a gathering: when that was made. */
  gatheredAt?: string;
  counts: Count[];
  /** What the service says about the total. */
  notes?: string[];
  rest?: number;
  stopped?: string;
  error?: string;
  problem?: string;
  next?: string;
}

export const countAds = defineTool({
  name: 'count_ads',
  title: 'Count ads',
  description: 'Count the ads that match, in all and by any filter.',
  annotations: readOnly,
  operations: ['searchAds'],
  severalCalls: true,
  input: z.strictObject({
    filters: adFilters,
    split,
    by: z.string().optional().describe('filter key whose values are known'),
    maxCredits: z.number().min(0).optional().describe('default 50'),
    fresh: fresh.describe('true: pay again'),
  }),
  output: z.looseObject({
    total: z.number().nullable(),
    counts: z.array(z.looseObject({ total: z.number().nullable() })),
    rest: z.number().optional(),
    stopped: z.string().optional(),
  }),
  async run({ filters = {}, split = [], by, maxCredits = 50, fresh = false }, context): Promise<CountOutput> {
    checkQuestion([filters, ...split], { split: split[0], by });
    const values: KeyValues =
      by === undefined ? { parts: split, isSingle: false } : valuesOf(by, context.adFilters, filters);
    const { total, parts, stop } = await countAll({ filters, parts: values.parts, maxCredits, fresh }, context);
    const problem = stop?.error && stop.reason !== 'maxCredits' ? context.explain(stop.error) : undefined;
    const rest = values.isSingle && total.total !== null ? restOf(total.total, parts) : undefined;
    return {
      total: total.total,
      ...(total.gatheredAt && { gatheredAt: total.gatheredAt }),
      counts: parts,
      ...(total.notes && { notes: total.notes }),
      ...(rest !== undefined && { rest }),
      ...(stop && { stopped: stop.reason }),
      ...(problem && { error: problem.kind, problem: problem.text }),
      ...(stop?.reason === 'maxCredits' && { next: moreCredits }),
    };
  },
  render: ({ total, gatheredAt, counts, notes = [], rest, stopped, problem, next }) =>
    [
      total === null
        ? 'The service does not say how many ads match.'
        : `${count(total, 'ad')} in all${dated(gatheredAt)}.`,
      ...(total === null ? [] : counts.map(countText)),
      rest === undefined ? '' : `none or other: ${rest}`,
      ...notesText({
        notes: [...new Set([...notes, ...counts.flatMap((part) => part.notes ?? [])])].slice(0, maxNotes),
      }),
      stopped && `Stopped (${stopped}) before all parts were counted.`,
      problem,
      next,
    ]
      .filter(Boolean)
      .join('\n'),
});

/** What is left over; undefined if not all parts are counted, or if they overlap after all. */
function restOf(total: number, parts: readonly Count[]): number | undefined {
  const sum = parts.reduce((all, part) => all + (part.total ?? Number.NaN), 0);
  return sum <= total ? total - sum : undefined;
}

const countText = ({ filters, total, gatheredAt, note }: Count): string =>
  `${filtersText(filters)}: ${total ?? 'not counted'}${dated(gatheredAt)}${note ? ` (${note})` : ''}`;

/** The caller's own words, which may come from an ad. */
function filtersText(filters: Record<string, unknown>): string {
  const json = JSON.stringify(filters);
  if (json.length > maxFiltersText) return quote(`${sanitizeLine(json.slice(0, maxFiltersText))}…`);
  return (
    Object.entries(filters)
      .map(([key, value]) => `${plain(key)} ${[value].flat().map(plain).join(', ')}`)
      .join('; ') || 'all'
  );
}

const maxFiltersText = 300;

const plain = (value: unknown) => word(sanitizeLine(typeof value === 'string' ? value : JSON.stringify(value)));

const dated = (at: string | undefined): string => (at ? ` (gathered ${at.slice(0, 16).replace('T', ' ')} UTC)` : '');
