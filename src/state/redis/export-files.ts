import { promisify } from 'node:util';
import { deflateRaw, inflateRaw } from 'node:zlib';
import * as z from 'zod';
import type { Seal } from '../store/seal.ts';
import type { Redis } from './open-redis.ts';
import { pushScript, type RedisCommands, script } from './redis-commands.ts';

const [compress, decompress] = [promisify(deflateRaw), promisify(inflateRaw)];

/** Bytes of a file that are sealed together, and parts that are read at once. */
const PART_BYTES = 256 * 1024;
const PARTS_AT_ONCE = 4;
/** How long a file may take to be written, in milliseconds. */
const UNFINISHED_MS = 600_000;
/** Files of one tenant. */
const MAX_FILES = 50;

const About = z.object({
  uri: z.string(),
  name: z.string(),
  mimeType: z.string(),
  bytes: z.number(),
  at: z.number(),
  parts: z.number(),
});
export type FileAbout = z.output<typeof About>;

/** Files are in the order of their ends, in microseconds. KEYS: the tenant's files, the file. ARGV: its id, what it is, lifetime, how many files. Returns those that must go. */
const finishScript = script(`
local files, file = KEYS[1], KEYS[2]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
redis.call('LPUSH', file, ARGV[2])
redis.call('PEXPIRE', file, ARGV[3])
redis.call('ZREMRANGEBYSCORE', files, '-inf', now)
redis.call('ZADD', files, now + 1000 * ARGV[3], ARGV[1])
redis.call('PEXPIRE', files, ARGV[3])
return redis.call('ZRANGE', files, 0, -1 - ARGV[4])
`);

/** The files of one tenant: for each a list, which says first what it is, and holds its parts after that. */
export class ExportFiles {
  readonly #connection: RedisCommands;
  readonly #seal: Seal;
  readonly #name: string;
  readonly #ttl: number;

  /**
   * @param name what all its keys begin with
   * @param ttl how long a file is kept, in milliseconds
   */
  constructor({ connection, seal }: Pick<Redis, 'connection' | 'seal'>, name: string, ttl: number) {
    this.#connection = connection;
    this.#seal = seal;
    this.#name = name;
    this.#ttl = ttl;
  }

  #keyOf(id: string): string {
    return `${this.#name}:${id}`;
  }

  /** Opens a file. Nobody sees it until it is finished. */
  writer(id: string) {
    const key = this.#keyOf(id);
    const size = { bytes: 0, sealed: 0, parts: 0 };
    return {
      size,
      push: async (bytes: Uint8Array): Promise<void> => {
        for (let start = 0; start < bytes.length; start += PART_BYTES) {
          const part = await compress(bytes.subarray(start, start + PART_BYTES));
          const sealed = this.#seal.close(`${key} ${++size.parts}`, part);
          await this.#connection.run(pushScript, [key], [String(UNFINISHED_MS), sealed]);
          size.sealed += sealed.length;
        }
        size.bytes += bytes.length;
      },
      /** Returns the ids of files that are one too many. */
      finish: async (about: Omit<FileAbout, 'bytes' | 'parts'>): Promise<string[]> => {
        const { bytes, parts } = size;
        const sealed = this.#seal.close(key, JSON.stringify({ ...about, bytes, parts }));
        const limits = [this.#ttl, MAX_FILES].map(String);
        const answer = await this.#connection.run(finishScript, [this.#name, key], [id, sealed, ...limits]);
        return (answer as Buffer[]).map(String);
      },
    };
  }

  /** Ids of all files, the newest first; some may have gone. */
  async ids(): Promise<string[]> {
    const answer = await this.#connection.send(this.#name, ['ZRANGE', this.#name, '0', '-1', 'REV']);
    return (answer as Buffer[]).map(String);
  }

  /** Undefined if the file is gone. */
  async about(id: string): Promise<FileAbout | undefined> {
    const key = this.#keyOf(id);
    const sealed = (await this.#connection.send(key, ['LINDEX', key, '0'])) as Buffer | null;
    const text = sealed && this.#seal.open(key, sealed);
    return text ? About.safeParse(JSON.parse(String(text))).data : undefined;
  }

  /** Undefined if the file is gone, or not whole any more. */
  async content(id: string, { parts, bytes }: FileAbout): Promise<Uint8Array | undefined> {
    const key = this.#keyOf(id);
    const content: Buffer[] = [];
    for (let start = 1; start <= parts; start += PARTS_AT_ONCE) {
      const range = ['LRANGE', key, String(start), String(start + PARTS_AT_ONCE - 1)];
      for (const [index, sealed] of ((await this.#connection.send(key, range)) as Buffer[]).entries()) {
        const part = this.#seal.open(`${key} ${start + index}`, sealed);
        content.push(part ? await decompress(part, { maxOutputLength: PART_BYTES }) : Buffer.alloc(0));
      }
    }
    const whole = Buffer.concat(content);
    return whole.length === bytes ? whole : undefined;
  }

  async remove(id: string): Promise<void> {
    await this.#connection.send(this.#name, ['ZREM', this.#name, id]);
    await this.#connection.send(this.#name, ['UNLINK', this.#keyOf(id)]);
  }
}
