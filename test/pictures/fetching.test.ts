import { setMaxListeners } from 'node:events';
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { isPrivateAddress, type MediaHosts } from '../../src/pictures/fetch-picture.ts';
import type { PictureServiceOptions } from '../../src/pictures/pictures.ts';
import { waitUntil } from '../support/deadline.ts';
import { type PictureAnswer, startPictureHost, streamBytes } from '../support/picture-host.ts';
import { createJpeg, createScanBomb, openTestPictures } from './sample-pictures.ts';

const host = await startPictureHost();
/** An internal host that is not in the list of allowed media hosts. */
const privateHost = await startPictureHost();
const names: Record<string, string[]> = {
  'inside.example': ['10.0.0.7'],
  'both.example': ['93.184.216.34', '127.0.0.1'],
  'mapped.example': ['::ffff:127.0.0.1'],
};
const resolvedHosts: string[] = [];
const resolve = async (name: string) => {
  resolvedHosts.push(name);
  return names[name] ?? [];
};
const limits = { nonPublicHostDelayMs: 800, fetchTimeoutMs: 20_000 };
const opened = openTestPictures([host.host], limits, { resolveHost: resolve });
const { signal } = new AbortController();
setMaxListeners(0, signal);
const showPicture = (address: string) => opened.forTenant('tenant').loadThumbnail(address, { maxSide: 100, signal });
/** Shows the picture at a URL with other picture options. */
async function showPictureWith(options: Partial<PictureServiceOptions>, address: string) {
  const otherPictures = openTestPictures([host.host], limits, options);
  return await otherPictures
    .forTenant('tenant')
    .loadThumbnail(address, { maxSide: 100, signal })
    .finally(() => otherPictures.close());
}

let validJpeg: Uint8Array;
beforeAll(async () => {
  validJpeg = await createJpeg();
});
beforeEach(() => {
  host.requests.length = 0;
  resolvedHosts.length = 0;
});
afterAll(async () => {
  await Promise.all([opened.close(), host.close(), privateHost.close()]);
});

const serveRedirect = (location: string, status = 302) =>
  host.serve((response) => response.writeHead(status, { location }).end('bye'));

describe('Picture URLs with private IP addresses', () => {
  const formatAddress = (name: string) => `https://${name}/a.jpg`;
  const reason = 'its host does not exist, or is not public';

  test('a picture URL with a private IP address fails with the same reason and after the same time as an unknown host', async () => {
    // Make one request first, so that loading modules does not affect the measured times.
    await showPicture(host.serve(validJpeg));
    const addresses = ['10.0.0.1', '127.0.0.1', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]', '169.254.169.254'];
    const all = [...addresses, ...Object.keys(names), 'nowhere.example'].map(formatAddress);
    const measureShow = async (address: string) => {
      const started = performance.now();
      return {
        address,
        shown: await showPicture(address),
        isLate: performance.now() - started > 0.95 * limits.nonPublicHostDelayMs,
      };
    };
    for (const one of await Promise.all([...all, ...all.map((address) => serveRedirect(address))].map(measureShow)))
      expect(one).toEqual({ address: one.address, shown: { reason }, isLate: true });
  });

  test('the host name of a picture is resolved only once, and a DNS lookup that never finishes counts as an unknown host', async () => {
    expect(await showPicture(formatAddress('inside.example'))).toEqual({ reason });
    expect(resolvedHosts).toEqual(['inside.example']);
    expect(await showPictureWith({ resolveHost: () => new Promise(() => {}) }, formatAddress('slow.example'))).toEqual({
      reason,
    });
  });

  const ranges = [
    '0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 127.0.0.1 127.255.255.254 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1',
    '192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 240.0.0.1 255.255.255.255',
  ];
  /** Returns an IPv6 address as the URL parser normalizes it. */
  const normalizeIpv6 = (host: string) => new URL(`http://${host}/`).hostname.replace(/^\[|\]$/g, '');
  const formatHex = (address: string) =>
    address
      .split('.')
      .map((part) => Number(part).toString(16).padStart(2, '0'))
      .join('')
      .replace(/(....)/, '$1:');

  test.each(ranges.join(' ').split(' '))('the private IP address %s is recognized in every notation', (address) => {
    const number = address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
    const spelled = [`${number}`, `0x${number.toString(16)}`, `0${number.toString(8)}`].map(normalizeIpv6);
    const before = ['::ffff:', '::', '64:ff9b::', '64:ff9b:1::'].map((start) => `${start}${address}`);
    const embedded = [...before, `2002:${formatHex(address)}::1`, `2001:0:${formatHex(address)}::1`];
    for (const form of [address, ...spelled, ...embedded, ...embedded.map((form) => normalizeIpv6(`[${form}]`))])
      expect(isPrivateAddress(form), form).toBe(true);
  });

  test('picture URLs with private, unassigned or malformed IP addresses are rejected', () => {
    const privateAddresses =
      ':: ::1 fe80::1 fe80::1%eth0 fc00::1 fd12::1 fec0::1 ff02::1 2001:db8::1 3fff::1 100::1 4000::1';
    for (const address of [...privateAddresses.split(' '), '', 'localhost', 'example.com', '1.2.3', '1.2.3.4.5', '::g'])
      expect(isPrivateAddress(address), address).toBe(true);
    const publicAddresses = '1.1.1.1 8.8.8.8 100.128.0.1 172.32.0.1 192.0.1.1 198.20.0.1 223.255.255.255'.split(' ');
    for (const address of publicAddresses)
      for (const form of [address, `::ffff:${address}`, `64:ff9b::${address}`])
        expect(isPrivateAddress(form), form).toBe(false);
    for (const address of ['2606:4700::1111', '2a00:1450:4001::200e']) expect(isPrivateAddress(address)).toBe(false);
    const isMappedAlike = (address: string) =>
      [`::ffff:${address}`, normalizeIpv6(`[64:ff9b::${address}]`)].every(
        (form) => isPrivateAddress(form) === isPrivateAddress(address),
      );
    fc.assert(fc.property(fc.ipV4(), isMappedAlike));
  });
});

