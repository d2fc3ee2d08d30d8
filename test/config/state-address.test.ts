import { describe, expect, test } from 'vitest';
import { readConfig, SettingsError } from '../../src/config/read-config.ts';

const secret = 'a secret of at least 32 characters';
const read = (url: string) => readConfig({ AD_LIBRARY_STATE_URL: url, AD_LIBRARY_STATE_SECRET: secret }).stateUrl;

function problemsOf(environment: NodeJS.ProcessEnv, options: object): readonly string[] {
  try {
    readConfig({ AD_LIBRARY_BASE_URL: 'https://api.example.com', ...environment }, {}, options);
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
  return [];
}

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
  ])('may be %s', (url, expected) => expect(read(url)).toEqual(expected));

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
    const [problem, ...more] = problemsOf({ AD_LIBRARY_STATE_URL: url, AD_LIBRARY_STATE_SECRET: secret }, {});
    expect(problem).toMatch(/^AD_LIBRARY_STATE_URL must/);
    expect(problem).not.toContain('secret');
    expect(more).toEqual([]);
  });
});

describe('the secret of the shared state', () => {
  const url = { AD_LIBRARY_STATE_URL: 'redis://redis' };
  test('is required with an address over HTTP, and the message says how to make one', () => {
    const [problem = ''] = problemsOf(url, { http: true });
    expect(problem).toContain('AD_LIBRARY_STATE_SECRET must be set');
    expect(problem).toContain('openssl rand -base64 32');
    expect(problemsOf({ ...url, AD_LIBRARY_STATE_SECRET: secret }, { http: true })).toEqual([]);
  });

  test('has at least 32 characters, and is not repeated', () => {
    const [problem = '', ...more] = problemsOf({ ...url, AD_LIBRARY_STATE_SECRET: 'too short' }, { http: true });
    expect(problem).toContain('at least 32 characters');
    expect(problem).not.toContain('too short');
    expect(more).toEqual([]);
  });
});

test('over stdio there is no shared state, and commands of the local library ignore it', () => {
  const environment = { AD_LIBRARY_STATE_URL: 'redis://redis' };
  expect(problemsOf(environment, { oneUser: true })).toEqual([expect.stringContaining('only for http')]);
  expect(problemsOf(environment, { listens: true })).toEqual([]);
});
