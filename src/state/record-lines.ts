import * as z from 'zod';
import type { DatasetRecord } from './dataset-record.ts';
import { jsonBytes } from './item-history.ts';

const time = z.int().min(0).max(8_640_000_000_000_000);

const order = z.int().min(0);

const ItemHead = z.object({
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
});

const ItemLine = ItemHead.extend({ item: z.record(z.string(), z.unknown()) });

const GatheringLine = z.object({
  kind: z.literal('gathering'),
  id: z.string().min(1),
  question: z.string(),
  filters: z.record(z.string(), z.unknown()).nullable(),
  collectionId: z.string().nullable(),
  fresh: z.boolean().optional(),
  parts: z.array(z.string()),
  found: z.number().nullable(),
  listed: z.int().min(0).optional(),
  charged: z.number().nullable().optional(),
  ended: z.boolean(),
  cursor: z.string().nullable(),
  order: z.int().min(0).optional(),
  step: z.int().min(0).optional(),
  answerOrder: z.int().min(0).optional(),
  startedAt: time,
  gatheredAt: time,
  adIds: z.array(z.string()),
});

const RecordHead = z.discriminatedUnion('kind', [ItemHead, GatheringLine]);

const Line = z.discriminatedUnion('kind', [ItemLine, GatheringLine]);

const decoder = new TextDecoder();

/** A record as a line of JSON, without the line feed. */
export function lineOf(record: DatasetRecord): string {
  if (record.kind === 'gathering') return headLine(record);
  return `${headLine(record).slice(0, -1)},"item":${decoder.decode(record.json)}}`;
}

/** A record as a line of JSON, without the object of an ad or a page. */
export function headLine(record: DatasetRecord): string {
  if (record.kind === 'gathering') return JSON.stringify(record);
  const { kind, id, since, at, firstAt, order, sinceOrder, firstOrder, listedBy, requestId } = record;
  return JSON.stringify({ kind, id, since, at, firstAt, order, sinceOrder, firstOrder, listedBy, requestId });
}

/** The record of a line; undefined if the line is damaged. */
export function recordOfLine(line: string): DatasetRecord | undefined {
  const parsed = parsedLine(Line, line);
  if (parsed === undefined || parsed.kind === 'gathering') return parsed;
  const { item, ...head } = parsed;
  return { ...placed(head), json: jsonBytes(item) };
}

/** The head of a line that `headLine` wrote; undefined if it is damaged. */
export function recordHead(line: string) {
  const parsed = parsedLine(RecordHead, line);
  return parsed === undefined || parsed.kind === 'gathering' ? parsed : placed(parsed);
}

/** Earlier versions of this program wrote times only, and went by them. */
function placed<Head extends z.output<typeof ItemHead>>(head: Head) {
  const { order = head.at, sinceOrder = head.since, firstOrder = head.firstAt } = head;
  return { ...head, order, sinceOrder, firstOrder };
}

/** What a line of JSON holds; undefined if it is not what the schema says. */
export function parsedLine<Schema extends z.ZodType>(schema: Schema, line: string): z.output<Schema> | undefined {
  try {
    return schema.safeParse(JSON.parse(line)).data;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) return;
    throw error;
  }
}

export const lineFeed = Buffer.from('\n');

/** The object of an ad or a page has a line of its own: it is neither read nor written anew. JSON has no line feeds. */
export function linesOf(record: DatasetRecord): Uint8Array[] {
  const head = Buffer.from(headLine(record));
  return record.kind === 'gathering' ? [head] : [head, record.json];
}

/** Undefined for a line that cannot be read. */
export function* recordsIn(bytes: Buffer): Generator<DatasetRecord | undefined> {
  const lines = linesIn(bytes);
  for (const line of lines) {
    const head = recordHead(line.toString());
    if (head === undefined || head.kind === 'gathering') yield head;
    else {
      const json = lines.next().value;
      // A copy, which does not keep the memory of the whole part.
      if (json) yield { ...head, json: Uint8Array.prototype.slice.call(json) };
    }
  }
}

function* linesIn(bytes: Buffer): Generator<Buffer, undefined> {
  for (let start = 0, end = 0; end !== -1 && start < bytes.length; start = end + 1) {
    end = bytes.indexOf(10, start);
    if (end !== -1) yield bytes.subarray(start, end);
  }
}
