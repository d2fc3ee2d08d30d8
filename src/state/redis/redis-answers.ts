import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { OperationName } from '../../api/operations.ts';
import type { Answer } from '../../api/send.ts';
import type { AnswerName, KeptAnswer, KeptAnswers } from '../../api/with-cache.ts';
import { FairStore } from '../fair-store.ts';
import { memoryOf } from '../memory-of.ts';
import { readAnswer, type WrittenAnswer, writeAnswer } from './answer-codec.ts';
import type { Redis } from './open-redis.ts';
import { type RedisCommands, unlessReply } from './redis-connection.ts';
import { headBytes } from './seal.ts';

export interface RedisAnswersOptions {
  redis: Redis;
  /** How long answers are kept, in milliseconds. */
  ttl: number;
  now: () => number;
}

/** For how much longer than answers it is known what was dropped, in milliseconds: the time of a call. */
const maxCallMs = 600_000;
/** Removals that wait for Redis to come back. */
const maxPending = 10_000;
/** Answers that this replica has opened, for all tenants together. */
const maxOpenedBytes = 64 * 1024 * 1024;

/** An answer with the start of its sealed value, and the removals that it had seen. */
interface OpenedAnswer {
  head: string;
  seen: string;
  answer: Answer;
}

/**
 * The kept answers of all replicas. Each is stored with the removals it has seen: an answer of before a removal counts
 * as absent. While Redis cannot be reached, nothing is kept and nothing found.
 */
export function redisAnswers({ redis, ttl, now }: RedisAnswersOptions): KeptAnswers {
  const { connection, seal, keyOf } = redis;
  const pending = new LRUCache<string, true>({ max: maxPending });
  const remove = (key: string, commands: RedisCommands = connection) =>
    commands.send(key, ['SET', key, randomUUID(), 'PX', String(ttl + maxCallMs)]);
  connection.onUp(async (commands) => {
    const removals = [...pending.keys()].map((key) => remove(key, commands).then(() => pending.delete(key)));
    await Promise.all(removals.map((removal) => removal.catch(unlessReply)));
  });

  const keysOf = (tenantId: string, { group = '', fingerprint }: AnswerName) => ({
    answer: keyOf(tenantId, 'answer', group, fingerprint),
    removals: [keyOf(tenantId, 'removed'), keyOf(tenantId, 'removed', group)],
  });

  const opened = new FairStore<OpenedAnswer>({ maxBytes: maxOpenedBytes, ttl, now });
  /** Fetches and decrypts an answer only if this replica has not done so before. */
  const openedAs = async (head: string, tenantId: string, name: AnswerName): Promise<OpenedAnswer | undefined> => {
    const { answer: key } = keysOf(tenantId, name);
    const known = opened.get(tenantId, key);
    if (known?.head === head) return known;
    const sealed = (await connection.send(key, ['GET', key])) as Buffer | null;
    const text = sealed ? seal.open(key, sealed) : undefined;
    if (text === undefined) return undefined;
    const end = text.indexOf('\n');
    const answer = answerIn(name, text.subarray(end + 1));
    const value = { head, seen: String(text.subarray(0, end)), answer };
    opened.set(tenantId, key, { value, bytes: memoryOf(answer.raw) });
    return value;
  };

  const look = async (tenantId: string, name: AnswerName) => {
    const { answer: key, removals } = keysOf(tenantId, name);
    // They leave in one packet.
    const [head, removed, left] = await Promise.all([
      connection.send(key, ['GETRANGE', key, '0', String(headBytes - 1)]),
      connection.send(key, ['MGET', ...removals]),
      connection.send(key, ['PTTL', key]),
    ]);
    const seen = (removed as (Buffer | null)[]).map(String).join(' ');
    const start = (head as Buffer).toString('base64');
    const found = start === '' ? undefined : await openedAs(start, tenantId, name);
    if (found?.seen !== seen) return { kept: undefined, seen };
    // The age by the clock of Redis.
    const at = now() - (ttl - Number(left));
    return { kept: { answer: found.answer, at }, seen };
  };

  return {
    get: (tenantId, name) =>
      look(tenantId, name).then(
        ({ kept }) => kept,
        () => undefined,
      ),
    begin: async (tenantId, name) => {
      const { kept, seen } = await look(tenantId, name).catch(() => ({ kept: undefined, seen: undefined }));
      const keep = async ({ answer }: KeptAnswer) => {
        if (seen === undefined) return;
        const { answer: key } = keysOf(tenantId, name);
        const sealed = seal.close(key, `${seen}\n${JSON.stringify(writeAnswer(answer))}`);
        await connection.send(key, ['SET', key, sealed, 'PX', String(ttl)]).catch(() => {});
      };
      return { kept, keep };
    },
    drop: async (tenantId, group) => {
      const key = keyOf(tenantId, 'removed', ...(group === undefined ? [] : [group]));
      await remove(key).catch(() => pending.set(key, true));
    },
  };
}

/** A fingerprint begins with the name of its operation. */
function answerIn({ fingerprint }: AnswerName, text: Buffer) {
  const [operation] = JSON.parse(fingerprint) as [OperationName];
  return readAnswer(operation, JSON.parse(String(text)) as WrittenAnswer);
}
