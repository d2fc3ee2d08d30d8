import { LRUCache } from 'lru-cache';
import { FairStore } from '../state/fair-store.ts';
import { Turns } from '../workers/turns.ts';
import { CallerPictures, type PictureParts } from './caller-pictures.ts';
import { CoalescedWork } from './coalesced-work.ts';
import { type FetchLimits, fetchPicture, type OwnPictures } from './fetch-picture.ts';
import { type GuardedAgent, openGuardedAgent } from './guarded-agent.ts';
import type { MediaHosts } from './media-rule.ts';
import { PictureWorkers, type WorkerLimits } from './picture-workers.ts';
import type { Pictures } from './pictures.ts';
import { type Resolve, resolveInDns } from './resolve.ts';

export interface PictureLimits extends FetchLimits, WorkerLimits {
  /** Pictures that are fetched or held until they are decoded, for all tenants together and for one. */
  maxFetches: number;
  maxFetchesPerTenant: number;
  /** Pictures as they came, and how long they are kept, in milliseconds. */
  maxKeptBytes: number;
  keptMs: number;
  /** Thumbnails, whoever asked for them. */
  maxThumbnailBytes: number;
}

const defaults: PictureLimits = {
  maxBytes: 10_000_000,
  fetchMs: 8000,
  notPublicMs: 2000,
  maxWorkers: 2,
  drawMs: 5000,
  idleMs: 120_000,
  maxFetches: 24,
  maxFetchesPerTenant: 6,
  maxKeptBytes: 32 * 1024 * 1024,
  keptMs: 15 * 60_000,
  maxThumbnailBytes: 32 * 1024 * 1024,
};

/** Pictures that could not be decoded, and how long that is remembered. */
const failedLimits = { max: 1000, ttl: 5 * 60_000, ttlResolution: 0 };

export interface PictureOptions {
  hosts: MediaHosts;
  own?: OwnPictures | undefined;
  userAgent: string;
  now: () => number;
  random: () => number;
  resolve?: Resolve | undefined;
  limits?: Partial<PictureLimits>;
}

/** Pictures for all callers, until it is closed. */
export interface OpenPictures {
  of(tenantId: string): Pictures;
  close(): Promise<void>;
}

export function openPictures(options: PictureOptions): OpenPictures {
  const { hosts, own, userAgent, now, random, resolve = resolveInDns } = options;
  const limits = { ...defaults, ...options.limits };
  let opened: Promise<GuardedAgent> | undefined;
  const agent = () => {
    // A name that is not found in time is one that does not exist.
    opened ??= openGuardedAgent({ hosts, resolve, resolveMs: limits.notPublicMs * 0.9 });
    return opened;
  };
  const workers = new PictureWorkers(limits);
  const parts: PictureParts = {
    fetch: (address, signal) => fetchPicture(address, { hosts, agent, own, userAgent, limits }, signal),
    fetches: new Turns({
      maxRunning: limits.maxFetches,
      perTenant: limits.maxFetchesPerTenant,
      maxWaiting: 1000,
      of: 'pictures',
    }),
    underWay: new CoalescedWork(),
    workers,
    kept: new FairStore({ maxBytes: limits.maxKeptBytes, ttl: limits.keptMs, now }),
    thumbnails: new LRUCache({
      maxSize: limits.maxThumbnailBytes,
      sizeCalculation: (jpeg) => 500 + jpeg.length,
    }),
    failed: new LRUCache({ ...failedLimits, perf: { now } }),
    random,
  };
  return {
    of: (tenantId) => new CallerPictures(tenantId, parts),
    close: async () => {
      workers.close();
      await (await opened)?.destroy();
    },
  };
}
