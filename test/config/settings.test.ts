import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readConfig, SettingsError, unknownVariables } from '../../src/config/read-config.ts';
import { type Flags, settings } from '../../src/config/settings.ts';

/** What a server that listens would be told. */
function problemsOf(environment: NodeJS.ProcessEnv, flags: Flags = {}, options: object = {}): readonly string[] {
  try {
    readConfig(environment, flags, { tools: ['search_ads', 'get_ad'], listens: true, ...options });
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
  return [];
}

test('without settings the documented defaults hold', () => {
  expect(readConfig({})).toMatchObject({
    apiKey: undefined,
    baseUrl: undefined,
    demo: false,
    host: '127.0.0.1',
    port: 3000,
    allowedHosts: undefined,
    allowedOrigins: [],
    creditBudget: undefined,
    cacheSeconds: 900,
    resultTokens: 8000,
    output: 'auto',
    tools: undefined,
    readOnly: false,
    timeoutMs: 45_000,
    logLevel: 'warn',
    database: undefined,
    files: undefined,
    searchFilters: undefined,
    mediaHosts: { public: true, listed: [] },
    stateUrl: undefined,
    stateSecret: undefined,
    trustedProxy: undefined,
    publicUrl: undefined,
    signInSecret: undefined,
  });
});

test('a variable that is left empty, or was never filled in, counts as absent', () => {
  for (const { variable } of Object.values(settings))
    for (const text of ['', '   ', '${user_config.value}', '${}', ' ${API_KEY} '])
      expect(readConfig({ [variable]: text })).toEqual(readConfig({}));
});

test('a flag overrides its variable, and the key has no flag', () => {
  expect(readConfig({ AD_LIBRARY_PORT: '1000' }, { port: '2000' }).port).toBe(2000);
  expect(readConfig({ AD_LIBRARY_PORT: '1000' }, { port: '' }).port).toBe(1000);
  expect(settings.apiKey).not.toHaveProperty('flag');
});

test('a switch is on or off in the usual words', () => {
  for (const [words, value] of [
    [['true', '1', 'YES', 'on'], true],
    [['false', '0', 'no', 'Off'], false],
  ] as const)
    for (const text of words) expect(readConfig({ AD_LIBRARY_DEMO: text }).demo).toBe(value);
});

describe('sign-in', () => {
  const url = { AD_LIBRARY_PUBLIC_URL: 'https://ads.example.com' };
  const secret = { AD_LIBRARY_SIGN_IN_SECRET: 'a secret of at least 32 characters' };
  const base = { AD_LIBRARY_BASE_URL: 'https://api.example.com' };

  test('takes its two settings together, and not with demo data', () => {
    const problems = (environment: object) => problemsOf({ ...base, ...environment }, {}, { http: true });
    expect(problems({ ...url, ...secret })).toEqual([]);
    expect(problems({ ...url, ...secret, AD_LIBRARY_HOST: '0.0.0.0' })).toEqual([]);
    expect(problems(url)).toEqual([expect.stringMatching(/^AD_LIBRARY_SIGN_IN_SECRET must be set.*openssl/)]);
    expect(problems(secret)).toEqual([expect.stringMatching(/^AD_LIBRARY_PUBLIC_URL .*must be set/)]);
    expect(problems({ ...url, ...secret, AD_LIBRARY_DEMO: 'true' })).toHaveLength(2);
    expect(problems({ ...url, AD_LIBRARY_SIGN_IN_SECRET: 'too short' })).toEqual([
      expect.stringMatching(/^AD_LIBRARY_SIGN_IN_SECRET must have at least 32(?!.*too short)/),
    ]);
  });

  test.each([
    'http://ads.example.com',
    'https://ads.example.com/',
    'https://ads.example.com/mcp',
    'https://ads.example.com?a=b',
    'https://user@ads.example.com',
    'ads.example.com',
  ])('has no public URL %s', (publicUrl) =>
    expect(problemsOf({ AD_LIBRARY_PUBLIC_URL: publicUrl })).toEqual([
      expect.stringMatching(/^AD_LIBRARY_PUBLIC_URL must/),
    ]),
  );

  test.each([
    ['10.0.0.2', { address: '10.0.0.2', prefix: 32, family: 'ipv4' }],
    ['10.0.0.0/8', { address: '10.0.0.0', prefix: 8, family: 'ipv4' }],
    ['[fd00::]/8', { address: 'fd00::', prefix: 8, family: 'ipv6' }],
  ])('believes a proxy at %s', (text, network) =>
    expect(readConfig({ AD_LIBRARY_TRUSTED_PROXY: text }).trustedProxy).toEqual(network),
  );

  test.each(['proxy', '10.0.0.0/33', '10.0.0/8', '::1/129', '10.0.0.1,10.0.0.2'])('believes no proxy %s', (text) =>
    expect(problemsOf({ AD_LIBRARY_TRUSTED_PROXY: text })).toEqual([expect.stringContaining('10.0.0.0/8')]),
  );
});

describe('the address of the shared state', () => {
  const redis = { engine: 'redis', tls: false, host: 'redis', port: 6379 };
  const postgres = (other: object) => ({
    ...{ engine: 'postgres', host: 'db.example', port: 5432, user: 'me', database: 'ads' },
    ...{ ssl: { rejectUnauthorized: true }, ...other },
  });
  test.each([
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
  ])('may be %s', (url, expected) => expect(readConfig({ AD_LIBRARY_STATE_URL: url }).stateUrl).toEqual(expected));

  test.each([
    'http://redis',
    'redis://',
    'redis:6379',
    'redis://redis:99999',
    'redis://redis/name',
    'redis://secret%@redis',
    'redis://:secret@a,b',
    'redis://:secret@a?password=secret',
    'redis://user:secret@a/\nb',
    'postgres://me:secret@db',
    'postgres://db/ads?password=secret',
    'postgres://:secret@db/ads',
    'postgres://me:secret@db,other/ads',
    'postgres://me:secret@db/ads?sslmode=allow',
    'postgres://me:secret%@db/ads',
  ])('may not be %s, and no message repeats it', (url) => {
    const [problem, ...more] = problemsOf({ AD_LIBRARY_STATE_URL: url });
    expect(problem).toMatch(/^AD_LIBRARY_STATE_URL must/);
    expect(problem).not.toContain('secret');
    expect(more).toEqual([]);
  });
});

describe('the shared state', () => {
  const over = (environment: object, options: object) =>
    problemsOf({ AD_LIBRARY_BASE_URL: 'https://api.example.com', ...environment }, {}, options);
  const url = { AD_LIBRARY_STATE_URL: 'redis://redis' };

  test('needs a secret of 32 characters over HTTP, which is not repeated, and the message says how to make one', () => {
    expect(over(url, { http: true })).toEqual([
      expect.stringMatching(/^AD_LIBRARY_STATE_SECRET must be set.*openssl rand -base64 32/),
    ]);
    expect(over({ ...url, AD_LIBRARY_STATE_SECRET: 'x'.repeat(32) }, { http: true })).toEqual([]);
    expect(over({ ...url, AD_LIBRARY_STATE_SECRET: 'too short' }, { http: true })).toEqual([
      expect.stringMatching(/at least 32 characters(?!.*too short)/),
    ]);
  });

  test('is not there over stdio, and commands of the local library ignore it', () => {
    expect(over(url, { listens: false, oneUser: true })).toEqual([expect.stringContaining('only for http')]);
    expect(over(url, {})).toEqual([]);
  });
});

describe('the base address', () => {
  test.each([
    'https://api.example.com',
    'https://api.example.com/ads/prefix/',
    'https://api.example.com:8443',
    'http://localhost:3001',
    'http://127.0.0.1:3001',
    'http://127.9.9.9',
    'http://[::1]:3001',
  ])('may be %s', (address) =>
    expect(readConfig({ AD_LIBRARY_BASE_URL: address }).baseUrl).toBe(address.replace(/\/$/, '')),
  );

  test.each([
    ['http://api.example.com', 'https://'],
    ['http://localhost.example.com', 'https://'],
    ['http://127.0.0.1.example.com', 'https://'],
    ['http://0.0.0.0:3001', 'https://'],
    ['ftp://api.example.com', 'address'],
    ['file:///etc/passwd', 'address'],
    ['api.example.com', 'address'],
    ['https://', 'address'],
    ['https://api.example.com/\nads', 'address'],
    ['https://user:secret@api.example.com', 'a user'],
    ['https://api.example.com?key=secret', 'a user, query'],
    ['https://api.example.com#x', 'fragment'],
  ])('may not be %s', (address, reason) => {
    const [problem, ...more] = problemsOf({ AD_LIBRARY_BASE_URL: address });
    expect(problem).toContain(`AD_LIBRARY_BASE_URL must`);
    expect(problem).toContain(reason);
    expect(problem).not.toContain('secret');
    expect(more).toEqual([]);
  });
});

test.each([
  ['AD_LIBRARY_PORT', '65536'],
  ['AD_LIBRARY_PORT', '-1'],
  ['AD_LIBRARY_PORT', '80.5'],
  ['AD_LIBRARY_PORT', 'http'],
  ['AD_LIBRARY_CREDIT_BUDGET', '-5'],
  ['AD_LIBRARY_CACHE_SECONDS', '15m'],
  ['AD_LIBRARY_RESULT_TOKENS', '10'],
  ['AD_LIBRARY_TIMEOUT_MS', '0'],
  ['AD_LIBRARY_OUTPUT', 'json'],
  ['AD_LIBRARY_LOG_LEVEL', 'loud'],
  ['AD_LIBRARY_DEMO', 'maybe'],
  ['AD_LIBRARY_READ_ONLY', 'ja'],
  ['AD_LIBRARY_API_KEY', 'two words'],
  ['AD_LIBRARY_STATE_URL', 'http://redis:6379'],
])('%s=%s is refused, by name and with what it may be', (variable, text) => {
  expect(problemsOf({ [variable]: text })).toEqual([expect.stringMatching(new RegExp(`^${variable} must be .+`))]);
});

test.each([
  ['public', { public: true, listed: [] }],
  ['none', { public: false, listed: [] }],
  ['Public, CDN.example.com', { public: true, listed: [{ host: 'cdn.example.com' }] }],
  ['localhost:8080', { public: false, listed: [{ host: 'localhost', port: 8080 }] }],
  ['cdn.example.com:80', { public: false, listed: [{ host: 'cdn.example.com', port: 80 }] }],
  ['[::1]:443,2130706433', { public: false, listed: [{ host: '[::1]', port: 443 }, { host: '127.0.0.1' }] }],
])('picture hosts may be %s', (text, hosts) => {
  expect(readConfig({ AD_LIBRARY_MEDIA_HOSTS: text }).mediaHosts).toEqual(hosts);
});

test.each([
  ['https://cdn.example.com', 'host names and host:port'],
  ['cdn.example.com/ads', 'host names and host:port'],
  ['*.example.com', 'host names and host:port'],
  ['cdn.example.com:0', 'host names and host:port'],
  ['cdn.example.com:65536', 'host names and host:port'],
  ['::1', 'host names and host:port'],
  ['none, cdn.example.com', 'anything beside none'],
  [',', 'at least one name'],
])('picture hosts may not be %s', (text, reason) => {
  expect(problemsOf({ AD_LIBRARY_MEDIA_HOSTS: text })).toEqual([
    expect.stringMatching(`AD_LIBRARY_MEDIA_HOSTS must .*${reason}`),
  ]);
});

test('all problems are reported at once, those of flags by the flag', () => {
  const problems = problemsOf(
    { AD_LIBRARY_PORT: 'x', AD_LIBRARY_OUTPUT: 'y', AD_LIBRARY_DEMO: 'z' },
    { timeoutMs: 'w' },
  );
  expect(problems).toHaveLength(4);
  expect(problems.join('\n')).toMatch(
    /AD_LIBRARY_DEMO[\s\S]*AD_LIBRARY_PORT[\s\S]*AD_LIBRARY_OUTPUT[\s\S]*--timeout-ms/,
  );
});

test('an unknown tool name is reported with the known ones', () => {
  const told = '--tools lists unknown tools: nope, x. Tools: search_ads, get_ad';
  expect(problemsOf({ AD_LIBRARY_PORT: 'x' }, { tools: 'nope,search_ads,x' })).toEqual([expect.anything(), told]);
});

test('host names are read in any case, and are names alone', () => {
  expect(readConfig({ AD_LIBRARY_ALLOWED_HOSTS: 'Ads.Example.com,[::1]' }).allowedHosts).toEqual([
    'ads.example.com',
    '[::1]',
  ]);
  for (const wrong of ['ads.example.com:8443', 'https://ads.example.com'])
    expect(problemsOf({ AD_LIBRARY_ALLOWED_HOSTS: wrong })).toEqual([
      expect.stringContaining('without scheme or port'),
    ]);
});

test('listening beyond loopback requires allowed hosts', () => {
  // Where nothing listens, it is ignored.
  expect(readConfig({ AD_LIBRARY_HOST: '0.0.0.0' }).host).toBe('0.0.0.0');
  expect(problemsOf({ AD_LIBRARY_HOST: '0.0.0.0' })).toEqual([expect.stringContaining('AD_LIBRARY_ALLOWED_HOSTS')]);
  expect(problemsOf({ AD_LIBRARY_HOST: '::', AD_LIBRARY_ALLOWED_HOSTS: ' , ' })).toHaveLength(1);
  expect(problemsOf({ AD_LIBRARY_HOST: '0.0.0.0', AD_LIBRARY_ALLOWED_HOSTS: 'ads.example.com' })).toEqual([]);
  for (const host of ['localhost', '127.0.0.1', '127.1.2.3', '::1', '[::1]'])
    expect(problemsOf({ AD_LIBRARY_HOST: host })).toEqual([]);
});

test('lists are separated by commas, with spaces and empty ones left out; one without a name is a slip', () => {
  expect(readConfig({ AD_LIBRARY_TOOLS: ' search_ads, get_ad ,,' }).tools).toEqual(['search_ads', 'get_ad']);
  for (const variable of ['AD_LIBRARY_TOOLS', 'AD_LIBRARY_ALLOWED_HOSTS', 'AD_LIBRARY_ALLOWED_ORIGINS'])
    expect(problemsOf({ [variable]: ' , ' })).toEqual([expect.stringContaining('at least one name')]);
});

test('many unknown tools do not drown the rest', () => {
  const [problem = ''] = problemsOf({}, { tools: 'nope,'.repeat(100_000) });
  expect(problem.length).toBeLessThan(200);
});

test('over HTTP there must be an address or the demo, and no folder', () => {
  const problems = (environment: NodeJS.ProcessEnv) => problemsOf(environment, {}, { http: true });
  expect(problems({ AD_LIBRARY_FILES: 'kept' })).toEqual([
    expect.stringMatching(/^AD_LIBRARY_BASE_URL \(or --base-url\) must be set.*--demo/),
    expect.stringMatching(/^AD_LIBRARY_FILES must be left out/),
  ]);
  expect(problems({ AD_LIBRARY_BASE_URL: 'nowhere' })).toEqual([expect.stringContaining('must be an address')]);
  expect(problems({ AD_LIBRARY_DEMO: 'on' })).toEqual([]);
});

test('no problem shows the key', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (secret) => {
      const key = `svc_live_CANARY ${secret}`;
      for (const problem of problemsOf({ AD_LIBRARY_API_KEY: key })) expect(problem).not.toContain('CANARY');
    }),
  );
});

/** One slip of the hand: a letter left out, typed twice, or two in each other's place. */
const slips = [
  (name: string, at: number) => name.slice(0, at) + name.slice(at + 1),
  (name: string, at: number) => name.slice(0, at + 1) + name.slice(at),
  (name: string, at: number) => name.slice(0, at) + name.charAt(at + 1) + name.charAt(at) + name.slice(at + 2),
];

test('a variable with one slip in it is taken for the setting that was meant', () => {
  const variables = Object.values(settings).map(({ variable }) => variable);
  const prefix = 'AD_LIBRARY_';
  fc.assert(
    fc.property(fc.constantFrom(...variables), fc.constantFrom(...slips), fc.nat(), (variable, slip, number) => {
      const name = variable.slice(prefix.length);
      const written = prefix + slip(name, number % (name.length - 1));
      fc.pre(!variables.includes(written));
      expect(unknownVariables({ [written]: '1' })).toEqual([expect.stringMatching(`did you mean ${variable}\\?$`)]);
    }),
    { numRuns: 300 },
  );
});
