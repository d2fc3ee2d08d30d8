import { writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findUnknownVariables, readConfig, SettingsError } from '../../src/config/read-config.ts';
import { type Flags, type SettingName, settings } from '../../src/config/settings.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

function findProblems(
  environment: NodeJS.ProcessEnv,
  flags: Flags = {},
  commandName = 'library serve',
): readonly string[] {
  try {
    readConfig(environment, flags, { toolNames: ['search_ads', 'get_ad'], commandName });
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
  return [];
}

const findHttpProblems = (environment: NodeJS.ProcessEnv) => findProblems(environment, {}, 'http');
const base = { AD_LIBRARY_BASE_URL: 'https://api.example.com' };
const secret = 'a secret of at least 32 characters';

test('a setting counts as not set if its variable is empty or contains an unexpanded placeholder', () => {
  for (const { variable } of Object.values(settings))
    for (const text of ['', '   ', '${user_config.value}', '${}', ' ${API_KEY} '])
      expect(readConfig({ [variable]: text })).toEqual(readConfig({}));
});

test('a flag takes precedence over its environment variable, and no flag can set a secret', () => {
  expect(readConfig({ AD_LIBRARY_PORT: '1000' }, { port: '2000' }).port).toBe(2000);
  expect(readConfig({ AD_LIBRARY_PORT: '1000' }, { port: '' }).port).toBe(1000);
  for (const name of ['apiKey', 'signInSecret', 'stateSecret'] as const)
    expect(settings[name]).not.toHaveProperty('flag');
});

test('a secret can be read from a file whose path is in an environment variable with the suffix _FILE', () => {
  const folder = createTemporaryFolder();
  const file = join(folder, 'secret');
  for (const name of ['apiKey', 'signInSecret', 'stateSecret'] as const) {
    const variable = `${settings[name].variable}_FILE`;
    writeFileSync(file, `${secret.replaceAll(' ', '-')}\n`);
    expect(readConfig({ [variable]: file })[name]).toBe(secret.replaceAll(' ', '-'));
    expect(findUnknownVariables({ [variable]: file })).toEqual([]);
    expect(findProblems({ [variable]: file, [settings[name].variable]: 'other' })).toEqual([
      expect.stringContaining(`must be left out if ${variable} is set`),
    ]);
    writeFileSync(file, ' \n');
    expect(findProblems({ [variable]: file })).toEqual([
      expect.stringContaining(`is empty in the file of ${variable}`),
    ]);
    const unreadable = `cannot be read from the file of ${variable}`;
    expect(findProblems({ [variable]: folder })).toEqual([expect.stringContaining(`${unreadable}: EISDIR`)]);
    // Somebody may set the variable to the secret itself.
    const misplacedSecret = findProblems({ [variable]: 'hunter2-is-the-secret' });
    expect(misplacedSecret).toEqual([expect.stringContaining(`${unreadable}: ENOENT`)]);
    expect(misplacedSecret.join()).not.toContain('hunter2');
  }
  expect(findUnknownVariables({ AD_LIBRARY_PORT_FILE: file })).toHaveLength(1);
});

const redis = { engine: 'redis', tls: false, host: 'redis', port: 6379 };
const postgres = (other: object) => ({
  ...{ engine: 'postgres', host: 'db.example', port: 5432, user: 'me', database: 'ads' },
  ...{ ssl: { rejectUnauthorized: true }, ...other },
});
const createMediaHosts = (isPublic: boolean, ...allowedHosts: object[]) => ({
  allowsPublicHosts: isPublic,
  listedHosts: allowedHosts,
});

const acceptedTexts: Partial<Record<SettingName, [text: string, value: unknown][]>> = {
  demo: [
    ...['true', '1', 'YES', 'on'].map((text): [string, boolean] => [text, true]),
    ...['false', '0', 'no', 'Off'].map((text): [string, boolean] => [text, false]),
  ],
  host: [
    ['[::1]', '::1'],
    ['fd00::1', 'fd00::1'],
    ['0.0.0.0', '0.0.0.0'],
    ['Ads_1.Example.com', 'Ads_1.Example.com'],
  ],
  tools: [[' search_ads, get_ad ,,', ['search_ads', 'get_ad']]],
  allowedHosts: [['Ads.Example.com,[::1]', ['ads.example.com', '[::1]']]],
  files: [
    ['~/ads', `${homedir()}/ads`],
    ['~', homedir()],
    ['~me/ads', '~me/ads'],
    ['/ads/~', '/ads/~'],
  ],
  baseUrl: [
    ['https://api.example.com', 'https://api.example.com'],
    ['https://api.example.com/ads/prefix/', 'https://api.example.com/ads/prefix'],
    ['https://api.example.com:8443', 'https://api.example.com:8443'],
    ['http://localhost:3001', 'http://localhost:3001'],
    ['http://127.9.9.9', 'http://127.9.9.9'],
    ['http://[::1]:3001', 'http://[::1]:3001'],
  ],
  trustedProxy: [
    ['10.0.0.2', { address: '10.0.0.2', prefixLength: 32, family: 'ipv4' }],
    ['10.0.0.0/8', { address: '10.0.0.0', prefixLength: 8, family: 'ipv4' }],
    ['[fd00::]/8', { address: 'fd00::', prefixLength: 8, family: 'ipv6' }],
  ],
  mediaHosts: [
    ['public', createMediaHosts(true)],
    ['none', createMediaHosts(false)],
    ['Public, CDN.example.com', createMediaHosts(true, { host: 'cdn.example.com' })],
    ['localhost:8080', createMediaHosts(false, { host: 'localhost', port: 8080 })],
    ['[::1]:443,2130706433', createMediaHosts(false, { host: '[::1]', port: 443 }, { host: '127.0.0.1' })],
  ],
  stateUrl: [
    ['redis://redis', redis],
    ['rediss://redis:6380/2', { ...redis, tls: true, port: 6380, database: 2 }],
    ['redis://:pass%40word@redis/', { ...redis, password: 'pass@word' }],
    ['redis://me:a:b@redis', { ...redis, username: 'me', password: 'a:b' }],
    ['redis://[::1]:7000', { ...redis, host: '::1', port: 7000 }],
    ['postgres://me:p%40ss@db.example/ads', postgres({ password: 'p@ss' })],
    ['postgresql://me@db.example:6432/ads?sslmode=verify-full', postgres({ port: 6432 })],
    ['postgres://me@db.example/ads?sslmode=require', postgres({ ssl: { rejectUnauthorized: false } })],
    ['postgres://me@db.example/ads?sslmode=disable', postgres({ ssl: false })],
    ['postgres://me@localhost/ads', postgres({ host: 'localhost', ssl: false })],
    ['postgres://me@127.0.0.1/ads?sslmode=verify-full', postgres({ host: '127.0.0.1' })],
  ],
};

test.each(
  Object.entries(acceptedTexts).flatMap(([name, rows]) =>
    rows.map(([text, value]) => [name as SettingName, text, value] as const),
  ),
)('the setting %s accepts the value "%s"', (name, text, value) => {
  expect(readConfig({ [settings[name].variable]: text })[name]).toEqual(value);
});

const splitWords = (texts: string) => texts.split(' ');

/** Values that each variable rejects, grouped by a part of the error message. */
const refusedTexts: Record<string, Record<string, string[]>> = {
  PORT: { 'a whole number': ['65536', '-1', '80.5', 'http'] },
  CREDIT_BUDGET: { 'a whole number': ['-5'] },
  CACHE_SECONDS: { 'a whole number': ['15m'] },
  RESULT_TOKENS: { 'a whole number': ['10'] },
  TIMEOUT_MS: { 'a whole number': ['0'] },
  OUTPUT: { 'auto, both': ['json'] },
  LOG_LEVEL: { debug: ['loud'] },
  DEMO: { true: ['maybe'] },
  READ_ONLY: { true: ['ja'] },
  API_KEY: { 'without spaces or quotation marks': ['two words of a secret', '"secret"', "'secret'"] },
  HOST: {
    'a host name or an IP address': splitWords('http://localhost localhost:3000 ::1: 999.1.1.1 10.0.0 a..b [localhost'),
  },
  TOOLS: { 'at least one name': [' , '] },
  ALLOWED_ORIGINS: { 'at least one name': [' , '] },
  ALLOWED_HOSTS: {
    'at least one name': [' , '],
    'without scheme, port or *': splitWords(
      'ads.example.com:8443 https://ads.example.com *.example.com bücher.example',
    ),
  },
  PUBLIC_URL: {
    'https://': ['http://ads.example.com', 'ads.example.com'],
    'end with the host': ['https://ads.example.com/', 'https://ads.example.com/mcp'],
    'a user, query': ['https://ads.example.com?a=b', 'https://user@ads.example.com'],
  },
  SIGN_IN_SECRET: { 'at least 32': ['a short secret'] },
  STATE_SECRET: { 'at least 32': ['a short secret'] },
  TRUSTED_PROXY: { 'or none': ['proxy', '10.0.0.0/33', '10.0.0/8', '::1/129', '10.0.0.1,10.0.0.2'] },
  BASE_URL: {
    'https://': splitWords(
      'http://api.example.com http://localhost.example.com http://127.0.0.1.a.example http://0.0.0.0:3',
    ),
    address: [
      ...splitWords('ftp://a.example.com file:///etc/passwd api.example.com https://'),
      'https://a.example/\nads',
    ],
    'a user, query': splitWords('https://u:secret@a.example https://a.example?key=secret https://a.example#x'),
  },
  MEDIA_HOSTS: {
    'host names and host:port': splitWords(
      'https://a.example a.example/ads *.a.example a.example:0 a.example:65536 ::1',
    ),
    'anything beside none': ['none, cdn.example.com'],
    'at least one name': [','],
  },
  STATE_URL: {
    'redis://': [
      ...splitWords(
        'http://redis:6379 redis:// redis:6379 redis://redis:99999 redis://redis/name redis://secret%@redis',
      ),
      ...splitWords('redis://:secret@a,b redis://:secret@a?password=secret'),
      'redis://user:secret@a/\nb',
    ],
    'postgres://': [
      ...splitWords('postgres://me:secret@db postgres://db/ads?password=secret postgres://:secret@db/ads'),
      ...splitWords('postgres://me:secret@db,other/ads postgres://me:secret@db/ads?sslmode=allow'),
      'postgres://me:secret%@db/ads',
    ],
  },
};

test.each(
  Object.entries(refusedTexts).flatMap(([name, reasons]) =>
    Object.entries(reasons).flatMap(([reason, texts]) =>
      texts.map((text) => [`AD_LIBRARY_${name}`, text, reason] as const),
    ),
  ),
)('the variable %s rejects "%s" and says what is allowed', (variable, text, reason) => {
  const [problem, ...more] = findProblems({ [variable]: text });
  expect(problem).toMatch(new RegExp(`^${variable} must `));
  expect(problem).toContain(reason);
  expect(problem).not.toContain('secret');
  expect(more).toEqual([]);
});

test('an error about a setting with many unknown tools names at most five of the tools', () => {
  expect(findProblems({ AD_LIBRARY_PORT: 'x' }, { timeoutMs: 'w', tools: 'nope,search_ads,x' })).toEqual([
    expect.stringMatching(/^AD_LIBRARY_PORT must/),
    expect.stringMatching(/^--timeout-ms must/),
    '--tools lists unknown tools: nope, x. Tools: search_ads, get_ad',
  ]);
  expect(findProblems({}, { tools: 'nope,'.repeat(100_000) }).join().length).toBeLessThan(200);
});

test('a server that listens on a non-loopback address requires a list of allowed hosts', () => {
  // Without a command, nothing listens, so no list of allowed hosts is needed.
  expect(readConfig({ AD_LIBRARY_HOST: '0.0.0.0' }).host).toBe('0.0.0.0');
  for (const host of ['0.0.0.0', '::'])
    expect(findProblems({ AD_LIBRARY_HOST: host })).toEqual([expect.stringContaining('AD_LIBRARY_ALLOWED_HOSTS')]);
  expect(findProblems({ AD_LIBRARY_HOST: '0.0.0.0', AD_LIBRARY_ALLOWED_HOSTS: 'ads.example.com' })).toEqual([]);
  for (const host of ['localhost', '127.0.0.1', '127.1.2.3', '::1', '[::1]'])
    expect(findProblems({ AD_LIBRARY_HOST: host })).toEqual([]);
});

test('sign-in requires a public URL and cannot be combined with demo data', () => {
  const url = { ...base, AD_LIBRARY_PUBLIC_URL: 'https://ads.example.com' };
  const completeVariables = { ...url, AD_LIBRARY_SIGN_IN_SECRET: secret };
  expect(findHttpProblems(completeVariables)).toEqual([]);
  expect(findHttpProblems({ ...completeVariables, AD_LIBRARY_HOST: '0.0.0.0' })).toEqual([]);
  expect(findHttpProblems(url)).toEqual([]);
  expect(findHttpProblems({ ...base, AD_LIBRARY_SIGN_IN_SECRET: secret })).toEqual([
    expect.stringMatching(/^AD_LIBRARY_PUBLIC_URL .*must be set/),
  ]);
  expect(findHttpProblems({ ...url, AD_LIBRARY_DEMO: 'true' })).toEqual([]);
  expect(findHttpProblems({ ...completeVariables, AD_LIBRARY_DEMO: 'true' })).toHaveLength(1);
});

test('AD_LIBRARY_STATE_URL, the URL of a shared store, and its secret must be set together, and the URL works only with the http command', () => {
  const url = { ...base, AD_LIBRARY_STATE_URL: 'redis://redis' };
  expect(findHttpProblems(url)).toEqual([
    expect.stringMatching(/^AD_LIBRARY_STATE_SECRET must be set.*openssl rand -base64 32/),
  ]);
  expect(findHttpProblems({ ...url, AD_LIBRARY_STATE_SECRET: secret })).toEqual([]);
  expect(findHttpProblems({ ...base, AD_LIBRARY_STATE_SECRET: secret })).toEqual([
    expect.stringMatching(/^AD_LIBRARY_STATE_URL .*must be set/),
  ]);
  expect(findHttpProblems({ ...url, AD_LIBRARY_STATE_URL: 'x', AD_LIBRARY_STATE_SECRET: secret })).toHaveLength(1);
  expect(findProblems(url, {}, 'stdio')).toEqual([expect.stringContaining('only for http')]);
  expect(findProblems(url)).toEqual([]);
});

test('no error about an invalid setting contains the API key', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      for (const problem of findProblems({ AD_LIBRARY_API_KEY: `svc_live_CANARY ${text}` }))
        expect(problem).not.toContain('CANARY');
    }),
  );
});

