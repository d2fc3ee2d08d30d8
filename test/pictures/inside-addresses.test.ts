import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isInside } from '../../src/pictures/fetch-picture.ts';

const inside4 = [
  '0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 127.0.0.1 127.255.255.254 169.254.169.254 172.16.0.1 172.31.255.255',
  '192.0.0.1 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 240.0.0.1 255.255.255.255',
].flatMap((line) => line.split(' '));
const public4 = ['1.1.1.1', '8.8.8.8', '100.128.0.1', '172.32.0.1', '192.0.1.1', '198.20.0.1', '223.255.255.255'];

/** As an address in a URL spells it. */
const inUrl = (host: string) => new URL(`http://${host}/`).hostname.replace(/^\[|\]$/g, '');
const numberOf = (address: string) => address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
const hexOf = (address: string) =>
  address
    .split('.')
    .map((part) => Number(part).toString(16).padStart(2, '0'))
    .join('')
    .replace(/(....)/, '$1:');

test.each(inside4)('%s is inside, however it is spelled', (address) => {
  const number = numberOf(address);
  const spelled = [address, `${number}`, `0x${number.toString(16)}`, `0${number.toString(8)}`].map(inUrl);
  const embedded = [
    `::ffff:${address}`,
    `::${address}`,
    `64:ff9b::${address}`,
    `64:ff9b:1::${address}`,
    `2002:${hexOf(address)}::1`,
    `2001:0:${hexOf(address)}::1`,
  ];
  for (const form of [...spelled, ...embedded, ...embedded.map((form) => inUrl(`[${form}]`))])
    expect(isInside(form), form).toBe(true);
});

const inside6 = ':: ::1 fe80::1 fe80::1%eth0 fc00::1 fd12::1 fec0::1 ff02::1 2001:db8::1 3fff::1 100::1 4000::1';
test.each(inside6.split(' '))('%s is inside', (address) => expect(isInside(address)).toBe(true));

test.each([
  ...public4,
  ...public4.map((address) => `::ffff:${address}`),
  ...public4.map((address) => `64:ff9b::${address}`),
  '2606:4700::1111',
  '2a00:1450:4001::200e',
])('%s is public', (address) => expect(isInside(address)).toBe(false));

test('a mapped address is inside exactly if the address itself is', () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      expect(isInside(`::ffff:${address}`)).toBe(isInside(address));
      expect(isInside(inUrl(`[64:ff9b::${address}]`))).toBe(isInside(address));
    }),
  );
});

test.each(['', 'localhost', 'example.com', '1.2.3', '1.2.3.4.5', '::g'])(
  '%j is no address, so it is not public',
  (text) => expect(isInside(text)).toBe(true),
);
