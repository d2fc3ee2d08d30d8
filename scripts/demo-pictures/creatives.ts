import { readFileSync } from 'node:fs';
import { type Advertiser, industries, phrases } from '../demo-market/market.ts';
import { backdrops, coloursOf, isLight, mix, productOn, type Stage } from './backdrops.ts';
import { currencies, looks, words } from './looks.ts';

/** A discount, a headline, and a tall picture for feeds and stills of videos. */
export const kinds = ['offer', 'meet', 'tall'] as const;
export type Kind = (typeof kinds)[number];

const drawings = new Map(
  [
    ...readFileSync(new URL('products.svg', import.meta.url), 'utf8').matchAll(/<g id="(\w+)">([\s\S]*?)\n {2}<\/g>/g),
  ].map(([, name = '', parts = '']) => [name, parts]),
);

type Subject = {
  brand: string;
  letter: string;
  /** As a headline begins with it. */
  product: string;
  price: string;
  point: string;
  headlines: string[];
  /** What a sticker says: nothing of games is sold. */
  sale: string;
  sign: string;
  action: string;
};

function subjectOf(advertiser: Advertiser, nr: number): Subject {
  const { name, industry, language, countries, points } = advertiser;
  const { trade } = industries[industry];
  const product = advertiser.products[nr] as Advertiser['products'][number];
  const own = words[language] as (typeof words)[string];
  const say = (phrase: string) => {
    const text = phrase.replaceAll('{product}', product.name).replaceAll('{brand}', name);
    return phrase.startsWith('{') ? capital(text) : text;
  };
  const country = countries[0] as string;
  const currency = currencies[country];
  const price = Intl.NumberFormat(`${language}-${country}-u-nu-latn`, {
    style: 'currency',
    currency: currency ?? 'USD',
    maximumFractionDigits: Number.isInteger(product.price) ? 0 : 2,
  }).format(product.price);
  return {
    brand: name,
    letter: capital(Array.from(name)[0] ?? ''),
    product: capital(product.name),
    price: product.price > 0 && currency && trade === 'goods' ? price : '',
    point: points[nr * 2] ?? points[0] ?? '',
    headlines: (phrases[language][trade]?.headlines ?? []).map(say),
    sale: trade === 'games' ? 'Free' : own.sale,
    sign: trade === 'games' ? '★' : '%',
    action: own[trade as 'goods'] ?? own.goods ?? '',
  };
}

const capital = (text: string) => text.charAt(0).toLocaleUpperCase() + text.slice(1);
const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

export type Creative = { width: number; height: number; html: string };

/** @param nr of the product @param turn differs between advertisers and products, so that neighbours are laid out differently */
export function creativeOf(advertiser: Advertiser, nr: number, kind: Kind, turn: number): Creative {
  const look = looks[advertiser.domain];
  if (look === undefined) throw new Error(`looks.ts does not say how ${advertiser.domain} looks.`);
  const drawing = drawings.get(look.products[nr] ?? '');
  if (drawing === undefined) throw new Error(`products.svg has no ${look.products[nr]}.`);
  const subject = subjectOf(advertiser, nr);
  const layouts = layoutsOf[kind];
  const { stage: given, inner, css = '' } = (layouts[turn % layouts.length] as Layout)(subject);
  const rtl = advertiser.language === 'ar';
  const colours = coloursOf(look);
  const [width, height] = [600, kind === 'tall' ? 750 : 600];
  const stage: Stage = {
    ...given,
    width,
    height,
    colours,
    x: rtl ? width - given.x : given.x,
    dark: given.dark || look.backdrop === 'night',
  };
  const scene = `${backdrops[look.backdrop](stage)}${productOn(drawing, stage)}`;
  const ink = stage.dark ? '#ffffff' : colours.dark;
  const on = (colour: string) => (isLight(colour) ? colours.dark : '#ffffff');
  const html = `<div class="ad ${look.letters} ${stage.dark ? 'night' : 'day'}" dir="${rtl ? 'rtl' : 'ltr'}" lang="${advertiser.language === 'zh' ? 'zh-Hant' : advertiser.language}"
    style="width:${width}px;height:${height}px;--ink:${ink};--paper:${colours.paper};--tint:${colours.tint};--body:${colours.body};--dark:${colours.dark};--accent:${colours.accent};--on-accent:${on(colours.accent)};--on-body:${on(colours.body)};--deep:${mix(colours.dark, '#000000', 0.2)};${css}">
    <svg width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">${scene}</svg>${inner}</div>`;
  return { width, height, html };
}