test('a picture URL that is malformed or does not use https is rejected before any request is sent', async () => {
  const { port } = privateHost.host;
  for (const [address, reason] of [
    [`http://127.0.0.1:${port}/0`, 'its address is not https'],
    [`https://127.0.0.1:${port}/0`, 'its port is not 443'],
    ['http://example.com/a.jpg', 'its address is not https'],
    ['https://example.com:8443/a.jpg', 'its port is not 443'],
    ['https://user:pass@example.com/a.jpg', 'its address holds a user name'],
    ['file:///etc/passwd', 'not a web address'],
    ['data:image/png;base64,AAAA', 'not a web address'],
    ['gopher://example.com/', 'not a web address'],
  ] as const) {
    expect(await showPicture(address)).toEqual({ reason });
    expect(await showPicture(serveRedirect(address, 301))).toEqual({ reason: `it redirects: ${reason}` });
  }
  expect(await showPicture('not an address')).toEqual({ reason: 'not a web address' });
  expect([privateHost.requests, resolvedHosts]).toEqual([[], []]);
});

test.for<[rule: string, hosts: MediaHosts, shown: boolean]>([
  ['a host on every port', { allowsPublicHosts: false, listedHosts: [{ host: '127.0.0.1' }] }, true],
  ['a host and its port', { allowsPublicHosts: false, listedHosts: [host.host] }, true],
  ['a host and another port', { allowsPublicHosts: true, listedHosts: [privateHost.host] }, false],
  ['every public host', { allowsPublicHosts: true, listedHosts: [] }, false],
  ['none', { allowsPublicHosts: false, listedHosts: [] }, false],
])(
  'a picture from a local host is fetched only if the setting for media hosts allows the host (allowed: %s)',
  async ([, hosts, isShown]) => {
    expect('jpeg' in (await showPictureWith({ hosts }, host.serve(validJpeg)))).toBe(isShown);
  },
);

test('the picture fetcher follows at most three redirects and sends only four request headers', async () => {
  const two = serveRedirect(serveRedirect(host.serve(validJpeg)), 307);
  const three = serveRedirect(new URL(two).pathname, 307);
  expect(await showPicture(three)).toHaveProperty('jpeg');
  expect(host.requests).toHaveLength(4);
  for (const { headers } of host.requests)
    expect(Object.keys(headers).toSorted()).toEqual(['accept', 'connection', 'host', 'user-agent']);
  expect(await showPicture(serveRedirect(three))).toEqual({ reason: 'it redirects more than 3 times' });
});

