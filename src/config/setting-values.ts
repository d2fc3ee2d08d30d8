import { readFileSync, statSync } from 'node:fs';
import { isIP, isIPv4 } from 'node:net';
import * as z from 'zod';
import { SearchFilters } from '../api/search-filters.ts';

/** The types of settings. Their error messages follow the name of the setting. */

const yes = ['true', '1', 'yes', 'on'];
const no = ['false', '0', 'no', 'off'];
export const onOff = z
  .string()
  .toLowerCase()
  .refine((text) => [...yes, ...no].includes(text), 'must be true or false')
  .transform((text) => yes.includes(text));

export const wholeNumber = (min: number, max: number) =>
  z.coerce
    .number(`must be a whole number from ${min} to ${max}`)
    .refine((value) => Number.isInteger(value) && value >= min && value <= max, {
      error: `must be a whole number from ${min} to ${max}`,
    });

export const sealSecret = z
  .string()
  .min(32, 'must have at least 32 characters; make one with: openssl rand -base64 32');

/** A list that holds no name is a slip: whoever means none leaves the setting empty. */
export const names = z
  .string()
  .transform((text) =>
    text
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== ''),
  )
  .refine((all) => all.length > 0, 'must hold at least one name, or be left empty');

/** Accepts an IPv6 host in brackets, too, as in an address. */
export const hostName = z.string().transform((text) => text.replace(/^\[(.*)\]$/, '$1'));

/** Host names as they appear in requests, without a port. */
export const hostNames = names.transform((all, context) => {
  const wrong = all.filter((name) => /[/:]/.test(name) && !name.startsWith('['));
  if (wrong.length > 0)
    context.addIssue({
      code: 'custom',
      message: `must contain only host names, without scheme or port: ${wrong.join(', ')}`,
    });
  return all.map((name) => name.toLowerCase());
});

export const isLoopback = (host: string) =>
  ['localhost', '::1', '[::1]'].includes(host) || (host.startsWith('127.') && isIPv4(host));

/** Every request carries the key, so only loopback addresses may be unencrypted. */
const address = z.string().superRefine((text, context) => {
  // The parser would leave out line breaks and tabs, and go to another address than the one that is read.
  const url = !/\s/.test(text) && URL.canParse(text) ? new URL(text) : undefined;
  const problem =
    url === undefined || !/^https?:$/.test(url.protocol)
      ? 'must be an address such as https://api.example.com'
      : url.protocol === 'http:' && !isLoopback(url.hostname)
        ? 'must begin with https:// (http:// is only allowed for this machine)'
        : url.username || url.password || url.search || url.hash
          ? 'must not contain a user, query or fragment'
          : undefined;
  if (problem) context.addIssue({ code: 'custom', message: problem });
});

/** Normalizes an address: `HTTP://LOCALHOST:80/api/` becomes `http://localhost/api`. */
const normalForm = (text: string) => new URL(text).href.replace(/(?<!\/)\/+$/, '');

export const baseUrl = address.transform(normalForm);

/** Where people reach a server: what comes after the host is its own. */
export const origin = address.transform((text, context) => {
  const url = new URL(text);
  if (url.pathname === '/' && !text.endsWith('/')) return url.origin;
  context.addIssue({ code: 'custom', message: 'must end with the host or its port, such as https://ads.example.com' });
  return z.NEVER;
});

/** An address, or a network such as `10.0.0.0/8`. */
export const network = z.string().transform((text, context) => {
  const [, address = '', length] = /^\[?([\da-f.:]+)\]?(?:\/(\d{1,3}))?$/i.exec(text) ?? [];
  const family = isIP(address);
  const bits = family === 4 ? 32 : 128;
  const prefix = Number(length ?? bits);
  if (family !== 0 && prefix <= bits) return { address, prefix, family: family === 4 ? 'ipv4' : 'ipv6' } as const;
  context.addIssue({ code: 'custom', message: 'must be an address or a network, such as 10.0.0.2 or 10.0.0.0/8' });
  return z.NEVER;
});

const maxFileBytes = 1024 * 1024;
const maxProblems = 5;

