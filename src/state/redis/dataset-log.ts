import { randomUUID } from 'node:crypto';
import type { DatasetContents } from '../dataset.ts';
import { appendScript, epochAfter, mergeScript, orderScript, readScript } from './dataset-scripts.ts';
import { pushScript, type RedisCommands } from './redis-commands.ts';

type LetGo = DatasetContents['letGo'];

/** How far a dataset was read. */
export interface LogPosition {
  epoch: string;
  /** The next part of the base; -1 after the last. */
  part: number;
  /** The next number of the log. */
  number: number;
  /** How the last part ends that was read. */
  tail: Buffer;
}

export interface ReadParts {
  position: LogPosition;
  /** What was read before no longer counts. */
  startsOver: boolean;
  isDone: boolean;
  letGo: LetGo;
  parts: Buffer[];
}

export interface MergeOptions {
  letGo: LetGo;
  /** Something was removed. */
  dropped: boolean;
  /** Of the dataset, unless more was added meanwhile. */
  maxBytes: number;
}

export const beginning: LogPosition = { epoch: '', part: 0, number: 0, tail: Buffer.alloc(0) };

/** How long a dataset is kept after the last answer that added to it, in milliseconds. */
export const DATASET_TTL = 30 * 86_400_000;
/** How long a merge may take before others try, and what it has written until then is removed. */
const MERGE_MS = 60_000;
/** A log is merged when it is larger than its base and than this, or has more parts. */
const MERGED_BYTES = 256 * 1024;
const MERGED_PARTS = 500;
/** Bytes asked for and sent at once: a command has to be quick. */
const BYTES_AT_ONCE = 1024 * 1024;
/** No two parts have the same last bytes, since they are encrypted. */
const TAIL_BYTES = 16;

/** The keys of one dataset. Parts are opaque here. */
export class DatasetLog {
  readonly #connection: RedisCommands;
  readonly #name: string;

  /** @param name what all its keys begin with */
  constructor(connection: RedisCommands, name: string) {
    this.#connection = connection;
    this.#name = name;
  }

  get #keys(): [string, string, string] {
    return [`${this.#name}:about`, `${this.#name}:log`, `${this.#name}:base`];
  }

  /** The place of what comes now. @param known the highest that is known */
  async order(known: number): Promise<number> {
    const args = [String(known), String(DATASET_TTL)];
    return (await this.#connection.run(orderScript, [`${this.#name}:order`], args)) as number;
  }

  /** Returns the size of the dataset, and whether its log should be merged. */
  async append(parts: readonly Buffer[]): Promise<{ bytes: number; isLong: boolean }> {
    const limits = [DATASET_TTL, MERGED_BYTES, MERGED_PARTS, MERGE_MS].map(String);
    let result = { bytes: 0, isLong: false };
    for (const group of groupsOf(parts)) {
      const answer = await this.#connection.run(appendScript, this.#keys, [randomUUID(), ...limits, ...group]);
      const [bytes, isLong] = answer as [number, number];
      result = { bytes, isLong: result.isLong || isLong === 1 };
    }
    return result;
  }

  /** Undefined if there is no dataset; 'lost' if Redis lacks what was read before. */
  async read({ epoch, part, number, tail }: LogPosition): Promise<ReadParts | 'lost' | undefined> {
    const from = [epoch, String(part), String(number), tail, String(BYTES_AT_ONCE)];
    const answer = (await this.#connection.run(readScript, this.#keys, from)) as [Buffer, ...number[]];
    if (answer.length < 2) return answer.length === 0 ? undefined : 'lost';
    const [newEpoch, again, nextPart, nextNumber, isDone] = answer as unknown as [Buffer, ...FourNumbers];
    const [letGo, ...parts] = answer.slice(5) as unknown as [Buffer, ...Buffer[]];
    const last = nextNumber > (again === 1 ? 0 : number) ? parts.at(-1)?.subarray(-TAIL_BYTES) : undefined;
    return {
      // A copy, which does not keep the memory of the whole part.
      position: { epoch: String(newEpoch), part: nextPart, number: nextNumber, tail: last ? Buffer.from(last) : tail },
      startsOver: again === 1,
      isDone: isDone === 1,
      letGo: letGoOf(String(letGo)),
      parts,
    };
  }

  /**
   * Puts parts in the place of all that was read up to a position.
   * @returns the new position, and the size of these parts and of the dataset; undefined if another replica was faster
   */
  async merge(at: LogPosition, merged: AsyncIterable<Buffer>, { letGo, dropped, maxBytes }: MergeOptions) {
    const base = `${this.#name}:merged:${randomUUID()}`;
    let [baseBytes, parts] = [0, 0];
    for await (const part of merged) {
      await this.#connection.run(pushScript, [base], [String(MERGE_MS), part]);
      baseBytes += part.length;
      parts++;
    }
    const epoch = epochAfter(at.epoch, randomUUID());
    const { ads, pages, gatherings } = letGo;
    const about = [Number(dropped), [ads, pages, gatherings].join(), baseBytes, parts, maxBytes].map(String);
    const args = [at.epoch, epoch, String(at.number), ...about];
    const bytes = (await this.#connection.run(mergeScript, [...this.#keys, base], args)) as number;
    return bytes === -1 ? undefined : { position: { ...at, epoch }, baseBytes, bytes };
  }
}

type FourNumbers = [number, number, number, number];

function letGoOf(text: string): LetGo {
  const [ads = 0, pages = 0, gatherings = 0] = text.split(',').map(Number);
  return { ads, pages, gatherings };
}

/** Parts that are sent together. */
function* groupsOf(parts: readonly Buffer[]): Generator<Buffer[]> {
  let group: Buffer[] = [];
  let bytes = 0;
  for (const part of parts) {
    if (group.length > 0 && bytes + part.length > BYTES_AT_ONCE) {
      yield group;
      group = [];
      bytes = 0;
    }
    group.push(part);
    bytes += part.length;
  }
  if (group.length > 0) yield group;
}
