import * as z from 'zod';
import type { DatasetRecord } from './dataset.ts';

const time = z.int().min(0).max(8_640_000_000_000_000);
const order = z.int().min(0);

/** An ad or a page without its object. */
const ItemHead = z.object({
  kind: z.enum(['ads', 'pages']),
  id: z.string().min(1),
  since: time,
  at: time,
  firstAt: time.optional(),
  order,
  sinceOrder: order,
  firstOrder: order.optional(),
  listedBy: z.string(),
  requestId: z.string().nullable(),
});

const Gathering = z.object({
  kind: z.literal('gathering'),
  id: z.string().min(1),
  question: z.string(),
  filters: z.record(z.string(), z.unknown()).nullable(),
  collectionId: z.string().nullable(),
  fresh: z.boolean(),
  stuck: z.boolean(),
  parts: z.array(z.string()),
  found: z.number().nullable(),
  listed: z.int().min(0),
  charged: z.number().nullable(),
  ended: z.boolean(),
  cursor: z.string().nullable(),
  order,
  step: order,
  answerOrder: order,
  startedAt: time,
  gatheredAt: time,
  adIds: z.array(z.string()),
});

/**
 * The start of the object of an ad or a page: the last field of the line, so that it is neither parsed nor written
 * anew.
 */
const itemStart = ',"item":';
const objectEnd = Buffer.from('}');
const lineFeed = Buffer.from('\n');

function bytesOfLine(record: DatasetRecord): Buffer {
  if (record.kind === 'gathering') return Buffer.from(JSON.stringify(record));
  const { kind, id, since, at, firstAt, order, sinceOrder, firstOrder, listedBy, requestId, json } = record;
  const head = JSON.stringify({ kind, id, since, at, firstAt, order, sinceOrder, firstOrder, listedBy, requestId });
  return Buffer.concat([Buffer.from(head.slice(0, -1) + itemStart), json, objectEnd]);
}

/** Records as lines, and back again: what nobody else can have written is not checked to be JSON. */
export const bytesOfLines = (records: readonly DatasetRecord[]): Buffer =>
  Buffer.concat(records.flatMap((record) => [bytesOfLine(record), lineFeed]));

export function recordsOfLines(bytes: Buffer): DatasetRecord[] {
  const records: DatasetRecord[] = [];
  for (let start = 0, end = 0; start < bytes.length; start = end + 1) {
    end = bytes.indexOf(lineFeed, start);
    if (end === -1) end = bytes.length;
    const record = recordOf(bytes.subarray(start, end));
    if (record) records.push(record);
  }
  return records;
}

function recordOf(line: Buffer): DatasetRecord | undefined {
  // Quotes in a text are escaped: no text contains this, though an object in a gathering may.
  const start = line.indexOf(itemStart);
  const head = start === -1 ? undefined : parsedLine(ItemHead, `${line.toString('utf8', 0, start)}}`);
  if (head === undefined) return parsedLine(Gathering, String(line));
  const item = line.subarray(start + itemStart.length, -1);
  // Memory of its own, so that nothing else is held with it.
  return { ...head, json: new Uint8Array(item) };
}

/** The value of a line of JSON; undefined if it does not fit the schema. */
export function parsedLine<Schema extends z.ZodType>(schema: Schema, line: string): z.output<Schema> | undefined {
  try {
    return schema.safeParse(JSON.parse(line)).data;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) return;
    throw error;
  }
}
