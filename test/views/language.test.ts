import { expect, test } from 'vitest';
import { loadLanguageDetector } from '../../src/views/language.ts';
import languages from './languages.json' with { type: 'json' };

const detect = await loadLanguageDetector();

test.each(Object.entries(languages))(
  'the language %s is detected from a whole text and also from the first sentence of the text',
  (_, { code, text }) => {
    const [sentence = ''] = text.split(/[.!?。।]/, 1);
    expect(detect(text)).toBe(code);
    if (sentence.length > 20) expect(detect(sentence)).toBe(code);
  },
);

test.each([
  ['Belajar bahasa menjadi mudah. Cuba sekarang dengan diskaun, percuma untuk awak!', 'ms'],
  ['무료배송 오늘만 NIKE AIR MAX 90 SALE', 'ko'],
  ['𝗟𝗶𝗺𝗶𝘁𝗲𝗱 𝗼𝗳𝗳𝗲𝗿 𝗳𝗼𝗿 𝘁𝗵𝗲 𝘄𝗵𝗼𝗹𝗲 𝗳𝗮𝗺𝗶𝗹𝘆, 𝗼𝗻𝗹𝘆 𝘁𝗵𝗶𝘀 𝘄𝗲𝗲𝗸', 'en'],
  ['Everything you need for the trail, and free delivery for the whole family: 送料無料', 'en'],
  ['Dapatkan produk terbaru kami di sini untuk keluarga dan rumah yang lebih indah', 'id'],
  ['{{product.name}} {{product.brand}}', null],
  ['Nike Air Max 90', null],
  ['https://trail-house.example/everything-you-need #everythingyouneed @trailhouse', null],
  ['送料', null],
  ['50 % 🔥🔥🔥 2 + 1 … 19.99', null],
  ['', null],
  [null, null],
])('the detected language of the text %j is %j', (text, language) => {
  expect(detect(text)).toBe(language);
});
