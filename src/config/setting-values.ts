import { readFileSync, statSync } from 'node:fs';
import { isIP, isIPv4 } from 'node:net';
import * as z from 'zod';
import { readSearchFilters, type SearchFilters } from '../api/search-filters.ts';

/** The message of what it throws follows the setting's name. No schemas: a host would wait while they are built. */
export type Read<Value> = (text: string) => Value;

const wrong = (problem: string): never => {
  throw new Error(problem);
};

export const optional =
  <Value>(read: Read<Value>) =>
  (text: string | undefined): Value | undefined =>
    text === undefined ? undefined : read(text);

export const withDefault =
  <Value>(read: Read<Value>, value: NoInfer<Value>) =>
  (text: string | undefined): Value =>
    text === undefined ? value : read(text);

export const anyText: Read<string> = (text) => text;

export const apiKey: Read<string> = (text) =>
  /^[\x21-\x7e]+$/.test(text) ? text : wrong('must be the key as shown in the developer portal, without spaces');

const yes = ['true', '1', 'yes', 'on'];
const no = ['false', '0', 'no', 'off'];
export const onOff: Read<boolean> = (text) => {
  const word = text.toLowerCase();
  return yes.includes(word) || (no.includes(word) ? false : wrong('must be true or false'));
};

export const oneOf =
  <const Word extends string>(words: readonly Word[], problem: string): Read<Word> =>
  (text) =>
    words.find((word) => word === text) ?? wrong(problem);

export const wholeNumber =
  (min: number, max: number): Read<number> =>
  (text) => {
    const value = Number(text);
    const fits = Number.isInteger(value) && value >= min && value <= max;
    return fits ? value : wrong(`must be a whole number from ${min} to ${max}`);
  };

export const sealSecret: Read<string> = (text) =>
  [...text].length >= 32 ? text : wrong('must have at least 32 characters; make one with: openssl rand -base64 32');

/** A list without a name is a mistake: to name nothing, leave the setting empty. */
export const names: Read<string[]> = (text) => {
  const all = text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  return all.length > 0 ? all : wrong('must hold at least one name, or be left empty');
};

/** Also accepts an IPv6 host in brackets, as in an address. */
export const hostName: Read<string> = (text) => text.replace(/^\[(.*)\]$/, '$1');

/** Host names as they appear in requests, without a port. */
export const hostNames: Read<string[]> = (text) => {
  const all = names(text);
  const others = all.filter((name) => /[/:]/.test(name) && !name.startsWith('['));
  if (others.length > 0) wrong(`must contain only host names, without scheme or port: ${others.join(', ')}`);
  return all.map((name) => name.toLowerCase());
};

export const isLoopback = (host: string) =>
  ['localhost', '::1', '[::1]'].includes(host) || (host.startsWith('127.') && isIPv4(host));

/** Every request carries the key, so only loopback addresses may be unencrypted. */
function addressIn(text: string): URL {
  // The URL parser drops line breaks and tabs, so the address would differ from the one that a person reads.
  const url = !/\s/.test(text) && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    return wrong('must be an address such as https://api.example.com');
  if (url.protocol === 'http:' && !isLoopback(url.hostname))
    return wrong('must begin with https:// (http:// is only allowed for this machine)');
  if (url.username || url.password || url.search || url.hash)
    return wrong('must not contain a user, query or fragment');
  return url;
}

/** Normalizes an address: `HTTP://LOCALHOST:80/api/` becomes `http://localhost/api`. */
export const baseUrl: Read<string> = (text) => addressIn(text).href.replace(/(?<!\/)\/+$/, '');

/** The address where people reach the server, without a path: the paths are the server's own. */
export const origin: Read<string> = (text) => {
  const url = addressIn(text);
  if (url.pathname === '/' && !text.endsWith('/')) return url.origin;
  return wrong('must end with the host or its port, such as https://ads.example.com');
};

export interface Network {
  address: string;
  prefix: number;
  family: 'ipv4' | 'ipv6';
}

