import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect } from 'vitest';
import { keyRemover } from '../../src/log/log.ts';
import '../support/seed.ts';
import { adOf, serveAds } from '../support/ad-service.ts';
import { paid } from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import { hexOf, key as oddKey, revealed, rewritten, written } from '../support/key-encodings.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const usualKey = 'svc_live_CANARY0123456789_abcdefKx';
const test = freshUpstreamTest();
const folder = temporaryFolder();

/** One character, as somebody may write it. */
const spellings: ((character: string) => string)[] = [
  (character) => character,
  (character) => character.toUpperCase(),
  (character) => `${character}\u200b`,
  (character) => `%${hexOf(character)}`,
  (character) => `%25${hexOf(character)}`,
  (character) => `\\u00${hexOf(character)}`,
  (character) => `&#${character.charCodeAt(0)};`,
  (character) => `&amp;#x${hexOf(character)};`,
  (character) => `%26%23${character.charCodeAt(0)};`,
  (character) => `&#37;${hexOf(character)}`,
  (character) => `%5Cu00${hexOf(character)}`,
];
const aKey = fc.constantFrom(usualKey, oddKey);
const spelled = fc
  .array(fc.nat(spellings.length - 1), { minLength: 1, maxLength: 40 })
  .map(
    (choices) => (key: string) =>
      [...key].map((one, at) => spellings[choices[at % choices.length] ?? 0]?.(one)).join(''),
  );
const fixed = [...Object.values(written), ...Object.values(rewritten)];

test('a key that the service sends back is in no file, no export and no statement', async ({ upstream, start }) => {
  const check = async (apiKey: string, texts: string[], escapes: boolean) => {
    const files = join(folder, `${readdirSync(folder).length}`);
    const server = await start({ files, apiKey, resultTokens: 1_000_000 });
    const service = serveAds(upstream, 0);
    const json = (value: unknown) => {
      const plain = JSON.stringify(value);
      return escapes
        ? plain.replace(/[^ -~]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)
        : plain;
    };
    service.ads = texts.map((text, index) =>
      adOf(index, {
        headline: `Key ${text} ends`,
        [text]: { deep: [text] },
        offerLink: `https://shop.example/?k=${text}`,
      }),
    );
    service.instead = () => (_, response) => {
      const answer = { items: service.ads, cursor: null, hasMore: false, totalHits: texts.length };
      response.writeHead(200, paid(1)).end(json(answer));
    };
    await server.call('gather_ads', { maxCredits: 10 });
    const { data } = await server.call('export_ads', { sql: 'SELECT * FROM ads', format: 'jsonl' });
    const { contents } = await server.client.readResource({ uri: data.uri as string });
    const hex = await server.call('query_ads', { sql: 'SELECT hex(headline), hex(json) FROM ads', cell: 20_000 });
    const read = (hex.data.rows as string[][]).flat().map((cell) => Buffer.from(cell, 'hex').toString());
    await server.stop();
    expect(read).toHaveLength(2 * texts.length);
    expect(revealed([contents, read])).not.toContain('canary');
    for (const file of readdirSync(files, { recursive: true, withFileTypes: true }))
      if (file.isFile())
        expect(revealed(readFileSync(join(file.parentPath, file.name), 'utf8'))).not.toContain('canary');
  };
  await check(oddKey, fixed, false);
  await check(oddKey, fixed, true);
  await check(usualKey, [usualKey, `${usualKey}\u00e9`, [...usualKey].join('\u200b')], true);
});

test('a key is found in a body in every spelling in which it is found in a text', () => {
  fc.assert(
    fc.property(aKey, spelled, fc.boolean(), fc.string(), (key, spell, escapes, around) => {
      const value = {
        text: `${around} ${spell(key)} ${around}`,
        other: ['größer', 'https://x.example/?a=%2F&b=%C3%A9&c=1'],
      };
      const plain = JSON.stringify(value);
      const body = escapes
        ? plain.replace(/[^ -~]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)
        : plain;
      const { text, other } = keyRemover(key)(body, value);
      if (revealed(text).includes('canary')) throw new Error(JSON.stringify([body, text]));
      expect(other).toEqual(value.other);
    }),
    { numRuns: 2000 },
  );
});

test('an answer without the key stays as it is', () => {
  const value = {
    text: 'svc_live_ is how keys begin',
    link: 'https://x.example/?a=%2F&b=%26c%3D1',
    list: ['\u2019', '&#8217; &amp; 100 %'],
  };
  for (const key of [usualKey, oddKey]) expect(keyRemover(key)(JSON.stringify(value), value)).toBe(value);
});
