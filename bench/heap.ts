/** Reads heap snapshots as V8 streams them, and says what grew from one to another. */

/** What a heap holds of one kind of thing. */
export interface Holding {
  count: number;
  /** Bytes of the things themselves, without what they refer to. */
  bytes: number;
}

/** By constructor, or by V8's own name for what has none. */
export type Census = Map<string, Holding>;

export interface SnapshotReader {
  read(piece: string): void;
  finish(): Census;
}

/** What a snapshot says of itself, before its long lists. */
interface Head {
  snapshot: { meta: { node_fields: string[]; node_types: [string[], ...unknown[]] } };
}

/** Kinds of nodes whose name is what they are; the others' is their content, or the name of a variable. */
const named = new Set(['object', 'native', 'hidden']);

const zero = 48;
const nine = 57;

/**
 * Counts nodes while their numbers come in: a snapshot of a full heap is a text of several hundred megabytes, which
 * would be near the longest string there can be.
 */
export function snapshotReader(): SnapshotReader {
  let section: 'head' | 'nodes' | 'edges' | 'strings' = 'head';
  let text = '';
  let count = nodeCounter({ snapshot: { meta: { node_fields: [], node_types: [[]] } } });

  const skipTo = (mark: string, next: typeof section): boolean => {
    const at = text.indexOf(mark);
    // The mark itself may be cut in two.
    if (at === -1) text = section === 'head' ? text : text.slice(-mark.length);
    else {
      if (section === 'head') count = nodeCounter(JSON.parse(`${text.slice(0, at).trimEnd().replace(/,$/, '')}}`));
      text = text.slice(at + mark.length);
      section = next;
    }
    return at !== -1;
  };

  return {
    read(piece) {
      text += piece;
      if (section === 'head' && !skipTo('"nodes":[', 'nodes')) return;
      if (section === 'nodes') {
        const end = text.indexOf(']');
        count.numbers(end === -1 ? text : text.slice(0, end + 1));
        text = end === -1 ? '' : text.slice(end + 1);
        if (end !== -1) section = 'edges';
      }
      if (section === 'edges') skipTo('"strings":[', 'strings');
    },
    finish: () => count.named(JSON.parse(`[${text.slice(0, text.lastIndexOf('}'))}`) as string[]),
  };
}

function nodeCounter({ snapshot: { meta } }: Head) {
  const width = meta.node_fields.length;
  const [typeAt, nameAt, sizeAt] = ['type', 'name', 'self_size'].map((field) => meta.node_fields.indexOf(field));
  const types = meta.node_types[0];
  const found = new Map<number, Holding>();
  let field = 0;
  let number = -1;
  let [type, name, size] = [0, 0, 0];

  const take = () => {
    if (field === typeAt) type = number;
    if (field === nameAt) name = number;
    if (field === sizeAt) size = number;
    number = -1;
    if (++field < width) return;
    field = 0;
    const which = named.has(types[type] ?? '') ? name * types.length + type : -1 - type;
    const holding = found.get(which) ?? { count: 0, bytes: 0 };
    if (holding.count++ === 0) found.set(which, holding);
    holding.bytes += size;
  };

  return {
    numbers(text: string): void {
      for (let at = 0; at < text.length; at++) {
        const code = text.charCodeAt(at);
        if (code >= zero && code <= nine) number = Math.max(0, number) * 10 + code - zero;
        else if (number >= 0) take();
      }
    },
    named(strings: readonly string[]): Census {
      const census: Census = new Map();
      for (const [which, { count, bytes }] of found) {
        const called =
          which < 0 ? `(${types[-1 - which]})` : (strings[Math.floor(which / types.length)] ?? '(without a name)');
        const holding = census.get(called) ?? { count: 0, bytes: 0 };
        census.set(called, { count: holding.count + count, bytes: holding.bytes + bytes });
      }
      return census;
    },
  };
}

export const bytesOf = (census: Census): number => [...census.values()].reduce((sum, { bytes }) => sum + bytes, 0);

/** The constructors that grew most, as lines of a table. */
export function growthTable(before: Census, after: Census, most = 20): string[] {
  const rows = [...after].map(([name, now]) => {
    const then = before.get(name) ?? { count: 0, bytes: 0 };
    return { name, then, now, bytes: now.bytes - then.bytes };
  });
  const grown = rows.filter(({ bytes }) => bytes > 0).toSorted((one, other) => other.bytes - one.bytes);
  const cell = (value: number | string) => String(value).padStart(12);
  const number = (value: number) => cell(value.toLocaleString('en'));
  const title = `${'grew most'.padEnd(36)}${['count', 'then', 'more', 'KB', 'more KB'].map(cell).join('')}`;
  return [
    title,
    ...grown
      .slice(0, most)
      .map(({ name, then, now, bytes }) =>
        [
          name.slice(0, 35).padEnd(36),
          number(now.count),
          number(then.count),
          number(now.count - then.count),
          number(Math.round(now.bytes / 1024)),
          number(Math.round(bytes / 1024)),
        ].join(''),
      ),
  ];
}
