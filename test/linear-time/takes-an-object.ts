import * as z from 'zod';
import { AdLibraryError } from '../../src/api/call.ts';
import { chartOf } from '../../src/charts/chart.ts';
import { keyMasker } from '../../src/log/log.ts';
import { readArguments } from '../../src/mcp/call-tool.ts';
import { explainError } from '../../src/mcp/explain-error.ts';
import { getPrompt, prompts } from '../../src/mcp/prompts.ts';
import * as account from '../../src/present/account.ts';
import * as collection from '../../src/present/account.ts';
import { adListText, adText, factsOf, landingDomainOf, viewAd } from '../../src/present/ad.ts';
import {
  cardField,
  creativeOf,
  firstCard,
  linkOf,
  linkWriter,
  mediaCounts,
  mediaOf,
  mediaOfCards,
  pictureOf,
  viewCards,
} from '../../src/present/ad-media.ts';
import { appUrlPattern, notesText, serviceNotes } from '../../src/present/list-text.ts';
import * as page from '../../src/present/page.ts';
import { joined } from '../../src/present/safe-text.ts';
import { fullBlocks, fullText, keep, seenDays, seenText, simpleFacts, viewTable } from '../../src/present/values.ts';
import { Canvas, drawText, linesOf, textWidth } from '../../src/raster/canvas.ts';
import { everyFact, now, somePage } from '../present/sample-ads.ts';

/** The same with the text in place of every text. */
function filled<Value>(model: Value, text: string): Value {
  if (typeof model === 'string') return text as Value;
  if (Array.isArray(model)) return model.map((item) => filled(item, text)) as Value;
  if (typeof model !== 'object' || model === null) return model;
  return Object.fromEntries(Object.entries(model).map(([name, value]) => [name, filled(value, text)])) as Value;
}

const card = { title: '', body: '', description: '', cta_type: '', link_url: '' };
const adOf = (text: string) => filled({ ...everyFact, [text]: '', cards: [card, card] }, text);
const pageOf = (text: string) => filled({ ...somePage, [text]: '' }, text);
const fieldsOf = (text: string) => ({ [text]: [text, { [text]: text }] });
const someCollection = { id: '', name: '', type: '', defaultType: '', isDefault: true, adCount: 1 };

const adAt = (detail: 'brief' | 'standard' | 'full') => (text: string) => viewAd(adOf(text), { detail, now });
const pageAt = (detail: 'brief' | 'full') => (text: string) => page.viewPage(pageOf(text), { detail });
const lettering = { size: 20, maxWidth: 300, maxLines: 3 };
const canvas = new Canvas(1, 1);
const invalid = (problem: string) => new Error(problem);
const input = z.strictObject({ limit: z.int(), filters: z.looseObject({}).optional() });

/** Functions that take an object, or a text only deep inside, by name: with the text wherever one can be. */
export const takesAnObject: Record<string, ((text: string) => unknown)[]> = {
  viewAd: [adAt('full')],
  adText: [(text) => adText(adAt('standard')(text))],
  adListText: [(text) => adListText({ items: [adAt('brief')(text)] })],
  seenDays: [(text) => seenDays([{ lastSeenAt: text }])],
  seenText: [(text) => seenText({ first: text, last: text, ads: 1, isAll: false })],
  factsOf: [(text) => factsOf(adOf(text) as never, text)],
  viewTable: [(text) => viewTable({ [text]: { is: 'text', brief: 3 } }, 'brief')],
  simpleFacts: [(text) => simpleFacts({ [text]: { is: 'number', say: text } })({ [text]: 1 })],
  chartOf: [
    (text) => chartOf('bar', { columns: [text, text], rows: [[text, 1]] }),
    (text) => chartOf('line', { columns: [text, text, text], rows: [[text, 1, 2]] }),
  ],
  viewCards: [(text) => viewCards({ ...adOf(text), cards: [filled(card, text), { title: text }] })],
  mediaOf: [(text) => mediaOf(adOf(text))],
  mediaCounts: [(text) => mediaCounts(adOf(text))],
  linkWriter: [(text) => linkWriter(500, now).write([{ type: text, url: `https://${text}` }])],
  firstCard: [(text) => firstCard({ cards: [filled(card, text)] }, 500)],
  linkOf: [(text) => linkOf(filled(card, text))],
  cardField: [(text) => cardField(filled(card, text), 'title')],
  landingDomainOf: [(text) => landingDomainOf(adOf(text))],
  creativeOf: [(text) => creativeOf(adOf(text))],
  mediaOfCards: [(text) => mediaOfCards(adOf(text))],
  pictureOf: [(text) => pictureOf({ ...adOf(text), media: [{ type: 'THUMB', url: `https://${text}` }] }, { now })],
  viewPage: [pageAt('full')],
  pageText: [(text) => page.pageText(pageAt('brief')(text))],
  pageListText: [(text) => page.pageListText({ items: [pageAt('brief')(text)] })],
  viewCollection: [(text) => collection.viewCollection(filled(someCollection, text))],
  collectionText: [(text) => collection.collectionText(filled(someCollection, text))],
  collectionListText: [(text) => collection.collectionListText({ items: [filled(someCollection, text)] })],
  addedText: [(text) => collection.addedText({ itemType: text, itemId: text, added: true })],
  accountText: [(text) => account.accountText(filled({ userId: '', planId: { deep: '' } }, text))],
  creditsText: [(text) => account.creditsText(filled({ credits: '', usageLimit: { limitType: '' } }, text))],
  identityText: [(text) => account.identityText(filled({ authSource: '', user: { name: '' } }, text))],
  fullText: [(text) => fullText(fieldsOf(text), 500)],
  fullBlocks: [(text) => fullBlocks([fieldsOf(text)], 500)],
  appUrlPattern: [(text) => appUrlPattern([{ id: 'x', appUrl: `https://${text}x` }], 'id')],
  serviceNotes: [(text) => serviceNotes({ notes: [text, text] })],
  joined: [(text) => joined([text, text], text)],
  notesText: [(text) => notesText({ notes: [text] })],
  keep: [(text) => keep({}, { words: [text], text }, { words: 'words', text: 500 })],
  explainError: [
    (text) =>
      explainError(
        new AdLibraryError({
          kind: 'unavailable',
          code: text,
          serviceMessage: text,
          requestId: text,
          details: fieldsOf(text),
        }),
        [],
      ),
  ],
  getPrompt: prompts.map(
    ({ name, arguments: taken }) =>
      (text: string) =>
        getPrompt(prompts, { name, arguments: Object.fromEntries(taken.map((one) => [one.name, text])) }, invalid),
  ),
  keyMasker: ['svc_live_CANARY01', 'a'.repeat(40), '%25'.repeat(9)].map(
    (key) => (text: string) => keyMasker(key)({ [text]: text, start: key.slice(0, -1) + text }),
  ),
  drawText: [(text) => drawText(canvas, text, { ...lettering, x: 0, y: 0, colour: [0, 0, 0] })],
  linesOf: [(text) => linesOf(text, lettering)],
  textWidth: [(text) => textWidth(text, lettering)],
  readArguments: [(text) => readArguments(input, { [text]: text, limit: text, filters: text })],
};
