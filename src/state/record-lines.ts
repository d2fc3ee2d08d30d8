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

const decoder = new TextDecoder();
const encoder = new TextEncoder();
/**
 * The start of the object of an ad or a page: the last field of the line, so that it is neither parsed nor written
 * anew.
 */
const itemStart = ',"item":';

/** A record as a line of JSON, without the line feed. */
export function lineOf(record: DatasetRecord | RecordStep): string {
  if (record.kind === 'gathering' || record.kind === 'own') return JSON.stringify(record);
  const { kind, id, since, at, firstAt, order, sinceOrder, firstOrder, listedBy, requestId, json } = record;
  const head = JSON.stringify({ kind, id, since, at, firstAt, order, sinceOrder, firstOrder, listedBy, requestId });
  return `${head.slice(0, -1)}${itemStart}${decoder.decode(json)}}`;
}

/** The record of a line; undefined if the line is damaged, or is no record. */
export function recordOfLine(line: string): DatasetRecord | undefined {
  // Quotes in a text are escaped: no text contains this, though an object in a gathering may.
  const start = line.indexOf(itemStart);
  const head = start === -1 ? undefined : parsedLine(ItemHead, `${line.slice(0, start)}}`);
  if (head === undefined) return parsedLine(Gathering, line);
  const item = line.slice(start + itemStart.length, -1);
  return line.endsWith('}') && isJsonObject(item) ? { ...head, json: encoder.encode(item) } : undefined;
}

/** The change of a person's own records that a line holds; undefined if it is none. */
export const recordStepOf = (line: string): RecordStep | undefined => parsedLine(Own, line);

/** Whether a text is a JSON object: other JSON does not begin like an object. */
const isJsonObject = (text: string): boolean => text.startsWith('{') && parsedLine(z.unknown(), text) !== undefined;

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
