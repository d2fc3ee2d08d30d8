import * as z from 'zod';
import type { DatasetRecord } from './dataset.ts';
import { type RecordStep, recordKinds } from './own-records.ts';

const time = z.int().min(0).max(8_640_000_000_000_000);
const order = z.int().min(0);

/** An ad or a page without its object. Earlier versions of this program wrote only times, and ordered items by them. */
const ItemHead = z
  .object({
    kind: z.enum(['ads', 'pages']),
    id: z.string().min(1),
    since: time,
    at: time,
    firstAt: time.optional(),
    order: order.optional(),
    sinceOrder: order.optional(),
    firstOrder: order.optional(),
    listedBy: z.string(),
    requestId: z.string().nullable(),
  })
  .transform((head) => {
    const { order = head.at, sinceOrder = head.since, firstOrder = head.firstAt } = head;
    return { ...head, order, sinceOrder, firstOrder };
  });

const Gathering = z
  .object({
    kind: z.literal('gathering'),
    id: z.string().min(1),
    question: z.string(),
    filters: z.record(z.string(), z.unknown()).nullable(),
    collectionId: z.string().nullable(),
    fresh: z.boolean().default(false),
    parts: z.array(z.string()),
    found: z.number().nullable(),
    listed: z.int().min(0).default(0),
    charged: z.number().nullable().default(null),
    stuck: z.boolean().default(false),
    ended: z.boolean(),
    cursor: z.string().nullable(),
    order: order.optional(),
    step: order.default(0),
    answerOrder: order.optional(),
    startedAt: time,
    gatheredAt: time,
    adIds: z.array(z.string()),
  })
  .transform((step) => {
    const { order = step.startedAt, answerOrder = step.gatheredAt } = step;
    return { ...step, order, answerOrder };
  });

const Own = z.object({
  kind: z.literal('own'),
  of: z.enum(recordKinds),
  put: z.array(z.tuple([z.string(), z.json()])),
  removed: z.array(z.string()),
});

/**
 * The start of the object of an ad or a page: the last field of the line, so that it is neither parsed nor written
 * anew.
 */
const itemStart = ',"item":';
const objectStart = '{'.charCodeAt(0);
const objectEnd = Buffer.from('}');
const lineFeed = Buffer.from('\n');

/** A record as a line of JSON, without the line feed. */
export const lineOf = (record: DatasetRecord | RecordStep): string => String(bytesOfLine(record));

function bytesOfLine(record: DatasetRecord | RecordStep): Buffer {
  if (record.kind === 'gathering' || record.kind === 'own') return Buffer.from(JSON.stringify(record));
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
    const record = recordOf(bytes.subarray(start, end), () => true);
    if (record) records.push(record);
  }
  return records;
}

/** The record of a line; undefined if the line is damaged, or is no record. */
export const recordOfLine = (line: Buffer): DatasetRecord | undefined => recordOf(line, isJsonObject);

function recordOf(line: Buffer, isObject: (json: Buffer) => boolean): DatasetRecord | undefined {
  // Quotes in a text are escaped: no text contains this, though an object in a gathering may.
  const start = line.indexOf(itemStart);
  const head = start === -1 ? undefined : parsedLine(ItemHead, `${line.toString('utf8', 0, start)}}`);
  if (head === undefined) return parsedLine(Gathering, String(line));
  const item = line.subarray(start + itemStart.length, -1);
  if (line.at(-1) !== objectEnd[0] || !isObject(item)) return;
  // Memory of its own, so that nothing else is held with it.
  return { ...head, json: new Uint8Array(item) };
}

/** The change of a person's own records that a line holds; undefined if it is none. */
export const recordStepOf = (line: string): RecordStep | undefined => parsedLine(Own, line);

/** Whether a text is a JSON object: other JSON does not begin like an object. */
const isJsonObject = (json: Buffer): boolean =>
  json[0] === objectStart && parsedLine(z.unknown(), String(json)) !== undefined;

const SomeKind = z.looseObject({ kind: z.string() });

/** Whether a line is a record, even of an unknown kind. */
export const isOfSomeKind = (line: string): boolean => parsedLine(SomeKind, line) !== undefined;

/** The value of a line of JSON; undefined if it does not fit the schema. */
export function parsedLine<Schema extends z.ZodType>(schema: Schema, line: string): z.output<Schema> | undefined {
  try {
    return schema.safeParse(JSON.parse(line)).data;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) return;
    throw error;
  }
}