test('the download of a 200 MB picture is aborted at the size limit', async () => {
  for (const headers of [{ 'content-length': 200_000_000 }, undefined]) {
    const sentBefore = host.getSentBytes();
    expect(await showPicture(host.serve(streamBytes(200_000_000, headers)))).toEqual({
      reason: 'it is larger than 10 MB',
    });
    await waitUntil(() => host.countOpenRequests() === 0);
    expect(host.getSentBytes() - sentBefore).toBeLessThan(40_000_000);
  }
  expect(await showPicture(host.serve(validJpeg))).toHaveProperty('jpeg');
});

test('the reason for a missing picture says how the request for the picture failed', async () => {
  const hastyPictures = openTestPictures([host.host], { fetchTimeoutMs: 500 });
  const serveSlowly: PictureAnswer = (response) => {
    const timer = setInterval(() => response.write('x'), 20);
    response.on('close', () => clearInterval(timer));
  };
  for (const slow of [() => {}, serveSlowly]) {
    const thumbnail = await hastyPictures.forTenant('tenant').loadThumbnail(host.serve(slow), { maxSide: 100, signal });
    expect(thumbnail).toEqual({ reason: 'it did not come within 0.5 s' });
  }
  await hastyPictures.close();
  const serveHalf: PictureAnswer = (response) => {
    response.writeHead(200, { 'content-length': validJpeg.length });
    response.write(validJpeg.slice(0, 50), () => response.destroy());
  };
  for (const broken of [serveHalf, (response: Parameters<typeof serveSlowly>[0]) => response.destroy()])
    expect(await showPicture(host.serve(broken))).toEqual({ reason: 'its host could not be reached, or broke off' });
  expect(await showPicture(`${host.serve(validJpeg)}99`)).toEqual({ reason: 'its host answered 404' });
});

describe('Concurrent picture fetches', () => {
  test('concurrent requests for the same picture share one download', async () => {
    const address = host.serve(await createJpeg({ width: 77 }));
    const thumbnails = await Promise.all(Array.from({ length: 20 }, () => showPicture(address)));
    for (const each of [...thumbnails, await showPicture(address)]) expect(each).toBe(thumbnails[0]);
    expect(host.requests).toHaveLength(1);
    expect(await opened.forTenant('tenant').loadThumbnail(address, { maxSide: 40, signal })).toHaveProperty('jpeg');
  });

  test('the download of a picture ends when all calls that wait for the picture are cancelled', async () => {
    const answers: (() => void)[] = [];
    const jpeg = await createJpeg({ width: 78 });
    const address = host.serve((response) => void answers.push(() => response.end(jpeg)));
    const requestPicture = () => {
      const leaving = new AbortController();
      const shown = opened.forTenant('tenant').loadThumbnail(address, { maxSide: 100, signal: leaving.signal });
      const abandonRequest = () => {
        leaving.abort(new Error('left'));
        return expect(shown).rejects.toThrow('left');
      };
      return { shown, leave: abandonRequest };
    };
    const [first, second] = [requestPicture(), requestPicture()];
    await waitUntil(() => answers.length === 1);
    await first.leave();
    await second.leave();
    await waitUntil(() => host.countOpenRequests() === 0);
    const [third, fourth] = [requestPicture(), requestPicture()];
    await waitUntil(() => answers.length === 2);
    await third.leave();
    answers[1]?.();
    expect(await fourth.shown).toHaveProperty('jpeg');
  });

  test('a picture still counts toward the download limit of its API key while it is being decoded', async () => {
    const limitedPictures = openTestPictures([host.host], { maxPicturesInMemoryPerTenant: 2, decodeTimeoutMs: 4000 });
    const showBytes = (bytes: Uint8Array) =>
      limitedPictures
        .forTenant('tenant')
        .loadThumbnail(host.serve(bytes), { maxSide: 100, signal: new AbortController().signal });
    const bomb = showBytes(createScanBomb(20_000));
    await waitUntil(() => host.requests.length === 1);
    // A picture that reaches the decoder before the bomb frees its slot for the next fetch.
    let done = 0;
    const otherPictures = Array.from({ length: 8 }, async (_, at) => {
      const result = await showBytes(await createJpeg({ width: 50 + at }));
      done++;
      return result;
    });
    expect(await bomb).toEqual({ reason: 'decoding it takes too long' });
    expect(host.requests.length - done).toBeLessThanOrEqual(2);
    for (const thumbnail of await Promise.all(otherPictures)) expect(thumbnail).toHaveProperty('jpeg');
    expect(host.requests).toHaveLength(9);
    await limitedPictures.close();
  });
});
