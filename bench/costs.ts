import { encode as toon } from '@toon-format/toon';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { estimateTokens } from '../src/present/tokens.ts';

export const tokens = (text: string) => countTokens(text, { allowedSpecial: new Set(), disallowedSpecial: new Set() });

/** One result in every form that is compared. */
interface Form {
  raw: unknown;
  text: string;
  structured: unknown;
  rows: object[];
}

const withoutNulls = (value: unknown) => JSON.parse(JSON.stringify(value), (_, item) => item ?? undefined);

/** A plain table: one head line, one line a row, tab between cells. */
function table(rows: object[]): string {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cell = (value: unknown) =>
    value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value);
  const line = (row: object) =>
    names.map((name) => cell((row as Record<string, unknown>)[name]).replace(/\s+/g, ' ')).join('\t');
  return [names.join('\t'), ...rows.map(line)].join('\n');
}

/** Tokens of o200k_base of each form, for `items` items. */
export function costs({ raw, text, structured, rows }: Form) {
  return {
    items: rows.length,
    raw: tokens(JSON.stringify(raw)),
    minified: tokens(JSON.stringify(withoutNulls(raw))),
    text: tokens(text),
    structured: tokens(JSON.stringify(structured)),
    toon: tokens(toon(rows)),
    table: tokens(table(rows)),
    estimate: estimateTokens(text),
  };
}

export type Costs = ReturnType<typeof costs>;
