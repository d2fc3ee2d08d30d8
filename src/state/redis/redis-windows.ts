import type { FullWindow, FullWindows } from '../../credits/ledger.ts';
import type { Redis } from './open-redis.ts';

/** How long a full window is remembered, in milliseconds: the longest of the service's windows. */
const ttl = 86_400_000;

/** The full windows of all replicas. One that cannot be read costs a refused call. */
export function redisWindows({ connection, seal, keyOf }: Redis, now: () => number): FullWindows {
  const keyOfTenant = (tenantId: string) => keyOf(tenantId, 'window');
  const get = async (tenantId: string): Promise<FullWindow | undefined> => {
    const key = keyOfTenant(tenantId);
    const [sealed, left] = await Promise.all([connection.send(key, ['GET', key]), connection.send(key, ['PTTL', key])]);
    const text = sealed ? seal.open(key, sealed as Buffer) : undefined;
    if (text === undefined) return undefined;
    const window = JSON.parse(String(text)) as FullWindow;
    // JSON has no infinity: the service stated no limit. The age is by the clock of Redis.
    return { ...window, left: window.left ?? Infinity, checkedAt: now() - (ttl - Number(left)) };
  };
  return {
    get: (tenantId) => get(tenantId).catch(() => undefined),
    set: async (tenantId, window) => {
      const key = keyOfTenant(tenantId);
      const command = window ? ['SET', key, seal.close(key, JSON.stringify(window)), 'PX', String(ttl)] : ['DEL', key];
      await connection.send(key, command).catch(() => {});
    },
  };
}
