import fc from 'fast-check';
import { expect, test } from 'vitest';
import { buildDifferenceExcerpts } from '../../src/views/differing-excerpts.ts';
import { quote, sanitizeLine } from '../../src/views/safe-text.ts';

test.each([
  [
    'Japanese',
    '今年の夏は、軽くて涼しい新作スニーカーで街を歩こう。今なら送料無料でお届けします。期間限定セールは金曜日まで。',
    '今年の夏は、軽くて涼しい新作スニーカーで街を歩こう。今なら送料無料でお届けします。期間限定セールは日曜日まで。',
    ['金曜日', '日曜日'],
  ],
  [
    'Chinese',
    '全新护肤系列现已上市，采用天然植物成分，温和不刺激，适合敏感肌肤每天使用，现在下单立减五十元，数量有限。',
    '全新护肤系列现已上市，采用天然植物成分，温和不刺激，适合敏感肌肤每天使用，现在下单立减八十元，数量有限。',
    ['五十', '八十'],
  ],
  [
    'Thai',
    'รองเท้าวิ่งรุ่นใหม่ล่าสุดเบาสบายระบายอากาศได้ดีเหมาะสำหรับทุกวันสั่งซื้อวันนี้รับส่วนลดสิบเปอร์เซ็นต์ทันที',
    'รองเท้าวิ่งรุ่นใหม่ล่าสุดเบาสบายระบายอากาศได้ดีเหมาะสำหรับทุกวันสั่งซื้อวันนี้รับส่วนลดห้าสิบเปอร์เซ็นต์ทันที',
    ['สิบ', 'ห้า'],
  ],
])('the excerpts of two long %s texts contain the words in which the texts differ', (_, from, to, [old, now]) => {
  const [before = '', after = ''] = buildDifferenceExcerpts(from, to) ?? [];
  expect(before).toContain(old);
  expect(after).toContain(now);
  expect(before).toMatch(/^"…/);
});

test('the excerpts of two long texts begin a few words before the first difference between the texts', () => {
  const text = (day: string) => `${'The winter sale of all our boots goes on and on. '.repeat(3)}It ends on ${day}.`;
  expect(buildDifferenceExcerpts(text('Friday'), text('Sunday'))).toEqual([
    expect.stringMatching(/^"….{1,50}It ends on Friday\."$/),
    expect.stringMatching(/^"….{1,50}It ends on Sunday\."$/),
  ]);
});

test('the excerpts of two short texts begin at the start of the texts', () => {
  expect(buildDifferenceExcerpts('Ten % off', 'Twenty % off')).toEqual(['"Ten % off"', '"Twenty % off"']);
});

test('the comparison of two texts that look identical to a reader shows no excerpts', () => {
  for (const [from, to] of [
    ['Sale', 'Sale  '],
    ['Sale', 'Sa\u200ble'],
    ['caf\u00e9', 'cafe\u0301'],
    ['a "good" day', "a 'good' day"],
  ] as const)
    expect(buildDifferenceExcerpts(from, to)).toBeUndefined();
});

/** Words in many scripts, emoji, combining marks and special characters. */
const words = fc.constantFrom(
  ...[
    'sale ',
    'SALE ',
    '50 % ',
    '特価',
    '送料無料',
    'ลดราคา',
    'ส่งฟรี',
    'ខ្មែរ',
    'ລາວ',
    'မြန်မာ',
    'བོད་',
    'خصم ',
    'تخفیف‌ها ',
    'מבצע ',
  ],
  ...[
    'हिन्दी ',
    'தமிழ் ',
    '한국어 ',
    'скидка ',
    '🇩🇪',
    '👨‍👩‍👧‍👦',
    '👍🏽',
    '🎉',
    'e\u0301',
    'a\u0300\u0301\u0302',
    '\n',
    '"',
    '`',
    '[x](y)',
    '𝒜',
    '\ud800',
  ],
);
const text = fc.oneof(
  fc.array(words, { maxLength: 60 }).map((all) => all.join('')),
  fc.string({ unit: 'grapheme', maxLength: 200 }),
  fc.string({ unit: 'binary', maxLength: 200 }),
);

test('the excerpts of two texts that look different never look identical', () => {
  fc.assert(
    fc.property(text, text, text, text, (start, old, now, end) => {
      const [from, to] = [start + old + end, start + now + end];
      const excerpts = buildDifferenceExcerpts(from, to);
      const looks = [from, to].map((one) => quote(sanitizeLine(one).normalize('NFC')));
      if (excerpts === undefined) {
        // Quotes and Markdown characters may become identical when they are escaped.
        const letters = looks.map((look) => look.replace(/['"`‹<\s]/g, ''));
        expect(letters[0]).toBe(letters[1]);
        return;
      }
      expect(excerpts[0]).not.toBe(excerpts[1]);
      const visible = excerpts.map((one) => one.replace(/… \(\+\d+ chars\)"$/, '"'));
      expect(visible[0]).not.toBe(visible[1]);
      for (const excerpt of excerpts) expect(excerpt.length).toBeLessThan(400);
    }),
    { numRuns: 3000 },
  );
});
