import { afterAll, beforeAll, expect, test } from 'vitest';
import type { MediaHosts } from '../../src/pictures/fetch-picture.ts';
import { until } from '../support/http.ts';
import { endless, startPictureHost } from '../support/picture-host.ts';
import { jpegOf } from './sample-pictures.ts';
import { openTestPictures } from './test-pictures.ts';

const host = await startPictureHost();
/** Another server inside, which the rule does not list. */
const secret = await startPictureHost();
const names: Record<string, string[]> = {
  'inside.example': ['10.0.0.7'],
  'both.example': ['93.184.216.34', '127.0.0.1'],
  'mapped.example': ['::ffff:127.0.0.1'],
};
const limits = { notPublicMs: 200, fetchMs: 20_000 };
const opened = openTestPictures([host.host], limits, { resolve: async (name) => names[name] ?? [] });
const signal = new AbortController().signal;
const show = (address: string, tenantId = 'tenant') => opened.of(tenantId).thumbnail(address, { side: 100, signal });

let good: Uint8Array;
beforeAll(async () => {
  good = await jpegOf();
});
afterAll(async () => {
  await Promise.all([opened.close(), host.close(), secret.close()]);
});

const notPublic = 'its host does not exist, or is not public';
const at = (name: string) => `https://${name}/a.jpg`;
const secretPort = secret.host.port;

const refused: Record<string, string> = {
  'a private address': at('10.0.0.1'),
  loopback: at('127.0.0.1'),
  'a decimal address': at('2130706433'),
  'a hexadecimal address': at('0x7f.1'),
  'a mapped address': at('[::ffff:127.0.0.1]'),
  'the credentials of a cloud': at('169.254.169.254'),
  'a name that leads inside': at('inside.example'),
  'a name that also leads inside': at('both.example'),
  'a name with a mapped address': at('mapped.example'),
  'a name that does not exist': at('nowhere.example'),
};

test.for(Object.entries(refused))(
  '%s is refused, directly and by a redirect, with one reason and no sooner than the others',
  async ([, address]) => {
    const redirecting = host.serve((response) => response.writeHead(302, { location: address }).end());
    for (const asked of [address, redirecting]) {
      const started = performance.now();
      expect(await show(asked)).toEqual({ reason: notPublic });
      expect(performance.now() - started).toBeGreaterThan(0.95 * limits.notPublicMs);
    }
  },
);

test('what is checked is what is connected to: a name is asked for once', async () => {
  const asked: string[] = [];
  const resolve = async (name: string) => {
    asked.push(name);
    return ['10.0.0.7'];
  };
  const rebinding = openTestPictures([], limits, { resolve });
  expect(await rebinding.of('tenant').thumbnail(at('rebinding.example'), { side: 100, signal })).toEqual({
    reason: notPublic,
  });
  expect(asked).toEqual(['rebinding.example']);
  await rebinding.close();
});

test('a name that is not found in time is one that does not exist', async () => {
  const lost = openTestPictures([], limits, { resolve: () => new Promise(() => {}) });
  expect(await lost.of('tenant').thumbnail(at('slow.example'), { side: 100, signal })).toEqual({ reason: notPublic });
  await lost.close();
});

test.for<[address: string, reason: string]>([
  [`http://127.0.0.1:${secretPort}/0`, 'its address is not https'],
  [`https://127.0.0.1:${secretPort}/0`, 'its port is not 443'],
  ['http://example.com/a.jpg', 'its address is not https'],
  ['https://example.com:8443/a.jpg', 'its port is not 443'],
  ['https://user:pass@example.com/a.jpg', 'its address holds a user name'],
  ['file:///etc/passwd', 'not a web address'],
  ['data:image/png;base64,AAAA', 'not a web address'],
  ['gopher://example.com/', 'not a web address'],
  ['not an address', 'not a web address'],
])('%s is refused, directly and by a redirect, before anything is sent', async ([address, reason]) => {
  expect(await show(address)).toEqual({ reason });
  const redirecting = host.serve((response) => response.writeHead(301, { location: address }).end());
  const shown = await show(redirecting);
  expect(shown).toEqual({ reason: address.includes(' ') ? 'its host answered 404' : `it redirects: ${reason}` });
  expect(secret.requests).toEqual([]);
});

test.for<[rule: string, hosts: MediaHosts, shown: boolean]>([
  ['a host on every port', { public: false, listed: [{ host: '127.0.0.1' }] }, true],
  ['a host and its port', { public: false, listed: [host.host] }, true],
  ['a host and another port', { public: true, listed: [secret.host] }, false],
  ['every public host', { public: true, listed: [] }, false],
  ['none', { public: false, listed: [] }, false],
])('listed: %s', async ([, hosts, isShown]) => {
  const ruled = openTestPictures([], limits, { hosts });
  const shown = await ruled.of('tenant').thumbnail(host.serve(good), { side: 100, signal });
  expect('jpeg' in shown).toBe(isShown);
  await ruled.close();
});

test('redirects are followed three times, and carry nothing', async () => {
  const last = host.serve(good);
  const to = (location: string) => host.serve((response) => response.writeHead(307, { location }).end('bye'));
  const three = to(new URL(to(to(last))).pathname);
  host.requests.length = 0;
  expect(await show(three)).toHaveProperty('jpeg');
  expect(host.requests).toHaveLength(4);
  for (const { headers } of host.requests)
    expect(Object.keys(headers).toSorted()).toEqual(['accept', 'connection', 'host', 'user-agent']);
  expect(await show(to(three))).toEqual({ reason: 'it redirects more than 3 times' });
});

test.for<[name: string, headers: Record<string, number>]>([
  ['that says so', { 'content-length': 200_000_000 }],
  ['that does not say so', {}],
])('a body of 200 MB %s is left at its bound', async ([, headers]) => {
  const sentBefore = host.sent();
  expect(await show(host.serve(endless(200_000_000, headers)))).toEqual({ reason: 'it is larger than 10 MB' });
  await until(() => host.open() === 0);
  expect(host.sent() - sentBefore).toBeLessThan(40_000_000);
  expect(await show(host.serve(good))).toHaveProperty('jpeg');
});

test('hosts that are slow, silent, breaking off or failing are named', async () => {
  const hasty = openTestPictures([host.host], { fetchMs: 500 });
  const late = { reason: 'it did not come within 0.5 s' };
  const shown = (address: string) => hasty.of('tenant').thumbnail(address, { side: 100, signal });
  expect(await shown(host.serve(() => {}))).toEqual(late);
  expect(
    await shown(
      host.serve((response) => {
        const timer = setInterval(() => response.write('x'), 20);
        response.on('close', () => clearInterval(timer));
      }),
    ),
  ).toEqual(late);
  const broken = 'its host could not be reached, or broke off';
  const half = host.serve((response) => {
    response.writeHead(200, { 'content-length': good.length });
    response.write(good.slice(0, 50), () => response.destroy());
  });
  expect(await show(half)).toEqual({ reason: broken });
  expect(await show(host.serve((response) => response.destroy()))).toEqual({ reason: broken });
  expect(await show(`${host.serve(good)}99`)).toEqual({ reason: 'its host answered 404' });
  await hasty.close();
});