export function logoOf(advertiser: Advertiser, turn: number): Creative {
  const look = looks[advertiser.domain] as (typeof looks)[string];
  const { tint, body, dark, accent } = coloursOf(look);
  const letter = capital(Array.from(advertiser.name)[0] ?? '');
  const forms = [
    `<circle cx="120" cy="120" r="86" fill="${dark}"/>`,
    `<rect x="40" y="40" width="160" height="160" rx="46" fill="${dark}"/>`,
    `<path d="M120 30 Q210 90 200 150 Q180 210 120 210 Q60 210 40 150 Q30 90 120 30 Z" fill="${dark}"/>`,
    `<rect x="56" y="56" width="128" height="128" rx="24" transform="rotate(45 120 120)" fill="${dark}"/>`,
  ];
  const html = `<div class="ad logo ${look.letters}" lang="${advertiser.language === 'zh' ? 'zh-Hant' : advertiser.language}" style="width:250px;height:250px">
    <svg width="250" height="250" viewBox="0 0 240 240"><defs><linearGradient id="l" x1="0" y1="0" x2=".6" y2="1"><stop offset="0" stop-color="${mix(tint, body, 0.3)}"/><stop offset="1" stop-color="${body}"/></linearGradient></defs>
    <rect width="240" height="240" fill="url(#l)"/>${forms[turn % forms.length]}<circle cx="182" cy="182" r="17" fill="${accent}"/></svg><b>${escaped(letter)}</b></div>`;
  return { width: 250, height: 250, html };
}

type Layout = (subject: Subject) => {
  stage: Pick<Stage, 'x' | 'ground' | 'scale' | 'dark'>;
  inner: string;
  css?: string;
};

const at = (kind: string, position: string, text: string) =>
  text === '' ? '' : `<div class="${kind}" style="${position}"><span>${escaped(text)}</span></div>`;
const brand = ({ brand, letter }: Subject, position: string) =>
  `<div class="brand" style="${position}"><i>${escaped(letter)}</i><span>${escaped(brand)}</span></div>`;
const mark = ({ letter }: Subject, position: string) =>
  `<div class="brand mark" style="${position}"><i>${escaped(letter)}</i></div>`;
const sticker = ({ sale, sign }: Subject, position: string, kind = '') =>
  `<div class="sticker ${kind}" style="${position}"><b>${sign}</b><span>${escaped(sale)}</span></div>`;
const box = (top: number, start: number, width: number, height: number) =>
  `top:${top}px;inset-inline-start:${start}px;width:${width}px;height:${height}px;`;

