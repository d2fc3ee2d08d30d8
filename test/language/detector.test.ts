import { expect, test } from 'vitest';
import { loadLanguageDetector } from '../../src/language/detector.ts';
import { languages } from '../present/languages.ts';

const detect = await loadLanguageDetector();

const codes: Record<string, string | null> = {
  English: 'en',
  German: 'de',
  French: 'fr',
  Spanish: 'es',
  Portuguese: 'pt',
  Italian: 'it',
  Dutch: 'nl',
  Polish: 'pl',
  Czech: 'cs',
  Turkish: 'tr',
  Swedish: 'sv',
  Finnish: 'fi',
  Hungarian: 'hu',
  Romanian: 'ro',
  Indonesian: 'id',
  Vietnamese: 'vi',
  Russian: 'ru',
  Ukrainian: 'uk',
  Bulgarian: 'bg',
  Greek: 'el',
  Hebrew: 'he',
  Arabic: 'ar',
  Persian: 'fa',
  Hindi: 'hi',
  Bengali: 'bn',
  Tamil: 'ta',
  Telugu: 'te',
  Kannada: 'kn',
  Gujarati: 'gu',
  Malayalam: 'ml',
  Thai: 'th',
  Korean: 'ko',
  Japanese: 'ja',
  Chinese: 'zh',
  'Traditional Chinese': 'zh',
  Georgian: 'ka',
  Hinglish: null,
  Emoji: 'en',
};

test.each(Object.entries(languages))('%s is told, whole and by its first sentence', (name, text) => {
  const [sentence = ''] = text.split(/[.!?。।]/, 1);
  expect(detect(text)).toBe(codes[name]);
  if (sentence.length > 20) expect(detect(sentence)).toBe(codes[name]);
});

test.each([
  ['Belajar bahasa menjadi mudah. Cuba sekarang dengan diskaun, percuma untuk awak!', 'ms'],
  ['무료배송 오늘만 NIKE AIR MAX 90 SALE', 'ko'],
  ['{{product.name}} {{product.brand}}', null],
  ['Nike Air Max 90', null],
  ['https://trail-house.example/everything-you-need #everythingyouneed @trailhouse', null],
  ['送料', null],
  ['50 % 🔥🔥🔥 2 + 1 … 19.99', null],
  ['', null],
  [null, null],
])('%j is in %j', (text, language) => {
  expect(detect(text)).toBe(language);
});
