import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findLandingDomain, parseLandingPage } from '../../src/views/landing.ts';

const encode = (address: string) => encodeURIComponent(address);
const shopUrl = 'https://www.shop.example/Boots/?colour=red';
const page = 'shop.example/Boots?colour=red';
const play = 'play.google.com/store/apps/details?id=com.x';
const macros = 'shop.example/p/{{product.id}}?ad={{ad.id}}';

test.each([
  [
    'tracking parameters are removed and the others are sorted',
    `${shopUrl}&size=9&UTM_Source=fb&fbclid=1&af_ad=2&b=1`,
    'shop.example/Boots?b=1&colour=red&size=9',
  ],
  ['slashes at the end are removed', 'HTTP://WWW.Shop.Example///', 'shop.example'],
  [
    'a port stays, fragment and user name are removed',
    'https://a:b@shop.example:8080/x/#reviews',
    'shop.example:8080/x',
  ],
  ['a parameter that selects the page stays', `https://${play}&utm_campaign=y`, play],
  ['macros stay', `https://${macros}&utm_content={{ad.name}}`, macros],
  [
    'macros in percent codes are decoded',
    'https://shop.example/?id=%7B%7Bproduct.id%7d%7d',
    'shop.example?id={{product.id}}',
  ],
  ['a link without a scheme is accepted', 'shop.example/boots/', 'shop.example/boots'],
  ['a link shim of Meta is unwrapped', `https://l.facebook.com/l.php?u=${encode(`${shopUrl}&fbclid=x`)}&h=AT0`, page],
  [
    'a Google redirect of another country is unwrapped',
    `https://www.google.co.uk/url?sa=t&url=${encode(shopUrl)}`,
    page,
  ],
  [
    'a click server with the target as its whole query is unwrapped',
    `https://ad.doubleclick.net/ddm/clk/1;2;?${shopUrl}`,
    page,
  ],
  ['a subdomain of a wrapper is unwrapped', `https://brand.onelink.me/abc?pid=fb&af_web_dp=${encode(shopUrl)}`, page],
  [
    'a wrapper inside a wrapper is unwrapped',
    `https://l.instagram.com/?u=${encode(`https://awin1.com/c?ued=${encode(shopUrl)}`)}`,
    page,
  ],
  ['a wrapper without a target stays', 'https://l.facebook.com/l.php?u={{link}}', 'l.facebook.com/l.php?u={{link}}'],
  [
    'a parameter of an unknown host is not unwrapped',
    `https://shop.example/?u=${encode('https://b.example')}`,
    `shop.example?u=https%3A%2F%2Fb.example`,
  ],
  ['German letters are decoded', 'https://bücher.example/sch%C3%b6ne/Bücher', 'xn--bcher-kva.example/schöne/Bücher'],
  ['Arabic letters are decoded', 'https://shop.example/أحذية/?q=%D8%A3', 'shop.example/أحذية?q=أ'],
  ['Korean letters are decoded', 'https://쇼핑.example/%EC%8B%A0%EB%B0%9C', 'xn--hp4bo76a.example/신발'],
  ['Japanese letters are kept', 'https://shop.example/靴?色=赤', 'shop.example/靴?色=赤'],
  ['Chinese letters are decoded', 'https://shop.example/%e9%9e%8b?x=1+2', 'shop.example/鞋?x=1%202'],
  [
    'percent codes of invalid UTF-8 and of special characters stay',
    'https://shop.example/%ff%2fa%252f%20b',
    'shop.example/%FF%2Fa%252f%20b',
  ],
  ['a text that is no URL has no page', 'call us', null],
  ['a macro alone stays', '{{product.url}}', '{{product.url}}'],
  ['a missing link has no page', null, null],
])("the URL of an ad's landing page is normalized as expected: %s", (_, offerLink, page) => {
  expect(parseLandingPage({ offerLink }).landingPage).toBe(page);
  expect(parseLandingPage({ offerLink: page }).landingPage).toBe(page);
});

test('the landing page of an ad is never taken from the URL that the ad displays', () => {
  expect(parseLandingPage({ cards: [{ link_url: 'https://shop.example/a' }] }).landingPage).toBe('shop.example/a');
  expect(parseLandingPage({ displayUrl: 'shop.example' }).landingPage).toBeNull();
});

const wrapInLinkShim = (address: string) => `https://l.facebook.com/l.php?u=${encode(address)}&h=AT0`;

