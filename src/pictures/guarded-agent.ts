import { isIP, type LookupFunction } from 'node:net';
import type { Agent } from 'undici';
import { raceAbort, withDeadline } from '../api/abort.ts';
import { isInside } from './inside-addresses.ts';
import { bare, isListed, type MediaHosts } from './media-rule.ts';
import type { Resolve } from './resolve.ts';

export type GuardedAgent = Agent;

/** A host that does not exist, or whose address is not public. Nobody may learn which. */
export class NotPublic extends Error {
  override readonly name = 'NotPublic';
}

export interface GuardOptions {
  hosts: MediaHosts;
  resolve: Resolve;
  /** How long a name may take to be found, in milliseconds. */
  resolveMs: number;
}

/**
 * An agent whose connections lead to public addresses only, unless the rule lists the host by name: whatever a name
 * resolved to before, what counts is the address that the connection is made to.
 */
export async function openGuardedAgent({ hosts, ...options }: GuardOptions): Promise<GuardedAgent> {
  // It is CommonJS: only the default export exists both bundled and unbundled.
  const { Agent, buildConnector } = (await import('undici')).default;
  const toListed = buildConnector({});
  const toPublic = buildConnector({ lookup: publicLookup(options) });
  return new Agent({
    connect: (target, callback) => {
      const host = bare(target.hostname);
      const port = Number(target.port || (target.protocol === 'https:' ? 443 : 80));
      if (isListed(hosts, { host, port })) return toListed(target, callback);
      // Nothing is looked up for an address.
      if (isIP(host) !== 0 && isInside(host)) return callback(new NotPublic(), null);
      toPublic(target, callback);
    },
    // Whoever fetches sets the time. Undici's timers are coarse.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

/** Fails with `NotPublic` if any address of a name is not public. */
const publicLookup =
  ({ resolve, resolveMs }: Omit<GuardOptions, 'hosts'>): LookupFunction =>
  (host, { all }, callback) => {
    const found = withDeadline({ signals: [], ms: resolveMs }, (signal) => raceAbort(resolve(host, signal), signal));
    found
      .catch(() => [])
      .then((addresses) => {
        const [first] = addresses;
        if (first === undefined || addresses.some(isInside)) callback(new NotPublic(), '');
        else if (all)
          callback(
            null,
            addresses.map((address) => ({ address, family: isIP(address) })),
          );
        else callback(null, first, isIP(first));
      });
  };
