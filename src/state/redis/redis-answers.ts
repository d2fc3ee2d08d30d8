import type { Answer, AnswerName, OperationName } from '../../api/call.ts';
import { memoryOf, TenantCache } from '../memory-state.ts';
import type { AnswerCache, CachedAnswer } from '../state.ts';
import { readAnswer, type WrittenAnswer, writeAnswer } from '../store/answer-codec.ts';
import { headBytes } from '../store/seal.ts';
import type { Redis } from './open-redis.ts';
import type { Removals } from './removals.ts';

export interface RedisAnswersOptions {
  redis: Redis;
  removals: Removals;
  /** How long answers are kept, in milliseconds. */
  ttl: number;
  now: () => number;
}

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
 * as absent. While Redis cannot be reached, nothing is kept and nothing found; while it is nearly full, nothing
 * more is kept.
 */
export function redisAnswers({ redis, removals, ttl, now }: RedisAnswersOptions): AnswerCache {
  const { connection, seal, keyOf } = redis;
  const answerKey = (tenantId: string, { group = '', fingerprint }: AnswerName) =>
    keyOf(tenantId, 'answer', group, fingerprint);

  const opened = new TenantCache<OpenedAnswer>({ maxBytes: maxOpenedBytes, ttl, now });
  /** Fetches and decrypts an answer only if this replica has not done so before. */
  const openedAs = async (head: string, tenantId: string, name: AnswerName): Promise<OpenedAnswer | undefined> => {
    const key = answerKey(tenantId, name);
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

  const look = async (tenantId: string, name: AnswerName, stamp: Promise<string>) => {
    const key = answerKey(tenantId, name);
    // They leave in one packet.
    const [head, seen, left] = await Promise.all([
      connection.send(key, ['GETRANGE', key, '0', String(headBytes - 1)]),
      stamp,
      connection.send(key, ['PTTL', key]),
    ]);
    const start = (head as Buffer).toString('base64');
    const found = start === '' ? undefined : await openedAs(start, tenantId, name);
    if (found?.seen !== seen) return { cached: undefined, seen };
    // The age by the clock of Redis.
    const at = now() - (ttl - Number(left));
    return { cached: { answer: found.answer, at }, seen };
  };

  return {
    get: (tenantId, name) =>
      look(tenantId, name, removals.stamp(tenantId, name.group)).then(
        ({ cached }) => cached,
        () => undefined,
      ),
    begin: async (tenantId, name) => {
      const stamp = removals.prolongedStamp(tenantId, name.group);
      const { cached, seen } = await look(tenantId, name, stamp).catch(() => ({ cached: undefined, seen: undefined }));
      const store = async ({ answer }: CachedAnswer) => {
        if (seen === undefined || connection.memory.isTight()) return;
        const key = answerKey(tenantId, name);
        try {
          const sealed = seal.close(key, `${seen}\n${JSON.stringify(writeAnswer(answer))}`);
          await connection.send(key, ['SET', key, sealed, 'PX', String(ttl)]);
        } catch {
          // Redis does not take it, or it is nested too deep.
        }
      };
      return { cached, store };
    },
    remove: async (tenantId, name) => {
      const key = answerKey(tenantId, name);
      await connection.send(key, ['DEL', key]).catch(() => {});
    },
    invalidate: (tenantId, group) => removals.add(tenantId, group),
  };
}

/** A fingerprint begins with the name of its operation. */
function answerIn({ fingerprint }: AnswerName, text: Buffer) {
  const [operation] = JSON.parse(fingerprint) as [OperationName];
  return readAnswer(operation, JSON.parse(String(text)) as WrittenAnswer);
}
