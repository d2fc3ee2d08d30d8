import * as z from 'zod';
import { AdLibraryError } from '../../src/api/errors.ts';
import { boardTools } from '../../src/board/board.ts';
import { readPage } from '../../src/board/board-resource.ts';
import { chartOf } from '../../src/charts/chart.ts';
import { AdRowReader, languageText } from '../../src/dataset/ad-rows.ts';
import { coverageText, viewCoverage } from '../../src/dataset/coverage.ts';
import { methodsNote, writeExport } from '../../src/dataset/export.ts';
import { gatheringText, summaryText } from '../../src/dataset/gathering-report.ts';
import { newGathering, wholeOf } from '../../src/dataset/gatherings.ts';
import { labelId, storedLabel } from '../../src/dataset/labels.ts';
import type { Cell } from '../../src/dataset/tables.ts';
import { keyMasker } from '../../src/log/log.ts';
import { readArguments } from '../../src/mcp/arguments.ts';
import { explainError } from '../../src/mcp/explain-error.ts';
import { getPrompt, prompts } from '../../src/mcp/prompts.ts';
import { isInside } from '../../src/pictures/fetch-picture.ts';
import * as account from '../../src/present/account.ts';
import { adListText, adText, viewAd } from '../../src/present/ad.ts';
import { mediaCounts, pictureOf } from '../../src/present/ad-media.ts';
import { appUrlPattern, notesText, serviceNotes } from '../../src/present/lists.ts';
import { pageListText, pageText, viewPage } from '../../src/present/page.ts';
import { Canvas } from '../../src/raster/canvas.ts';
import { drawText, linesOf } from '../../src/raster/text.ts';
import { cardOf } from '../../src/reports/card.ts';
import { writeReportPage } from '../../src/reports/report.tsx';
import type { DatasetContents } from '../../src/state/dataset.ts';
import { everyFact, now, somePage } from '../present/sample-ads.ts';
import { textsFor } from './hostile-texts.ts';
import { exportedFunctions, type Source, separatorsIn, sources } from './source.ts';
import { type Run, report, time } from './time.ts';

/**
 * Times every exported function whose first parameter is a text, a list of them or anything at all, with the others
 * filled in by their types; and what turns objects into texts, with the text in each field.
 */

type Call = (...given: unknown[]) => unknown;

const rooms = /^(?:present|mcp|api|tools|prompts|log|raster|charts|dataset|looks|reports|serve\/http)\//;
/** The rest of these folders opens files and databases by name, fetches, or draws in a browser. */
const single = [
  ...['library/search/tokens.ts', 'library/service/request.ts', 'library/import/public-archive.ts'],
  ...['library/import/own-ads.ts', 'board/view/words.ts'],
];

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

const textsOf = new Map(sources.map((source) => [source.file, textsFor(separatorsIn(source))]));

async function timeFunctionsOf(source: Source): Promise<void> {
  const { file, path } = source;
  const texts = textsOf.get(file) ?? [];
  const functions = exportedFunctions(source);
  // A worker exports nothing, and begins its work when it is loaded.
  const module: Record<string, Call> = functions.length > 0 ? await import(path) : {};
  for (const { name, types } of functions) {
    const byTypes = fill(module[name] as Call, types);
    const ofText = types[0] === 'unknown' ? fill(module[name] as Call, ['string', ...types.slice(1)]) : undefined;
    for (const run of [byTypes, ofText]) if (run) await time(`${file} ${name}`, run, texts);
  }
}

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

const ad = (text: string) => ({ ...adOf(text), id: 'x' });
const rowsOf = (text: string): Cell[][] => [
  [text, text],
  [text, 1],
];
const exported = (text: string) =>
  async function* () {
    yield rowsOf(text);
  };
/** A dataset of one ad, of a question that is not answered yet. */
function contentsOf(text: string): DatasetContents {
  const at = { at: now, since: now, order: 1, sinceOrder: 1 };
  const item = { id: 'x', firstAt: now, firstOrder: 1, versions: [], listedBy: '', requestId: null, ...at };
  const question = newGathering({ filters: { [text]: text, list: [text] } }, now);
  return {
    ...{ version: '1', labelsVersion: '1', pages: [], evicted: { ads: 0, pages: 0, gatherings: 0 } },
    ads: [{ ...item, json: Buffer.from(JSON.stringify(ad(text))) }],
    gatherings: [{ ...question, adIds: new Set(['y']), missing: 0, complete: false }],
    labels: new Map([[labelId('x', text), storedLabel(text, now)]]),
  };
}
function coverageOf(text: string) {
  const known = new Map([['x', { pageId: text, pageName: text, language: null, variant: null }]]);
  return viewCoverage({
    contents: contentsOf(text),
    known,
    columns: ['id', 'pageName'],
    rows: rowsOf(text),
    cell: 160,
  });
}
const board = boardTools.find(({ name }) => name === 'board_ads');
const page = /ad-library-page" content="(\w+)"/.exec(await readPage())?.[1];

