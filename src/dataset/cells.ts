import { isLongNumber, isNumber } from '../present/copy-fields.ts';
import { timeOf } from '../present/dates.ts';
import type { NamesWith, SentField } from '../present/fields.ts';

/**
 * Values of the service made cells. Any field may be missing or of another type than its document says: then the cell
 * is null.
 */
export const textCell = (value: unknown): string | null =>
  typeof value === 'string' && value.trim() !== '' ? bounded(value) : null;

/** No copy is this long. A row beyond what SQL reads at once would fail every statement that meets it. */
const MAX_TEXT = 50_000;

export const bounded = (text: string): string =>
  text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)}… (+${text.length - MAX_TEXT} chars)`;

/** An object as it came; null where it is far beyond any that a service sends, since half of one is none. */
export const jsonCell = (json: string): string | null => (json.length <= MAX_JSON ? json : null);

const MAX_JSON = 500_000;

export const idCell = (value: unknown): string | null =>
  typeof value === 'number' && Number.isFinite(value) ? String(value) : textCell(value);

export const numberCell = (value: unknown): number | null => {
  const number = isLongNumber(value) ? Number(value) : value;
  return isNumber(number) ? number : null;
};

export const flagCell = (value: unknown): number | null => (typeof value === 'boolean' ? Number(value) : null);

/** `2026-06-01T00:00:00.000Z`, whatever the service writes, so that dates compare as texts do. */
export function dateCell(value: unknown): string | null {
  const time = timeOf(value);
  return time === undefined ? null : isoTime(time);
}

/** Milliseconds as ISO text. */
export const isoTime = (time: number): string => new Date(time).toISOString();

/** The distinct texts of a list. */
export const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? [...new Set(value.filter((text) => textCell(text) !== null))] : [];

/** A list as JSON, for `json_each`. */
export function listCell(value: unknown): string | null {
  const texts = textsOf(value);
  return texts.length > 0 ? JSON.stringify(texts) : null;
}

/** The columns of what the service sent: one cell for each, in their order. */
export function sentCells<Fields extends Record<string, SentField>>(
  fields: Fields,
): (sent: object) => SentCells<Fields> {
  const cells = Object.entries(fields).flatMap(([name, { is, column }]) =>
    column ? [{ name, cellOf: cellsOf[is] }] : [],
  );
  return (sent) => {
    const row: Record<string, unknown> = {};
    for (const { name, cellOf } of cells) row[name] = cellOf((sent as Record<string, unknown>)[name]);
    return row as SentCells<Fields>;
  };
}

type SentCells<Fields> = {
  [Name in NamesWith<Fields, { column: true }>]: Fields[Name] extends { is: 'number' | 'flag' }
    ? number | null
    : string | null;
};

const cellsOf = { text: textCell, date: dateCell, number: numberCell, flag: flagCell, words: listCell, id: idCell };