const layoutsOf: Record<Kind, readonly Layout[]> = {
  offer: [
    // Large name over the product on a dark ground.
    (subject) => ({
      stage: { x: 418, ground: 530, scale: 0.7, dark: true },
      inner:
        mark(subject, 'top:34px;inset-inline-start:36px') +
        at('title', `${box(104, 36, 380, 150)}font-size:64px`, subject.product) +
        at('price', 'bottom:36px;inset-inline-start:36px;', subject.price) +
        sticker(subject, 'top:36px;inset-inline-end:34px'),
    }),
    // A coloured side with the offer.
    (subject) => ({
      stage: { x: 430, ground: 500, scale: 0.62, dark: false },
      inner:
        `<div class="side" style="width:262px"></div>` +
        mark(subject, 'top:34px;inset-inline-start:30px') +
        at('title', `${box(112, 28, 214, 300)}font-size:56px;--ink:#fff`, subject.product) +
        at('price', 'bottom:36px;inset-inline-start:28px;--ink:#fff', subject.price) +
        sticker(subject, 'top:36px;inset-inline-end:34px', 'burst'),
    }),
    // The product in the middle, the offer on a band below.
    (subject) => ({
      stage: { x: 300, ground: 412, scale: 0.76, dark: false },
      inner:
        mark(subject, 'top:30px;inset-inline-start:32px') +
        sticker(subject, 'top:56px;inset-inline-end:34px', 'tilted') +
        `<div class="band" style="height:148px"></div>` +
        at(
          'title',
          `${box(464, 32, subject.price === '' ? 536 : 330, 124)}font-size:46px;--ink:#fff;align-content:center`,
          subject.product,
        ) +
        at('price', 'bottom:48px;inset-inline-end:32px;--ink:var(--tint)', subject.price),
    }),
  ],
  meet: [
    // The product over a sheet with the text.
    (subject) => ({
      stage: { x: 300, ground: 372, scale: 0.68, dark: false },
      inner:
        mark(subject, 'top:28px;inset-inline-start:30px') +
        `<div class="sheet" style="height:190px"></div>` +
        at(
          'title',
          `${box(424, 36, 330, 162)}font-size:46px;--ink:var(--dark);align-content:center`,
          subject.headlines[1] ?? '',
        ) +
        at('action', 'bottom:66px;inset-inline-end:30px', subject.action),
    }),
    // A headline above the product, which fills the rest.
    (subject) => ({
      stage: { x: 300, ground: 540, scale: 0.78, dark: false },
      inner:
        at('title middle', `${box(30, 50, 500, 138)}font-size:60px`, subject.headlines[1] ?? '') +
        mark(subject, 'bottom:26px;inset-inline-start:28px') +
        at('action', 'bottom:22px;inset-inline-end:28px', subject.action),
    }),
    // A headline beside the product on a dark ground.
    (subject) => ({
      stage: { x: 438, ground: 490, scale: 0.64, dark: true },
      inner:
        mark(subject, 'top:36px;inset-inline-start:36px') +
        at('title', `${box(104, 36, 246, 360)}font-size:56px`, subject.headlines[1] ?? '') +
        at('action', 'bottom:36px;inset-inline-start:36px', subject.action),
    }),
  ],
  tall: [
    (subject) => ({
      stage: { x: 300, ground: 630, scale: 0.92, dark: false },
      inner:
        brand(subject, 'top:34px;inset-inline-start:36px') +
        at('title', `${box(92, 36, 480, 140)}font-size:56px`, subject.point),
    }),
    (subject) => ({
      stage: { x: 300, ground: 540, scale: 0.9, dark: true },
      inner:
        `<div class="fade"></div>${brand(subject, 'top:34px;inset-inline-start:36px')}` +
        at('title', `${box(584, 36, 528, 130)}font-size:56px;--ink:#fff`, subject.point),
    }),
    (subject) => ({
      stage: { x: 300, ground: 520, scale: 0.88, dark: false },
      inner:
        brand(subject, 'top:34px;inset-inline-start:36px') +
        `<div class="paper"></div>` +
        at('title middle', `${box(612, 56, 488, 104)}font-size:46px;--ink:var(--dark)`, subject.point),
    }),
  ],
};

