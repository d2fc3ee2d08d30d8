import { RateLimiterMemory } from 'rate-limiter-flexible';

/** Bounds how often an address may come with keys that are refused. */
export interface RefusalLimit {
  refused(address: string): Promise<void>;
  /** Seconds the address has to wait, when it was refused too often within a minute. */
  secondsToWait(address: string): Promise<number | undefined>;
}

export function limitRefusals(perMinute: number): RefusalLimit {
  if (perMinute === 0) return { refused: async () => {}, secondsToWait: async () => undefined };
  const limiter = new RateLimiterMemory({ points: perMinute, duration: 60 });
  return {
    refused: async (address) => {
      // Rejects where the points are used up, which the next question finds out.
      await limiter.consume(address).catch(() => {});
    },
    secondsToWait: async (address) => {
      const refusals = await limiter.get(address);
      if (refusals === null || refusals.remainingPoints > 0) return undefined;
      return Math.max(1, Math.ceil(refusals.msBeforeNext / 1000));
    },
  };
}