/** What is shown of objects, by the file that makes texts of them, each through all that does. */
const shown: Record<string, Run> = {
  'present/ad.ts': (text) => {
    for (const detail of ['brief', 'standard', 'full'] as const) {
      const view = viewAd(adOf(text), { detail, now });
      adText(view, detail);
      adListText({ items: [view, view], asOf: text, detail });
    }
  },
  'present/ad-media.ts': (text) => {
    const media = [{ type: 'THUMB', url: `https://${text}` }];
    mediaCounts(adOf(text));
    pictureOf({ ...adOf(text), media }, { now });
    viewAd({ ...adOf(text), media }, { detail: 'standard', now });
  },
  'present/page.ts': (text) => {
    for (const detail of ['brief', 'standard', 'full'] as const) {
      const view = viewPage(filled({ ...somePage, [text]: '' }, text), { detail });
      pageText(view, detail);
      pageListText({ items: [view], detail });
    }
  },
  'present/lists.ts': (text) => {
    appUrlPattern([{ id: 'x', appUrl: `https://${text}x` }], 'id');
    notesText(serviceNotes({ notes: [text, text] }));
  },
  'present/account.ts': (text) => {
    const collection = account.viewCollection(filled(someCollection, text));
    account.collectionListText({ items: [collection] });
    account.addedText({ collection, itemType: text, itemId: text, added: true });
    account.accountText(account.viewAccount(filled({ userId: '', planId: { deep: '' } }, text)));
    account.creditsText(account.viewCredits(filled({ credits: '', usageLimit: { limitType: '' } }, text)));
    account.identityText(account.viewIdentity(filled({ authSource: '', user: { name: '' } }, text)));
  },
  'charts/chart.ts': (text) => {
    chartOf('bar', { columns: [text, text], rows: [[text, 1]] });
    chartOf('line', { columns: [text, text, text], rows: [[text, 1, 2]] });
  },
  'raster/text.ts': (text) => {
    linesOf(text, { size: 20, maxWidth: 300, maxLines: 3 });
    drawText(canvas, text, { size: 20, maxWidth: 300, x: 0, y: 0, colour: [0, 0, 0] });
  },
  'mcp/explain-error.ts': (text) => explainError(new AdLibraryError({ kind: 'unavailable', ...failureOf(text) }), []),
  'mcp/prompts.ts': (text) => {
    for (const { name, arguments: taken } of prompts)
      getPrompt(prompts, { name, arguments: Object.fromEntries(taken.map((one) => [one.name, text])) }, refusal);
  },
  'mcp/arguments.ts': (text) => readArguments(input, { [text]: text, limit: text, filters: text }),
  'log/log.ts': (text) => {
    for (const key of ['svc_live_CANARY01', 'a'.repeat(40), '%25'.repeat(9)])
      keyMasker(key)({ [text]: text, start: key.slice(0, -1) + text });
  },
  'dataset/export.ts': async (text) => {
    for (const format of ['csv', 'jsonl'] as const) {
      const rows = exported(text)();
      await writeExport((read) => read({ columns: [text, text], rows }), { format, write: () => {}, maxBytes: 1e9 });
    }
  },
  'dataset/gatherings.ts': (text) =>
    methodsNote({ contents: contentsOf(text), coverage: coverageOf(text), sql: text, rows: 1, now, version: text }),
  'dataset/coverage.ts': (text) => coverageText(coverageOf(text)),
  'dataset/ad-rows.ts': async (text) => {
    languageText(adOf(text));
    const rows = [];
    for await (const part of new AdRowReader().read('', contentsOf(text), { json: true })) rows.push(...part);
    summaryText({ ads: rows.map(({ ad }) => ad), countries: rows.flatMap(({ countries }) => countries) });
  },
  'dataset/gathering-report.ts': (text) =>
    gatheringText({
      ...{ gathering: text, read: 1, added: 1, updated: 1, gone: [text], complete: true, stopped: 'end' },
      ...{ found: null, foundInParts: text, summary: text, gatheredAt: text, problem: text, next: text, note: text },
    }),
  'reports/report.tsx': async (text) => {
    const chart = chartOf('bar', { columns: [text, text], rows: [[text, 1]] });
    const section = {
      heading: text,
      text,
      problem: text,
      ...('shapes' in chart && { charts: { wide: chart, narrow: chart } }),
    };
    const { card } = cardOf(adOf(text), { id: text, at: now, now });
    const table = { columns: [text, text], rows: rowsOf(text), rowCount: 2 };
    const contents = contentsOf(text);
    const gatherings = contents.gatherings.map((gathering) => wholeOf(gathering, contents));
    const method = { ads: 1, gatherings, more: 0, coverage: [text], statements: [{ heading: text, sql: text }] };
    const sections = [
      {
        ...section,
        table,
        ads: [card, { ...card, ...filled({ title: '', line: '', domain: '' }, text), labels: [text] }],
      },
    ];
    const head = { title: text, at: now, isDemo: false, version: text, headings: [text], method };
    await writeReportPage(head, sections, { maxBytes: 5_000_000, pictures: async () => [] });
  },
  'board/board.ts': async (text) => {
    const contents = contentsOf(text);
    const own = { read: async () => new Map() };
    const dataset = async () => ({ contents: async () => contents, own });
    const context = { now, offers: () => true, adRows: new AdRowReader(), tenantId: '', dataset };
    await board?.run({ ids: ['x'], detail: 'full', page }, context as never);
  },
};

for (const source of sources)
  if (rooms.test(source.file) || single.includes(source.file)) await timeFunctionsOf(source);
for (const file of single) if (!sources.some((source) => source.file === file)) report(`${file} is no file`);
for (const [file, run] of Object.entries(shown)) {
  const texts = textsOf.get(file);
  if (texts === undefined) report(`${file} is no file`);
  else await time(`${file} shown`, run, texts);
}
await time('pictures/fetch-picture.ts isInside', isInside, textsOf.get('pictures/fetch-picture.ts') ?? []);
