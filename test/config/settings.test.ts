import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readConfig, SettingsError } from '../../src/config/read-config.ts';
import { type Flags, settings } from '../../src/config/settings.ts';

/** What a server that listens would be told. */
function problemsOf(environment: NodeJS.ProcessEnv, flags: Flags = {}): readonly string[] {
  try {
    readConfig(environment, flags, { tools: ['search_ads', 'get_ad'], listens: true });
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
    output: 'both',
    tools: undefined,
    readOnly: false,
    timeoutMs: 45_000,
    logLevel: 'warn',
    database: undefined,
    files: undefined,
    searchFilters: undefined,
    mediaHosts: { public: true, listed: [] },
  });
});

test.each(Object.values(settings).map(({ variable }) => variable))('%s left empty counts as absent', (variable) => {
  for (const text of ['', '   ', '${user_config.value}', '${}', ' ${API_KEY} ']) {
    expect(readConfig({ [variable]: text })).toEqual(readConfig({}));
  }
});

test('a flag overrides its variable, and the key has no flag', () => {
  expect(readConfig({ AD_LIBRARY_PORT: '1000' }, { port: '2000' }).port).toBe(2000);
  expect(readConfig({ AD_LIBRARY_PORT: '1000' }, { port: '' }).port).toBe(1000);
  expect(settings.apiKey).not.toHaveProperty('flag');
});

test.each([
  ['true', true],
  ['1', true],
  ['YES', true],
  ['on', true],
  ['false', false],
  ['0', false],
  ['no', false],
  ['Off', false],
])('a switch set to %s is %s', (text, value) => {
  expect(readConfig({ AD_LIBRARY_DEMO: text }).demo).toBe(value);
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

test('settings of the listener are ignored where nothing listens', () => {
  expect(readConfig({ AD_LIBRARY_HOST: '0.0.0.0' }).host).toBe('0.0.0.0');
});

test('listening beyond loopback requires allowed hosts', () => {
  expect(problemsOf({ AD_LIBRARY_HOST: '0.0.0.0' })).toEqual([expect.stringContaining('AD_LIBRARY_ALLOWED_HOSTS')]);
  expect(problemsOf({ AD_LIBRARY_HOST: '::', AD_LIBRARY_ALLOWED_HOSTS: ' , ' })).toHaveLength(1);
  expect(problemsOf({ AD_LIBRARY_HOST: '0.0.0.0', AD_LIBRARY_ALLOWED_HOSTS: 'ads.example.com' })).toEqual([]);
  for (const host of ['localhost', '127.0.0.1', '127.1.2.3', '::1', '[::1]'])
    expect(problemsOf({ AD_LIBRARY_HOST: host })).toEqual([]);
});

test('lists are separated by commas, with spaces and empty ones left out', () => {
  expect(readConfig({ AD_LIBRARY_TOOLS: ' search_ads, get_ad ,,' }).tools).toEqual(['search_ads', 'get_ad']);
});

test.each(['AD_LIBRARY_TOOLS', 'AD_LIBRARY_ALLOWED_HOSTS', 'AD_LIBRARY_ALLOWED_ORIGINS'])(
  '%s without a name is a slip, not an empty list',
  (variable) => expect(problemsOf({ [variable]: ' , ' })).toEqual([expect.stringContaining('at least one name')]),
);

test('many unknown tools do not drown the rest', () => {
  const [problem = ''] = problemsOf({}, { tools: 'nope,'.repeat(100_000) });
  expect(problem.length).toBeLessThan(200);
});

test('over HTTP there must be an address or the demo, and no folder', () => {
  const problems = (environment: NodeJS.ProcessEnv) => {
    try {
      readConfig(environment, {}, { listens: true, http: true });
    } catch (error) {
      return (error as SettingsError).problems;
    }
    return [];
  };
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