function readFilters(file: string): SearchFilters {
  const stats = statSync(file);
  if (!stats.isFile()) throw new Error('it is not a file');
  if (stats.size > maxFileBytes) throw new Error(`it has ${stats.size} bytes, and at most ${maxFileBytes} are allowed`);
  return SearchFilters.parse(JSON.parse(readFileSync(file, 'utf8')));
}

/** The name of a file that describes filter keys; becomes its content. */
export const filtersFile = z.string().transform((file, context) => {
  try {
    return readFilters(file);
  } catch (error) {
    const problem =
      error instanceof z.ZodError
        ? z.prettifyError(new z.ZodError(error.issues.slice(0, maxProblems)))
        : (error as Error).message;
    context.addIssue({ code: 'custom', message: `names ${file}, which cannot be used: ${problem}` });
    return z.NEVER;
  }
});

/** Where pictures may be fetched from: a list of `public`, `none`, `host` (on every port) and `host:port`. */
export const mediaHosts = names.transform((given, context) => {
  const all = given.map((name) => name.toLowerCase());
  const hosts = all.filter((name) => name !== 'public' && name !== 'none');
  const wrong = hosts.filter((name) => listedHost(name) === undefined);
  const report = (message: string) => context.addIssue({ code: 'custom', message });
  if (wrong.length > 0)
    report(`must contain only public, none, host names and host:port, without a scheme or a path: ${wrong.join(', ')}`);
  if (all.includes('none') && all.length > 1) report('must not contain anything beside none');
  return { public: all.includes('public'), listed: hosts.flatMap((name) => listedHost(name) ?? []) };
});

/** The name as addresses spell it. An IPv6 address stands in brackets. */
function listedHost(name: string): { host: string; port?: number } | undefined {
  const [, host = '', port] = /^(\[[\da-f:.]+\]|[^\s:/?#@\\*%[\]]+)(?::(\d{1,5}))?$/i.exec(name) ?? [];
  const address = `http://${host}:${port ?? ''}`;
  if (host === '' || !URL.canParse(address) || Number(port) === 0) return undefined;
  return { host: new URL(address).hostname, ...(port !== undefined && { port: Number(port) }) };
}

const wanted =
  'must be redis:// or rediss:// and user:password@host:port/database, or postgres:// and user:password@host:port/database, then ?sslmode=disable, require or verify-full if need be';

/** Where the shared state is. No message repeats the address, because it may contain a password. */
export const stateAddress = z.string().transform((text, context) => {
  const address = /\s/.test(text) || !URL.canParse(text) ? undefined : stateAddressIn(new URL(text));
  if (address) return address;
  context.addIssue({ code: 'custom', message: wanted });
  return z.NEVER;
});

function stateAddressIn({ protocol, username, password, hostname, port, pathname, search, hash }: URL) {
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  const [user, secret, database] = [username, password, pathname.slice(1)].map(decoded);
  if (user === undefined || secret === undefined || database === undefined) return undefined;
  if (!/^[\w.:-]+$/.test(host) || hash) return undefined;
  if (protocol === 'redis:' || protocol === 'rediss:') {
    if (search || !/^\d{0,4}$/.test(database)) return undefined;
    const login = { ...(user && { username: user }), ...(secret && { password: secret }) };
    const numbered = database ? { database: Number(database) } : {};
    return {
      engine: 'redis' as const,
      tls: protocol === 'rediss:',
      host,
      port: Number(port || 6379),
      ...login,
      ...numbered,
    };
  }
  const [isMode, mode] = /^(?:\?sslmode=(disable|require|verify-full))?$/.exec(search) ?? [];
  if (!/^postgres(?:ql)?:$/.test(protocol) || isMode === undefined || !user || !database) return undefined;
  // The certificate is verified unless the address says otherwise; on this machine nothing is encrypted.
  const isPlain = mode === 'disable' || (mode === undefined && isLoopback(host));
  const ssl = isPlain ? (false as const) : { rejectUnauthorized: mode !== 'require' };
  return {
    engine: 'postgres' as const,
    host,
    port: Number(port || 5432),
    user,
    ...(secret && { password: secret }),
    database,
    ssl,
  };
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
