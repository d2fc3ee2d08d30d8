import { cut } from './cut.ts';
import { fitsWithin, lengthWithin } from './tokens.ts';

export interface FitOptions<Item> {
  items: readonly Item[];
  /** Maximum tokens of the rendered text. */
  budget: number;
  render: (items: readonly Item[]) => string;
}

/**
 * How many leading items fit into the budget. At least one, if there are any: a single item is bounded by its view. A
 * list that fits is rendered once, any other about log2(n) times.
 */
export function fit<Item>({ items, budget, render }: FitOptions<Item>): number {
  const fits = (count: number) => fitsWithin(render(items.slice(0, count)), budget);
  if (items.length <= 1 || fits(items.length)) return items.length;
  let shown = 1;
  let over = items.length;
  while (over - shown > 1) {
    const middle = (shown + over) >> 1;
    if (fits(middle)) shown = middle;
    else over = middle;
  }
  return shown;
}

/** The last resort if the budget is smaller than one item: keeps whole lines, and says how much is missing. */
export function clampLines(text: string, budget: number): string {
  if (fitsWithin(text, budget)) return text;
  const end = lengthWithin(text, budget - NOTE_TOKENS);
  const border = text.lastIndexOf('\n', end);
  const kept = border > 0 ? text.slice(0, border) : cut(text, budget - NOTE_TOKENS);
  return `${kept}\n(cut to fit: ${text.length - kept.length} more characters)`;
}

const NOTE_TOKENS = 16;