test.each([
  ['the host behind a wrapper', { offerLink: wrapInLinkShim(shopUrl), displayUrl: 'fb.me' }, 'shop.example'],
  [
    'the host of the link rather than the stated website',
    { offerLink: shopUrl, website: { siteDomain: 'l.facebook.com' } },
    'shop.example',
  ],
  [
    'the host behind a wrapper rather than the website',
    { offerLink: wrapInLinkShim(shopUrl), website: { siteDomain: 'brand.example' } },
    'shop.example',
  ],
  [
    'the host behind the wrapper of the first card',
    { cards: [{ link_url: wrapInLinkShim(shopUrl) }], website: { siteDomain: 'brand.example' } },
    'shop.example',
  ],
  ['the website of an ad without a link', { website: { siteDomain: 'www.Brand.example' } }, 'brand.example'],
  [
    'the website of an ad whose link shim has no target',
    { offerLink: 'https://l.facebook.com/l.php?u={{link}}', website: { siteDomain: 'brand.example' } },
    'brand.example',
  ],
  [
    'the displayed URL of an ad without link and website',
    { displayUrl: 'https://www.brand.example/boots' },
    'brand.example',
  ],
  [
    'the displayed URL rather than a website that is a link shim',
    { website: { siteDomain: 'l.facebook.com' }, displayUrl: 'brand.example' },
    'brand.example',
  ],
  [
    'missing if the link is not a URL, even if the ad displays a URL',
    { offerLink: 'javascript:open()', displayUrl: 'brand.example' },
    undefined,
  ],
  [
    'a link shim rather than the displayed URL',
    { offerLink: 'https://l.facebook.com/l.php?u={{link}}', displayUrl: 'brand.example' },
    'l.facebook.com',
  ],
  [
    'a link shim if the ad has no other URL',
    { offerLink: 'https://l.facebook.com/l.php?u={{link}}' },
    'l.facebook.com',
  ],
  ['missing for an ad without a URL', { offerLink: 'call us', website: {} }, undefined],
])('the landing domain of an ad is read from the right URL (expected: %s)', (_, ad, domain) =>
  expect(findLandingDomain(ad)).toBe(domain),
);

test('the landing domain of an ad is the host at the end of all known redirect URLs', () => {
  const wrapperFunctions: ((address: string) => string)[] = [
    wrapInLinkShim,
    (address) => `https://www.google.de/url?sa=t&url=${encode(address)}`,
    (address) => `https://brand.onelink.me/abc?pid=fb&af_web_dp=${encode(address)}`,
    (address) => `https://awin1.com/c?ued=${encode(address)}`,
    (address) => `https://ad.doubleclick.net/ddm/clk/1;2;?${address}`,
  ];
  const host = fc.domain().filter((name) => !/^(?:www|l|lm)\./.test(name));
  fc.assert(
    fc.property(host, fc.array(fc.constantFrom(...wrapperFunctions), { maxLength: 4 }), (name, wrapping) => {
      const offerLink = wrapping.reduce((link, wrap) => wrap(link), `https://${name}/boots`);
      const ad = { offerLink, website: { siteDomain: 'other.example' }, displayUrl: 'shown.example' };
      expect(findLandingDomain(ad)).toBe(findLandingDomain({ offerLink: `https://${name}` }));
      expect(findLandingDomain(ad)).toBe(name.toLowerCase());
    }),
  );
});

test('the utm parameters of an ad are read from the URL of its landing page, even behind redirect URLs', () => {
  const utmOf = (offerLink: string) => parseLandingPage({ offerLink }).campaignParameters;
  expect(utmOf(shopUrl)).toBeNull();
  const link = `${shopUrl}&utm_source=fb+ads&UTM_Campaign=%E9%9E%8B&utm_content={{ad.name}}&utm_term=&utm_source=two&utm___proto__=x`;
  const utm = Object.fromEntries([
    ['source', 'fb ads'],
    ['campaign', '鞋'],
    ['content', '{{ad.name}}'],
    ['__proto__', 'x'],
  ]);
  expect(utmOf(link)).toEqual(utm);
  expect(utmOf(`https://l.facebook.com/l.php?utm_source=shim&u=${encode(link)}`)).toEqual(utm);
  const manyParameters = Array.from({ length: 100 }, (_, index) => `utm_a${index}=${'x'.repeat(5000)}`);
  expect(JSON.stringify(utmOf(`${shopUrl}&${manyParameters.join('&')}`)).length).toBeLessThan(11_000);
});
