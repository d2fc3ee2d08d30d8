import { nearestFirst } from '../api/nearest.ts';
import type { Database } from './database.ts';
import type { RecordType, Tag } from './record-type.ts';
import type { Records } from './records.ts';
import { tagPrefix, tagToken } from './tag-tokens.ts';

/** The values that the records hold of a tag, read from the full-text index. */
export type TagValues = {
  has(tag: Tag, value: string): boolean;
  /** Some values as records write them, those most like `value` first; `of` is how many there are, if not too many. */
  near(tag: Tag, value: string): { values: string[]; of: number | 'many' };
};

/** More are not compared: those that begin alike, then others in alphabetical order. */
const maxCompared = 500;
const maxShown = 12;

export function tagValuesIn(database: Database, records: Pick<Records, 'read'>, { name }: RecordType): TagValues {
  const table = `${name}_text`;
  const rowWith = (token: string) =>
    database.get<{ number: number }>(`SELECT rowid AS number FROM ${table} WHERE ${table} MATCH ? LIMIT 1`, [
      `{tags} : "${token}"`,
    ])?.number;

  /** Ends with the last character: no token that begins with `prefix` comes after it. */
  const tokensFrom = (prefix: string) =>
    database
      .all<{ term: string }>(`SELECT term FROM temp.${name}_terms WHERE term >= ? AND term < ? LIMIT ?`, [
        prefix,
        `${prefix}\u{10ffff}`,
        maxCompared,
      ])
      .map(({ term }) => term);

  /** A value as the record writes it: the index holds it in lower case. */
  function written({ key, of }: Tag, token: string): string[] {
    const number = rowWith(token);
    const [json] = number === undefined ? [] : records.read(name, [number]);
    if (json === undefined) return [];
    const value = of(JSON.parse(json)).find((one) => one && tagToken(key, one) === token);
    return [value ?? decoded(token.slice(tagPrefix(key).length))];
  }

  return {
    has: ({ key }, value) => rowWith(tagToken(key, value)) !== undefined,
    near(tag, value) {
      const prefix = tagPrefix(tag.key);
      const alike = tokensFrom(tagToken(tag.key, value.slice(0, 2)));
      const tokens = new Map(
        [...alike, ...tokensFrom(prefix)].map((token) => [decoded(token.slice(prefix.length)), token]),
      );
      const nearest = nearestFirst(value, [...tokens.keys()]).slice(0, maxShown);
      const values = nearest.flatMap((one) => written(tag, tokens.get(one) ?? ''));
      return { values, of: tokens.size < maxCompared ? tokens.size : 'many' };
    },
  };
}

/** A token of the index may be cut inside an escape. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
