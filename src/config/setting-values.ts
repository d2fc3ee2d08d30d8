import { readFileSync, statSync } from 'node:fs';
import { isIP, isIPv4 } from 'node:net';
import * as z from 'zod';
import { readSearchFilters, type SearchFilters } from '../api/search-filters.ts';

/** The message of what it throws follows the setting's name. No schemas: a host would wait while they are built. */
export type Parser<Value> = (text: string) => Value;

const throwProblem = (problem: string): never => {
  throw new Error(problem);
};

export const optional =
  <Value>(read: Parser<Value>) =>
  (text: string | undefined): Value | undefined =>
    text === undefined ? undefined : read(text);

export const withDefault =
  <Value>(read: Parser<Value>, value: NoInfer<Value>) =>
  (text: string | undefined): Value =>
    text === undefined ? value : read(text);

export const parseText: Parser<string> = (text) => text;

export const parseApiKey: Parser<string> = (text) =>
  /^[\x21-\x7e]+$/.test(text) ? text : throwProblem('must be the key as shown in the developer portal, without spaces');

const trueWords = ['true', '1', 'yes', 'on'];
const falseWords = ['false', '0', 'no', 'off'];
export const parseOnOff: Parser<boolean> = (text) => {
  const word = text.toLowerCase();
  return trueWords.includes(word) || (falseWords.includes(word) ? false : throwProblem('must be true or false'));
};

export const parseOneOf =
  <const Word extends string>(words: readonly Word[], problem: string): Parser<Word> =>
  (text) =>
    words.find((word) => word === text) ?? throwProblem(problem);

export const parseWholeNumber =
  (min: number, max: number): Parser<number> =>
  (text) => {
    const value = Number(text);
    const fits = Number.isInteger(value) && value >= min && value <= max;
    return fits ? value : throwProblem(`must be a whole number from ${min} to ${max}`);
  };

export const parseSecret: Parser<string> = (text) =>
  [...text].length >= 32
    ? text
    : throwProblem('must have at least 32 characters; make one with: openssl rand -base64 32');

/** A list without a name is a mistake: to name nothing, leave the setting empty. */
export const parseNames: Parser<string[]> = (text) => {
  const all = text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  return all.length > 0 ? all : throwProblem('must hold at least one name, or be left empty');
};

/** Also accepts an IPv6 host in brackets, as in an address. */
export const parseHostName: Parser<string> = (text) => text.replace(/^\[(.*)\]$/, '$1');

/** Host names as they appear in requests, without a port. */
export const parseHostNames: Parser<string[]> = (text) => {
  const all = parseNames(text);
  const others = all.filter((name) => /[/:]/.test(name) && !name.startsWith('['));
  if (others.length > 0) throwProblem(`must contain only host names, without scheme or port: ${others.join(', ')}`);
  return all.map((name) => name.toLowerCase());
};

export const isLoopback = (host: string) =>
  ['localhost', '::1', '[::1]'].includes(host) || (host.startsWith('127.') && isIPv4(host));

/** Every request carries the key, so only loopback addresses may be unencrypted. */
function parseUrl(text: string): URL {
  // The URL parser drops line breaks and tabs, so the address would differ from the one that a person reads.
  const url = !/\s/.test(text) && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    return throwProblem('must be an address such as https://api.example.com');
  if (url.protocol === 'http:' && !isLoopback(url.hostname))
    return throwProblem('must begin with https:// (http:// is only allowed for this machine)');
  if (url.username || url.password || url.search || url.hash)
    return throwProblem('must not contain a user, query or fragment');
  return url;
}

/** Normalizes an address: `HTTP://LOCALHOST:80/api/` becomes `http://localhost/api`. */
export const parseBaseUrl: Parser<string> = (text) => parseUrl(text).href.replace(/(?<!\/)\/+$/, '');

/** The address where people reach the server, without a path: the paths are the server's own. */
export const parseOrigin: Parser<string> = (text) => {
  const url = parseUrl(text);
  if (url.pathname === '/' && !text.endsWith('/')) return url.origin;
  return throwProblem('must end with the host or its port, such as https://ads.example.com');
};

export interface Network {
  address: string;
  prefix: number;
  family: 'ipv4' | 'ipv6';
}

/** An address, or a network such as `10.0.0.0/8`. */
export const parseNetwork: Parser<Network> = (text) => {
  const [, address = '', length] = /^\[?([\da-f.:]+)\]?(?:\/(\d{1,3}))?$/i.exec(text) ?? [];
  const family = isIP(address);
  const bits = family === 4 ? 32 : 128;
  const prefix = Number(length ?? bits);
  if (family !== 0 && prefix <= bits) return { address, prefix, family: family === 4 ? 'ipv4' : 'ipv6' };
  return throwProblem('must be an address or a network, such as 10.0.0.2 or 10.0.0.0/8');
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
export const readFiltersFile: Parser<SearchFilters> = (file) => {
  try {
    return readFilters(file);
  } catch (error) {
    const problem =
      error instanceof z.ZodError
        ? z.prettifyError(new z.ZodError(error.issues.slice(0, maxProblems)))
        : (error as Error).message;
    return throwProblem(`names ${file}, which cannot be used: ${problem}`);
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
export const parseMediaHosts: Parser<MediaHosts> = (text) => {
  const all = parseNames(text).map((name) => name.toLowerCase());
  const hosts = all.filter((name) => name !== 'public' && name !== 'none');
  const others = hosts.filter((name) => parseListedHost(name) === undefined);
  if (others.length > 0)
    throwProblem(
      `must contain only public, none, host names and host:port, without a scheme or a path: ${others.join(', ')}`,
    );
  if (all.includes('none') && all.length > 1) throwProblem('must not contain anything beside none');
  return { public: all.includes('public'), listed: hosts.flatMap((name) => parseListedHost(name) ?? []) };
};

/** The name as addresses spell it. An IPv6 address stands in brackets. */
function parseListedHost(name: string): ListedHost | undefined {
  const [, host = '', port] = /^(\[[\da-f:.]+\]|[^\s:/?#@\\*%[\]]+)(?::(\d{1,5}))?$/i.exec(name) ?? [];
  const address = `http://${host}:${port ?? ''}`;
  if (host === '' || !URL.canParse(address) || Number(port) === 0) return undefined;
  return { host: new URL(address).hostname, ...(port !== undefined && { port: Number(port) }) };
}

const stateAddressProblem =
  'must be redis:// or rediss:// and user:password@host:port/database, or postgres:// and user:password@host:port/database, then ?sslmode=disable, require or verify-full if need be';

/** Where the shared state is. No message repeats the address, because it may contain a password. */
export const parseStateAddress = (text: string) =>
  (/\s/.test(text) || !URL.canParse(text) ? undefined : parseStateUrl(new URL(text))) ??
  throwProblem(stateAddressProblem);

function parseStateUrl({ protocol, username, password, hostname, port, pathname, search, hash }: URL) {
  const host = parseHostName(hostname);
  const [user, secret, database] = [username, password, pathname.slice(1)].map(decodeUrlPart);
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

function decodeUrlPart(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
