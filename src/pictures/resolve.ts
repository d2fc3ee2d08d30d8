import { Resolver } from 'node:dns/promises';

/** The addresses of a host name; none if it has none. */
export type Resolve = (host: string, signal: AbortSignal) => Promise<readonly string[]>;

/**
 * Asks the DNS alone, because names from outside have no business in the hosts file. Unlike `dns.lookup`, a query can be
 * cancelled and takes no thread, so slow servers of names delay nothing else in this process.
 */
export const resolveInDns: Resolve = async (host, signal) => {
  signal.throwIfAborted();
  const resolver = new Resolver({ timeout: 1000, tries: 2 });
  signal.addEventListener('abort', () => resolver.cancel(), { once: true });
  const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
  return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
};