/** Typing errors: a missing letter, a repeated letter, and two swapped letters. */
const typingErrors = [
  (name: string, at: number) => name.slice(0, at) + name.slice(at + 1),
  (name: string, at: number) => name.slice(0, at + 1) + name.slice(at),
  (name: string, at: number) => name.slice(0, at) + name.charAt(at + 1) + name.charAt(at) + name.slice(at + 2),
];

test('a data folder whose path contains an unexpanded placeholder counts as not set', () => {
  for (const text of ['${DOCUMENTS}/Ad Library', '/home/x/${user_config.files}'])
    expect(readConfig({ AD_LIBRARY_FILES: text }).files).toBeUndefined();
});

test('the error about a misspelled variable suggests the correct name', () => {
  const variables = Object.values(settings).map(({ variable }) => variable);
  const prefix = 'AD_LIBRARY_';
  fc.assert(
    fc.property(
      fc.constantFrom(...variables),
      fc.constantFrom(...typingErrors),
      fc.nat(),
      (variable, makeError, number) => {
        const name = variable.slice(prefix.length);
        const wrongVariable = prefix + makeError(name, number % (name.length - 1));
        fc.pre(!variables.includes(wrongVariable));
        expect(findUnknownVariables({ [wrongVariable]: '1' })).toEqual([
          expect.stringMatching(`did you mean ${variable}\\?$`),
        ]);
      },
    ),
    { numRuns: 300 },
  );
});
