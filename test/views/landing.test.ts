import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findLandingDomain, parseLanding } from '../../src/views/landing.ts';

const behind = (address: string) => encodeURIComponent(address);
const boots = 'https://www.shop.example/Boots/?colour=red';
const page = 'shop.example/Boots?colour=red';
const play = 'play.google.com/store/apps/details?id=com.x';
const macros = 'shop.example/p/{{product.id}}?ad={{ad.id}}';

test.each([
  [
    'tracking parameters go, the others are sorted',
    `${boots}&size=9&UTM_Source=fb&fbclid=1&af_ad=2&b=1`,
    'shop.example/Boots?b=1&colour=red&size=9',
  ],
  ['no slash at the end', 'HTTP://WWW.Shop.Example///', 'shop.example'],
  ['a port, without fragment and user name', 'https://a:b@shop.example:8080/x/#reviews', 'shop.example:8080/x'],
  ['a page that is told by a parameter', `https://${play}&utm_campaign=y`, play],
  ['macros', `https://${macros}&utm_content={{ad.name}}`, macros],
  ['macros in percent codes', 'https://shop.example/?id=%7B%7Bproduct.id%7d%7d', 'shop.example?id={{product.id}}'],
  ['a link without a scheme', 'shop.example/boots/', 'shop.example/boots'],
  ['Meta', `https://l.facebook.com/l.php?u=${behind(`${boots}&fbclid=x`)}&h=AT0`, page],
  ['Google in another country', `https://www.google.co.uk/url?sa=t&url=${behind(boots)}`, page],
  ['a click server whose query is the address', `https://ad.doubleclick.net/ddm/clk/1;2;?${boots}`, page],
  ['a subdomain of a wrapper', `https://brand.onelink.me/abc?pid=fb&af_web_dp=${behind(boots)}`, page],
  ['a wrapper in a wrapper', `https://l.instagram.com/?u=${behind(`https://awin1.com/c?ued=${behind(boots)}`)}`, page],
  ['a wrapper that holds no address', 'https://l.facebook.com/l.php?u={{link}}', 'l.facebook.com/l.php?u={{link}}'],
  [
    'a shop is no wrapper',
    `https://shop.example/?u=${behind('https://b.example')}`,
    `shop.example?u=https%3A%2F%2Fb.example`,
  ],
  ['German', 'https://bücher.example/sch%C3%b6ne/Bücher', 'xn--bcher-kva.example/schöne/Bücher'],
  ['Arabic', 'https://shop.example/أحذية/?q=%D8%A3', 'shop.example/أحذية?q=أ'],
  ['Korean', 'https://쇼핑.example/%EC%8B%A0%EB%B0%9C', 'xn--hp4bo76a.example/신발'],
  ['Japanese', 'https://shop.example/靴?色=赤', 'shop.example/靴?色=赤'],
  ['Chinese', 'https://shop.example/%e9%9e%8b?x=1+2', 'shop.example/鞋?x=1%202'],
  ['codes that are no UTF-8, or signs', 'https://shop.example/%ff%2fa%252f%20b', 'shop.example/%FF%2Fa%252f%20b'],
  ['no address', 'call us', null],
  ['a macro alone', '{{product.url}}', '{{product.url}}'],
  ['nothing', null, null],
])('one spelling of a landing page: %s', (_, offerLink, page) => {
  expect(parseLanding({ offerLink }).page).toBe(page);
  expect(parseLanding({ offerLink: page }).page).toBe(page);
});

test('the landing page is that of the link, or of the first card, and never the displayed address', () => {
  expect(parseLanding({ cards: [{ link_url: 'https://shop.example/a' }] }).page).toBe('shop.example/a');
  expect(parseLanding({ displayUrl: 'shop.example' }).page).toBeNull();
});

const shim = (address: string) => `https://l.facebook.com/l.php?u=${behind(address)}&h=AT0`;

test.each([
  ['the host behind a wrapper', { offerLink: shim(boots), displayUrl: 'fb.me' }, 'shop.example'],
  [
    'the host of the link before the website that the service states',
    { offerLink: boots, website: { siteDomain: 'l.facebook.com' } },
    'shop.example',
  ],
  [
    'the host behind a wrapper before the website',
    { offerLink: shim(boots), website: { siteDomain: 'brand.example' } },
    'shop.example',
  ],
  [
    'the host behind the wrapper of the first card',
    { cards: [{ link_url: shim(boots) }], website: { siteDomain: 'brand.example' } },
    'shop.example',
  ],
  ['the website of an ad without a link', { website: { siteDomain: 'www.Brand.example' } }, 'brand.example'],
  [
    'the website of an ad whose link shim holds no address',
    { offerLink: 'https://l.facebook.com/l.php?u={{link}}', website: { siteDomain: 'brand.example' } },
    'brand.example',
  ],
  [
    'the displayed address of an ad that has nothing else',
    { displayUrl: 'https://www.brand.example/boots' },
    'brand.example',
  ],
  [
    'the displayed address before a website that is a link shim',
    { website: { siteDomain: 'l.facebook.com' }, displayUrl: 'brand.example' },
    'brand.example',
  ],
  [
    'nothing for an ad whose link is no address, whatever it displays',
    { offerLink: 'javascript:open()', displayUrl: 'brand.example' },
    undefined,
  ],
  [
    'a link shim before the address that the ad displays',
    { offerLink: 'https://l.facebook.com/l.php?u={{link}}', displayUrl: 'brand.example' },
    'l.facebook.com',
  ],
  [
    'a link shim if the ad says nothing else',
    { offerLink: 'https://l.facebook.com/l.php?u={{link}}' },
    'l.facebook.com',
  ],
  ['nothing for an ad without an address', { offerLink: 'call us', website: {} }, undefined],
])('landingDomain is %s', (_, ad, domain) => expect(findLandingDomain(ad)).toBe(domain));

test('landingDomain is the host behind any known wrappers, whatever else the ad states', () => {
  const shells: ((address: string) => string)[] = [
    shim,
    (address) => `https://www.google.de/url?sa=t&url=${behind(address)}`,
    (address) => `https://brand.onelink.me/abc?pid=fb&af_web_dp=${behind(address)}`,
    (address) => `https://awin1.com/c?ued=${behind(address)}`,
    (address) => `https://ad.doubleclick.net/ddm/clk/1;2;?${address}`,
  ];
  const host = fc.domain().filter((name) => !/^(?:www|l|lm)\./.test(name));
  fc.assert(
    fc.property(host, fc.array(fc.constantFrom(...shells), { maxLength: 4 }), (name, wrapping) => {
      const offerLink = wrapping.reduce((link, wrap) => wrap(link), `https://${name}/boots`);
      const ad = { offerLink, website: { siteDomain: 'other.example' }, displayUrl: 'shown.example' };
      expect(findLandingDomain(ad)).toBe(findLandingDomain({ offerLink: `https://${name}` }));
      expect(findLandingDomain(ad)).toBe(name.toLowerCase());
    }),
  );
});

test('utm holds the values of the page behind wrappers, decoded and bounded', () => {
  const utmOf = (offerLink: string) => parseLanding({ offerLink }).utm;
  expect(utmOf(boots)).toBeNull();
  const link = `${boots}&utm_source=fb+ads&UTM_Campaign=%E9%9E%8B&utm_content={{ad.name}}&utm_term=&utm_source=two&utm___proto__=x`;
  const utm = Object.fromEntries([
    ['source', 'fb ads'],
    ['campaign', '鞋'],
    ['content', '{{ad.name}}'],
    ['__proto__', 'x'],
  ]);
  expect(utmOf(link)).toEqual(utm);
  expect(utmOf(`https://l.facebook.com/l.php?utm_source=shim&u=${behind(link)}`)).toEqual(utm);
  const many = Array.from({ length: 100 }, (_, index) => `utm_a${index}=${'x'.repeat(5000)}`);
  expect(JSON.stringify(utmOf(`${boots}&${many.join('&')}`)).length).toBeLessThan(11_000);
});
