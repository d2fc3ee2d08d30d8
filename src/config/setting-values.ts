import { readFileSync, statSync } from 'node:fs';
import { isIP, isIPv4 } from 'node:net';
import { homedir } from 'node:os';
import * as z from 'zod';
import { parseSearchFilters, type SearchFilters } from '../api/search-filters.ts';

/**
 * Parses the text of a setting. Throws an error if the text is invalid. The message of the error has no subject, e.g.
 * `must be true or false`, because the caller puts the name of the setting before the message.
 *
 * Parsers are plain functions, because creating Zod schemas would delay every start.
 */
export type SettingParser<Value> = (settingText: string) => Value;

const throwProblem = (problem: string): never => {
  throw new Error(problem);
};

/** Wraps a parser so that the setting is optional. If the setting is missing, its value is undefined. */
export const makeOptional =
  <Value>(parse: SettingParser<Value>) =>
  (settingText: string | undefined): Value | undefined =>
    settingText === undefined ? undefined : parse(settingText);

/** Wraps a parser so that the setting has a default value, which is used if the setting is missing. */
export const addDefaultValue =
  <Value>(parse: SettingParser<Value>, defaultValue: NoInfer<Value>) =>
  (settingText: string | undefined): Value =>
    settingText === undefined ? defaultValue : parse(settingText);

/**
 * Parses the path of a file or folder. Replaces `~` at the beginning of the path with the user's home folder. Normally
 * a shell does this, but hosts start the server without a shell.
 */
export const parsePath: SettingParser<string> = (settingText) => settingText.replace(/^~(?=$|[/\\])/, () => homedir());

/**
 * Parses an API key, which consists of printable ASCII characters without spaces. Rejects a key in quotation marks,
 * which users often write by mistake: Docker's `--env-file` and systemd do not remove the marks as a shell does.
 */