/** An address, or a network such as `10.0.0.0/8`. */
export const network: Read<Network> = (text) => {
  const [, address = '', length] = /^\[?([\da-f.:]+)\]?(?:\/(\d{1,3}))?$/i.exec(text) ?? [];
  const family = isIP(address);
  const bits = family === 4 ? 32 : 128;
  const prefix = Number(length ?? bits);
  if (family !== 0 && prefix <= bits) return { address, prefix, family: family === 4 ? 'ipv4' : 'ipv6' };
  return wrong('must be an address or a network, such as 10.0.0.2 or 10.0.0.0/8');
};

const maxFileBytes = 1024 * 1024;
const maxProblems = 5;

function readFilters(file: string): SearchFilters {
  const stats = statSync(file);
  if (!stats.isFile()) throw new Error('it is not a file');
  if (stats.size > maxFileBytes) throw new Error(`it has ${stats.size} bytes, and at most ${maxFileBytes} are allowed`);
  return readSearchFilters(JSON.parse(readFileSync(file, 'utf8')));
}

/** The name of a file that describes filter keys. The value of the setting is the content of the file. */
export const filtersFile: Read<SearchFilters> = (file) => {
  try {
    return readFilters(file);
  } catch (error) {
    const problem =
      error instanceof z.ZodError
        ? z.prettifyError(new z.ZodError(error.issues.slice(0, maxProblems)))
        : (error as Error).message;
    return wrong(`names ${file}, which cannot be used: ${problem}`);
  }
};

export interface MediaHosts {
  public: boolean;
  listed: ListedHost[];
}

export interface ListedHost {
  host: string;
  port?: number;
}

/** Where pictures may be fetched from: a list of `public`, `none`, `host` (on every port) and `host:port`. */
export const mediaHosts: Read<MediaHosts> = (text) => {
  const all = names(text).map((name) => name.toLowerCase());
  const hosts = all.filter((name) => name !== 'public' && name !== 'none');
  const others = hosts.filter((name) => listedHost(name) === undefined);
  if (others.length > 0)
    wrong(`must contain only public, none, host names and host:port, without a scheme or a path: ${others.join(', ')}`);
  if (all.includes('none') && all.length > 1) wrong('must not contain anything beside none');
  return { public: all.includes('public'), listed: hosts.flatMap((name) => listedHost(name) ?? []) };
};

/** The name as addresses spell it. An IPv6 address stands in brackets. */
function listedHost(name: string): ListedHost | undefined {
  const [, host = '', port] = /^(\[[\da-f:.]+\]|[^\s:/?#@\\*%[\]]+)(?::(\d{1,5}))?$/i.exec(name) ?? [];
  const address = `http://${host}:${port ?? ''}`;
  if (host === '' || !URL.canParse(address) || Number(port) === 0) return undefined;
  return { host: new URL(address).hostname, ...(port !== undefined && { port: Number(port) }) };
}

const wanted =
  'must be redis:// or rediss:// and user:password@host:port/database, or postgres:// and user:password@host:port/database, then ?sslmode=disable, require or verify-full if need be';

/** Where the shared state is. No message repeats the address, because it may contain a password. */
export const stateAddress = (text: string) =>
  (/\s/.test(text) || !URL.canParse(text) ? undefined : stateAddressIn(new URL(text))) ?? wrong(wanted);

function stateAddressIn({ protocol, username, password, hostname, port, pathname, search, hash }: URL) {
  const host = hostName(hostname);
  const [user, secret, database] = [username, password, pathname.slice(1)].map(decode);
  if (user === undefined || secret === undefined || database === undefined) return undefined;
  if (!/^[\w.:-]+$/.test(host) || hash) return undefined;
  if (protocol === 'redis:' || protocol === 'rediss:') {
    if (search || !/^\d{0,4}$/.test(database)) return undefined;
    return {
      engine: 'redis' as const,
      tls: protocol === 'rediss:',
      host,
      port: Number(port || 6379),
      ...(user && { username: user }),
      ...(secret && { password: secret }),
      ...(database && { database: Number(database) }),
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
    database,
    ssl,
    ...(secret && { password: secret }),
  };
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
