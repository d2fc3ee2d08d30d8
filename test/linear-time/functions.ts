import * as z from 'zod';
import { AdLibraryError } from '../../src/api/call.ts';
import { chartOf } from '../../src/charts/chart.ts';
import { keyMasker } from '../../src/log/log.ts';
import { readArguments } from '../../src/mcp/call-tool.ts';
import { explainError } from '../../src/mcp/explain-error.ts';
import { getPrompt, prompts } from '../../src/mcp/prompts.ts';
import { isInside } from '../../src/pictures/fetch-picture.ts';
import * as account from '../../src/present/account.ts';
import { adListText, adText, viewAd } from '../../src/present/ad.ts';
import { mediaCounts, pictureOf } from '../../src/present/ad-media.ts';
import { appUrlPattern, notesText, serviceNotes } from '../../src/present/list-text.ts';
import { pageListText, pageText, viewPage } from '../../src/present/page.ts';
import { Canvas, drawText, linesOf } from '../../src/raster/canvas.ts';
import { everyFact, now, somePage } from '../present/sample-ads.ts';
import { hostileTexts } from './hostile-texts.ts';
import { exportedFunctions, type Source, sources } from './source.ts';
import { report, time } from './time.ts';

/**
 * Times every exported function whose first parameter is a text, a list of them or anything at all, with the others
 * filled in by their types; and what turns objects into texts, with the text in each field.
 */

type Run = (text: string) => unknown;
type Call = (...given: unknown[]) => unknown;

const rooms = /^(?:present|mcp|api|tools|prompts|log|raster|charts)\//;
/** The rest of these folders opens files and databases by name, or fetches and draws. */
const single = ['library/search/tokens.ts', 'library/service/request.ts', 'library/import/public-archive.ts'];

const fillings: [type: RegExp, fill: (text: string) => unknown][] = [
  [/^string$/, (text) => text],
  [/^unknown$/, (text) => ({ id: text, [text]: text, list: [text, { [text]: text }] })],
  [/^number$/, () => 500],
  [/^RegExp$/, () => /^x$/],
  [/^(?:readonly string\[\]|Iterable<string\b.*>|\(string \|.*\)\[\])$/, (text) => [text, text]],
  [/^$/, () => undefined],
];

/** The function with a text in each place; nothing where it takes no text first, or something that cannot be filled in. */
function fill(call: Call, types: string[]): Run | undefined {
  const fills = types.map((type) => fillings.find(([form]) => form.test(type))?.[1]);
  if (['', 'number', undefined].includes(types[0]) || fills.includes(undefined)) return;
  return (text) => call(...fills.map((given) => given?.(text)));
}

async function timeFunctionsOf(source: Source): Promise<void> {
  const { file, path } = source;
  const module: Record<string, Call> = await import(path);
  for (const { name, types } of exportedFunctions(source)) {
    const byTypes = fill(module[name] as Call, types);
    const ofText = types[0] === 'unknown' ? fill(module[name] as Call, ['string', ...types.slice(1)]) : undefined;
    const texts = types[0] === 'string' ? hostileTexts : someTexts;
    for (const run of [byTypes, ofText]) if (run) time(`${file} ${name}`, run, texts);
  }
}

/** An object holds the text many times. */
const someTexts = hostileTexts.filter((_, at) => at % 2 === 0);

/** The same with the text in place of every text. */
function filled<Value>(model: Value, text: string): Value {
  if (typeof model === 'string') return text as Value;
  if (Array.isArray(model)) return model.map((item) => filled(item, text)) as Value;
  if (typeof model !== 'object' || model === null) return model;
  return Object.fromEntries(Object.entries(model).map(([name, value]) => [name, filled(value, text)])) as Value;
}

const card = { title: '', body: '', description: '', cta_type: '', link_url: '' };
const adOf = (text: string) => filled({ ...everyFact, [text]: '', cards: [card, card] }, text);
const someCollection = { id: '', name: '', type: '', defaultType: '', isDefault: true, adCount: 1 };
const refusal = (problem: string) => new Error(problem);
const canvas = new Canvas(1, 1);
const input = z.strictObject({ limit: z.int(), filters: z.looseObject({}).optional() });
const failureOf = (text: string) => ({
  code: text,
  serviceMessage: text,
  requestId: text,
  details: { [text]: [text] },
});

/** What is shown of objects, each through all that makes a text of it. */
const shown: Record<string, Run> = {
  ads: (text) => {
    for (const detail of ['brief', 'standard', 'full'] as const) {
      const view = viewAd(adOf(text), { detail, now });
      adText(view, detail);
      adListText({ items: [view, view], asOf: text, detail });
    }
  },
  'media of ads': (text) => {
    const media = [{ type: 'THUMB', url: `https://${text}` }];
    mediaCounts(adOf(text));
    pictureOf({ ...adOf(text), media }, { now });
    viewAd({ ...adOf(text), media }, { detail: 'standard', now });
  },
  pages: (text) => {
    for (const detail of ['brief', 'standard', 'full'] as const) {
      const view = viewPage(filled({ ...somePage, [text]: '' }, text), { detail });
      pageText(view, detail);
      pageListText({ items: [view], detail });
    }
  },
  lists: (text) => {
    appUrlPattern([{ id: 'x', appUrl: `https://${text}x` }], 'id');
    notesText(serviceNotes({ notes: [text, text] }));
  },
  collections: (text) => {
    const collection = account.viewCollection(filled(someCollection, text));
    account.collectionListText({ items: [collection] });
    account.addedText({ collection, itemType: text, itemId: text, added: true });
  },
  accounts: (text) => {
    account.accountText(account.viewAccount(filled({ userId: '', planId: { deep: '' } }, text)));
    account.creditsText(account.viewCredits(filled({ credits: '', usageLimit: { limitType: '' } }, text)));
    account.identityText(account.viewIdentity(filled({ authSource: '', user: { name: '' } }, text)));
  },
  'bar charts': (text) => chartOf('bar', { columns: [text, text], rows: [[text, 1]] }),
  'line charts': (text) => chartOf('line', { columns: [text, text, text], rows: [[text, 1, 2]] }),
  lettering: (text) => {
    linesOf(text, { size: 20, maxWidth: 300, maxLines: 3 });
    drawText(canvas, text, { size: 20, maxWidth: 300, x: 0, y: 0, colour: [0, 0, 0] });
  },
  errors: (text) => explainError(new AdLibraryError({ kind: 'unavailable', ...failureOf(text) }), []),
  prompts: (text) => {
    for (const { name, arguments: taken } of prompts)
      getPrompt(prompts, { name, arguments: Object.fromEntries(taken.map((one) => [one.name, text])) }, refusal);
  },
  arguments: (text) => readArguments(input, { [text]: text, limit: text, filters: text }),
  'masked keys': (text) => {
    for (const key of ['svc_live_CANARY01', 'a'.repeat(40), '%25'.repeat(9)])
      keyMasker(key)({ [text]: text, start: key.slice(0, -1) + text });
  },
};

for (const source of sources)
  if (rooms.test(source.file) || single.includes(source.file)) await timeFunctionsOf(source);
for (const file of single) if (!sources.some((source) => source.file === file)) report(`${file} is no file`);
for (const [name, run] of Object.entries(shown)) time(name, run, someTexts);
time('pictures/fetch-picture.ts isInside', isInside, hostileTexts);