export const parseApiKey: SettingParser<string> = (settingText) =>
  /^[\x21-\x7e]+$/.test(settingText) && !/^(["']).*\1$/.test(settingText)
    ? settingText
    : throwProblem('must be the key as shown in the developer portal, without spaces or quotation marks');

const trueWords = ['true', '1', 'yes', 'on'];
const falseWords = ['false', '0', 'no', 'off'];
/** Parses a boolean, e.g. `true`, `0`, `yes` or `OFF`. Case does not matter. */
export const parseBoolean: SettingParser<boolean> = (settingText) => {
  const word = settingText.toLowerCase();
  return trueWords.includes(word) || (falseWords.includes(word) ? false : throwProblem('must be true or false'));
};

/**
 * Creates a parser that accepts only the given words. For any other text, the parser throws an error with the message
 * `problem`.
 */
export const createChoiceParser =
  <const Word extends string>(words: readonly Word[], problem: string): SettingParser<Word> =>
  (settingText) =>
    words.find((word) => word === settingText) ?? throwProblem(problem);

/** Creates a parser that accepts whole numbers from `min` to `max`, inclusive. */
export const createWholeNumberParser =
  (min: number, max: number): SettingParser<number> =>
  (settingText) => {
    const wholeNumber = Number(settingText);
    const isValid = Number.isInteger(wholeNumber) && wholeNumber >= min && wholeNumber <= max;
    return isValid ? wholeNumber : throwProblem(`must be a whole number from ${min} to ${max}`);
  };

/** Parses an encryption secret, which must have at least 32 characters. */
export const parseSecret: SettingParser<string> = (settingText) =>
  [...settingText].length >= 32
    ? settingText
    : throwProblem('must have at least 32 characters; make one with: openssl rand -base64 32');

/**
 * Parses a comma-separated list of names. A list without any name, such as `,`, is rejected because it must be a
 * mistake.
 */
export const parseNames: SettingParser<string[]> = (settingText) => {
  const names = settingText
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  return names.length > 0 ? names : throwProblem('must contain at least one name, or be left empty');
};

/** Removes the brackets that surround an IPv6 address in a URL. */
const removeBrackets = (host: string) => host.replace(/^\[(.*)\]$/, '$1');

/** Parses the host name or IP address on which a server listens. Brackets around an IPv6 address are removed. */
export const parseListenHost: SettingParser<string> = (settingText) => {
  const host = removeBrackets(settingText);
  const isHostName = /^[a-z\d_-]+(\.[a-z\d_-]+)*\.?$/i.test(host) && !/^[\d.]+$/.test(host);
  if (isHostName || isIP(host) !== 0) return host;
  return throwProblem('must be a host name or an IP address, without scheme or port, such as 127.0.0.1');
};

/** Parses a comma-separated list of host names without ports. */
export const parseHostNames: SettingParser<string[]> = (settingText) => {
  const hostNames = parseNames(settingText);
  // Requests contain internationalized names in the form `xn--…`, so names with other letters never match.
  const wrongNames = hostNames.filter((name) => !/^(?:[\w.-]+|\[[\da-f:.]+\])$/i.test(name));
  if (wrongNames.length > 0)
    throwProblem(
      `must contain only host names, without scheme, port or *, and international names in the form xn--…: ${wrongNames.join(', ')}`,
    );
  return hostNames.map((name) => name.toLowerCase());
};

/**
 * Returns true for `localhost` and for loopback addresses such as `127.0.0.1`. Connections to such a host never leave
 * this machine.
 */
export const isLoopbackHost = (host: string) =>
  ['localhost', '::1', '[::1]'].includes(host) || (host.startsWith('127.') && isIPv4(host));

/** Parses a URL whose requests include the API key. For this reason, only loopback URLs may use http. */
function parseHttpsOrLoopbackUrl(settingText: string): URL {
  // Reject whitespace. The URL parser removes line breaks and tabs, so the result would differ from the text that the
  // user sees.
  const parsedUrl = !/\s/.test(settingText) && URL.canParse(settingText) ? new URL(settingText) : undefined;
  if (parsedUrl === undefined || !/^https?:$/.test(parsedUrl.protocol))
    return throwProblem('must be an address such as https://api.example.com');
  if (parsedUrl.protocol === 'http:' && !isLoopbackHost(parsedUrl.hostname))
    return throwProblem('must begin with https:// (http:// is only allowed for this machine)');
  if (parsedUrl.username || parsedUrl.password || parsedUrl.search || parsedUrl.hash)
    return throwProblem('must not contain a user, query or fragment');
  return parsedUrl;
}

/** Parses and normalizes a base URL. For example, `HTTP://LOCALHOST:80/api/` becomes `http://localhost/api`. */
export const parseBaseUrl: SettingParser<string> = (settingText) =>
  parseHttpsOrLoopbackUrl(settingText).href.replace(/(?<!\/)\/+$/, '');

/** Parses an origin, e.g. `https://ads.example.com`. A path is not allowed, because the server defines all paths. */
export const parseOrigin: SettingParser<string> = (settingText) => {
  const url = parseHttpsOrLoopbackUrl(settingText);
  if (url.pathname === '/' && !settingText.endsWith('/')) return url.origin;
  return throwProblem('must end with the host or its port, such as https://ads.example.com');
};

/**
 * A range of IP addresses, e.g. `10.0.0.0/8`. If `prefixLength` is the full length of an address, the range contains
 * only one address.
 */
export interface IpAddressRange {
  address: string;
  /** The number of leading bits that all addresses in the range share. */
  prefixLength: number;
  family: 'ipv4' | 'ipv6';
}

/** Parses an IP address or a range of addresses, e.g. `10.0.0.0/8`. */
const parseIpAddressRange: SettingParser<IpAddressRange> = (settingText) => {
  const [, address = '', prefixText] = /^\[?([\da-f.:]+)\]?(?:\/(\d{1,3}))?$/i.exec(settingText) ?? [];
  const family = isIP(address);
  const maxPrefixLength = family === 4 ? 32 : 128;
  const prefixLength = Number(prefixText ?? maxPrefixLength);
  if (family !== 0 && prefixLength <= maxPrefixLength)
    return { address, prefixLength, family: family === 4 ? 'ipv4' : 'ipv6' };
  return throwProblem('must be an IP address or a network, such as 10.0.0.2 or 10.0.0.0/8, or none');
};

/** Parses the IP address or the address range of the trusted proxy. The word `none` means that there is no proxy. */
export const parseTrustedProxy: SettingParser<IpAddressRange | 'none'> = (settingText) =>
  settingText.trim().toLowerCase() === 'none' ? 'none' : parseIpAddressRange(settingText);

const maxFiltersFileBytes = 1024 * 1024;
const maxListedProblems = 5;

function readFiltersFileContent(filePath: string): SearchFilters {
  const stats = statSync(filePath);
  if (!stats.isFile()) throw new Error('it is not a file');
  if (stats.size > maxFiltersFileBytes)
    throw new Error(`it has ${stats.size} bytes, but at most ${maxFiltersFileBytes} are allowed`);
  const bytes = readFileSync(filePath);
  // `>` of Windows PowerShell 5.1 writes UTF-16, and some editors write UTF-8 with a byte order mark. `TextDecoder`
  // removes the mark.
  const encoding = bytes[0] === 0xff && bytes[1] === 0xfe ? 'utf-16le' : 'utf-8';
  return parseSearchFilters(JSON.parse(new TextDecoder(encoding).decode(bytes)));
}

/**
 * Reads the JSON file that describes the filter keys of the service. The value of the setting is the parsed
 * description, not the file name.
 */
export const readFiltersFile: SettingParser<SearchFilters> = (filePath) => {
  try {
    return readFiltersFileContent(parsePath(filePath));
  } catch (error) {
    const problem =
      error instanceof z.ZodError
        ? z.prettifyError(new z.ZodError(error.issues.slice(0, maxListedProblems)))
        : (error as Error).message;
    return throwProblem(`names ${filePath}, which cannot be used: ${problem}`);
  }
};

/** The hosts from which the server may fetch the pictures of ads. */
export interface MediaHosts {
  /** True if all public hosts are allowed. Their pictures must be served over https. */
  allowsPublicHosts: boolean;
  /** Hosts that are allowed by name. Only these hosts may be on an internal network or use http. */
  listedHosts: ListedHost[];
}

/** A host that is allowed by name. If `port` is missing, all ports of the host are allowed. */
export interface ListedHost {
  host: string;
  port?: number;
}

/** Parses the hosts from which pictures may be fetched: `none`, or a list of `public`, `host` and `host:port`. */
export const parseMediaHosts: SettingParser<MediaHosts> = (settingText) => {
  const names = parseNames(settingText).map((name) => name.toLowerCase());
  const hostsAndPorts = names.filter((name) => name !== 'public' && name !== 'none');
  const wrongHosts = hostsAndPorts.filter((name) => parseListedHost(name) === undefined);
  if (wrongHosts.length > 0)
    throwProblem(
      `must contain only public, none, host names and host:port, without a scheme or a path: ${wrongHosts.join(', ')}`,
    );
  if (names.includes('none') && names.length > 1) throwProblem('must not contain anything beside none');
  return {
    allowsPublicHosts: names.includes('public'),
    listedHosts: hostsAndPorts.flatMap((name) => parseListedHost(name) ?? []),
  };
};

/** Parses `host` or `host:port`. Returns the host as it appears in URLs, with brackets around an IPv6 address. */
function parseListedHost(hostAndPort: string): ListedHost | undefined {
  const [, host = '', port] = /^(\[[\da-f:.]+\]|[^\s:/?#@\\*%[\]]+)(?::(\d{1,5}))?$/i.exec(hostAndPort) ?? [];
  const hostUrl = `http://${host}:${port ?? ''}`;
  if (host === '' || !URL.canParse(hostUrl) || Number(port) === 0) return undefined;
  return { host: new URL(hostUrl).hostname, ...(port !== undefined && { port: Number(port) }) };
}

const storeUrlProblem =
  'must have the form redis://user:password@host:port/database, or rediss:// for TLS, or postgres://user:password@host:port/database, which may end with ?sslmode=disable, ?sslmode=require or ?sslmode=verify-full';

/**
 * Parses the URL of the store (Redis or PostgreSQL) that replicas share. The error message does not repeat the URL,
 * because it may contain a password.
 */
export const parseStoreUrl = (settingText: string) =>
  (/\s/.test(settingText) || !URL.canParse(settingText) ? undefined : parseStoreConnection(new URL(settingText))) ??
  throwProblem(storeUrlProblem);

function parseStoreConnection({ protocol, username, password, hostname, port, pathname, search, hash }: URL) {
  const host = removeBrackets(hostname);
  const [user, decodedPassword, database] = [username, password, pathname.slice(1)].map(decodeUrlComponent);
  if (user === undefined || decodedPassword === undefined || database === undefined) return undefined;
  if (!/^[\w.:-]+$/.test(host) || hash) return undefined;
  if (protocol === 'redis:' || protocol === 'rediss:') {
    if (search || !/^\d{0,4}$/.test(database)) return undefined;
    return {
      engine: 'redis' as const,
      tls: protocol === 'rediss:',
      host,
      port: Number(port || 6379),
      ...(user && { username: user }),
      ...(decodedPassword && { password: decodedPassword }),
      ...(database && { database: Number(database) }),
    };
  }
  const [sslModeMatch, sslMode] = /^(?:\?sslmode=(disable|require|verify-full))?$/.exec(search) ?? [];
  if (!/^postgres(?:ql)?:$/.test(protocol) || sslModeMatch === undefined || !user || !database) return undefined;
  // Unless the URL sets another mode, connections to other machines use TLS and verify the server's certificate.
  // Connections to this machine are unencrypted.
  const isUnencrypted = sslMode === 'disable' || (sslMode === undefined && isLoopbackHost(host));
  const ssl = isUnencrypted ? (false as const) : { rejectUnauthorized: sslMode !== 'require' };
  return {
    engine: 'postgres' as const,
    host,
    port: Number(port || 5432),
    user,
    database,
    ssl,
    ...(decodedPassword && { password: decodedPassword }),
  };
}

function decodeUrlComponent(encodedText: string): string | undefined {
  try {
    return decodeURIComponent(encodedText);
  } catch {
    return undefined;
  }
}
