import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';

export interface AddressLimit {
  /** Counts a request from an address; returns the seconds to wait when it has made too many. */
  secondsToWait(address: string): Promise<number | undefined>;
}

/** Bounds the requests an address may make in a minute. */
export function limitAddresses(perMinute: number): AddressLimit {
  const limiter = new RateLimiterMemory({ points: perMinute, duration: 60 });
  return {
    async secondsToWait(address) {
      try {
        await limiter.consume(address);
        return undefined;
      } catch (refusal) {
        if (refusal instanceof RateLimiterRes) return Math.max(1, Math.ceil(refusal.msBeforeNext / 1000));
        throw refusal;
      }
    },
  };
}
