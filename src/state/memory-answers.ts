import { LRUCache } from 'lru-cache';
import type { AnswerName, KeptAnswer, KeptAnswers } from '../api/with-cache.ts';
import { FairStore } from './fair-store.ts';
import { memoryOf } from './memory-of.ts';

export interface MemoryAnswersOptions {
  /** For all tenants together. */
  maxBytes: number;
  /** How long answers are kept, in milliseconds. */
  ttl: number;
  now: () => number;
}

/** The overhead of an answer: its receipt, and what its schema made of it. */
const answerBytes = 3 * 1024;

/** Groups whose last removal is remembered, for reads that began before it. */
const maxDropped = 10_000;

/** The kept answers of one process. */
export function memoryAnswers(options: MemoryAnswersOptions): KeptAnswers {
  const store = new FairStore<KeptAnswer>(options);
  const dropped = new LRUCache<string, object>({ max: maxDropped });
  const nameOf = ({ group = '', fingerprint }: AnswerName) => group + fingerprint;
  const get = (tenantId: string, name: AnswerName) => store.get(tenantId, nameOf(name));
  return {
    get: async (tenantId, name) => get(tenantId, name),
    begin: async (tenantId, name) => {
      const groups = [`${tenantId} `, `${tenantId} ${name.group ?? ''}`];
      const before = groups.map((group) => dropped.get(group));
      return {
        kept: get(tenantId, name),
        keep: async (value) => {
          if (groups.some((group, index) => dropped.get(group) !== before[index])) return;
          store.set(tenantId, nameOf(name), { value, bytes: memoryOf(value.answer.raw) + answerBytes });
        },
      };
    },
    remove: async (tenantId, name) => store.remove(tenantId, nameOf(name)),
    drop: async (tenantId, group = '') => {
      dropped.set(`${tenantId} ${group}`, {});
      store.drop(tenantId, group);
    },
  };
}