export const css = `
* { margin: 0; box-sizing: border-box; }
body { background: #fff; }
.ad { position: relative; overflow: hidden; color: var(--ink); }
.ad > * { position: absolute; }
.ad > svg:first-child { inset: 0; }
.sans { --letters: 'Noto Sans Display', 'Noto Kufi Arabic', 'Noto Sans Devanagari', 'Noto Sans Thai'; font-weight: 800; }
.serif { --letters: 'Noto Serif Display', 'Noto Naskh Arabic', 'Noto Serif Devanagari', 'Noto Serif Thai'; font-weight: 700; }
.condensed { --letters: 'Noto Sans Display', 'Noto Sans Devanagari'; font-weight: 900; font-stretch: condensed; }
.ad { font-family: var(--letters); }
.sans:lang(ko), .condensed:lang(ko) { font-family: 'Noto Sans CJK KR'; } .serif:lang(ko) { font-family: 'Noto Serif CJK KR'; }
.sans:lang(ja), .condensed:lang(ja) { font-family: 'Noto Sans CJK JP'; } .serif:lang(ja) { font-family: 'Noto Serif CJK JP'; }
.sans:lang(zh) { font-family: 'Noto Sans CJK TC'; } .serif:lang(zh) { font-family: 'Noto Serif CJK TC'; }
.ad:lang(ko) { word-break: keep-all; } .ad:lang(ja) { word-break: auto-phrase; }
.dark { fill: url(#t-dark); stroke: url(#t-dark); } .body { fill: url(#t-body); stroke: url(#t-body); }
.tint { fill: url(#t-tint); stroke: url(#t-tint); } .light { fill: url(#t-light); stroke: url(#t-light); }
.accent { fill: url(#t-accent); stroke: url(#t-accent); }
.shade { fill: #000; stroke: #000; opacity: .14; } .shine { fill: #fff; stroke: #fff; opacity: .34; }
.product :not(.line) { stroke: none; } .product .line { fill: none; stroke-linecap: round; stroke-linejoin: round; }
.title, .price { color: var(--ink); }
.title { line-height: 1.1; text-wrap: balance; letter-spacing: -.012em; overflow: hidden; display: grid; }
.condensed .title { text-transform: none; letter-spacing: -.005em; line-height: 1.04; }
.title.middle { text-align: center; align-content: center; }
.ad:lang(ar) .title, .ad:lang(hi) .title, .ad:lang(th) .title { line-height: 1.35; letter-spacing: 0; }
.ad:lang(ja) .title, .ad:lang(zh) .title, .ad:lang(ko) .title { line-height: 1.25; letter-spacing: 0; }
.brand { display: flex; align-items: center; gap: 11px; font-size: 21px; font-weight: 700; font-stretch: normal; color: var(--ink); white-space: nowrap; }
.mark i { transform: scale(1.15); }
.brand span { overflow: hidden; text-overflow: ellipsis; }
.brand i { flex: none; width: 38px; height: 38px; border-radius: 12px; background: var(--body); color: var(--on-body); display: grid; place-items: center; font-style: normal; font-size: 22px; text-shadow: none; }
.price { font-size: 50px; white-space: nowrap; line-height: 1.1; }
.action { font-family: var(--letters); font-weight: 700; font-stretch: normal; font-size: 22px; line-height: 1; padding: 16px 26px; border-radius: 30px; background: var(--accent); color: var(--on-accent); white-space: nowrap; box-shadow: 0 6px 18px #0003; }
.sticker { width: 124px; height: 124px; border-radius: 50%; background: var(--accent); color: var(--on-accent); display: grid; align-content: center; justify-items: center; text-align: center; transform: rotate(-9deg); }
.sticker b { font: 900 54px/1 'Noto Sans Display'; } .sticker span { font-size: 22px; line-height: 1.2; font-weight: 800; text-transform: uppercase; white-space: nowrap; }
.sticker.burst { width: 136px; height: 136px; border-radius: 0; clip-path: polygon(50% 0, 59% 11%, 72% 4%, 76% 18%, 90% 18%, 88% 32%, 100% 40%, 92% 50%, 100% 62%, 88% 68%, 90% 83%, 76% 82%, 71% 96%, 59% 89%, 50% 100%, 41% 89%, 28% 96%, 24% 82%, 10% 83%, 12% 68%, 0 60%, 8% 50%, 0 40%, 12% 32%, 10% 18%, 24% 18%, 29% 4%, 41% 11%); }
.sticker.tilted { border-radius: 22px; transform: rotate(8deg); width: 128px; height: 112px; }
.side { inset-block: 0; inset-inline-start: 0; background: linear-gradient(160deg, var(--body), var(--dark) 75%); --body: var(--dark); }
.band { inset: auto 0 0; background: linear-gradient(100deg, var(--dark), var(--deep)); }
.sheet { inset: auto 0 0; background: #fff; border-radius: 34px 34px 0 0; }
.fade { inset: 500px 0 0; background: linear-gradient(#0000, var(--deep) 60%); }
.paper { inset: auto 32px 32px; height: 108px; background: #fff; border-radius: 28px; }
.logo b { inset: 0; display: grid; place-items: center; color: #fff; font-size: 104px; line-height: 1; }
`;
