import * as z from 'zod';
import { withDeadline } from '../api/abort.ts';
import { AdLibraryError } from '../api/errors.ts';
import { chartOf } from '../charts/chart.ts';
import { coverageText, viewCoverage } from '../dataset/coverage.ts';
import { paidGatherings } from '../dataset/gatherings.ts';
import { labelsByAd, labelTexts } from '../dataset/labels.ts';
import { keepPrints, printsOf } from '../dataset/picture-groups.ts';
import type { CardAd } from '../looks/ad-card.tsx';
import { dayOf } from '../present/dates.ts';
import { count } from '../present/lists.ts';
import { listed, quote, word } from '../present/safe-text.ts';
import type { Fields } from '../present/view.ts';
import { cardOf } from '../reports/card.ts';
import type { ReportSection } from '../reports/report.tsx';
import { type DatasetContents, idKey } from '../state/dataset.ts';
import { reportTtl } from '../state/exports.ts';
import { objectOf, type StoredItem } from '../state/item-versions.ts';
import { fileName } from './arguments.ts';
import { addressesOf, defineListTool, linkTo, locationText, type ToolContext } from './tool.ts';

const Section = z.strictObject({
  heading: z.string().min(1).max(200).describe('of the section'),
  text: z.string().max(10_000).optional().describe('Markdown: paragraphs, **bold** and lists; no links'),
  sql: z.string().optional().describe('its rows as a table'),
  chart: z.enum(['bar', 'line']).optional().describe('of the rows, as in query_ads'),
  adIds: z.array(z.string()).max(12).optional().describe('as cards with pictures'),
});
type SectionInput = z.output<typeof Section>;

export const writeReport = defineListTool({
  name: 'write_report',
  title: 'Write a report',
  description:
    'Write a report, a document to share with a team: one HTML file with your text, tables and charts of SELECTs, ads as cards, and how the ads were gathered. The result says where it is and how long.',
  guide: 'write_report writes a report for others.',
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
  example: ({ adIds }) => ({
    title: 'What advertisers say',
    sections: [
      {
        heading: 'Calls to action',
        sql: 'SELECT ctaType, count(*) AS ads FROM ads GROUP BY 1 ORDER BY 2 DESC',
        chart: 'bar',
      },
      { heading: 'Two examples', text: 'Both have run for long.', adIds: adIds.slice(0, 2) },
    ],
  }),
  operations: [],
  isHeavy: true,
  input: z.strictObject({
    title: z.string().min(1).max(200).describe('of the report'),
    sections: z.array(Section).min(1).max(20).describe('in order'),
    name: fileName,
  }),
  output: z.looseObject({
    uri: z.string().describe('the file as a resource, for a day'),
    file: z.string().optional().describe('path to open'),
    link: z.string().optional().describe('address to open, for a day'),
    bytes: z.number(),
    sections: z.array(
      z
        .looseObject({
          heading: z.string(),
          rows: z.number().nullable().optional().describe('rows of its table; null above 100,000'),
          ads: z.number().optional().describe('ads shown'),
          problem: z.string().optional().describe('why a part of it is missing'),
        })
        .meta({ title: 'Section' }),
    ),
  }),
  async run({ title, sections: wanted, name: chosen }, context) {
    const { now, version, isDemo } = context;
    const contents = await (await context.dataset()).contents();
    const ads = adsById(contents, wanted);
    const method = await methodOf(wanted, contents, context);
    const headings = wanted.map(({ heading }) => heading);
    const made: MadeSection[] = [];
    async function* sections() {
      for (const section of wanted) {
        const one = await makeSection(section, ads, { contents, context });
        made.push(one);
        yield one.shown;
        one.shown = { heading: section.heading };
      }
    }
    const { writeReportPage } = await import('../reports/report.tsx');
    const { html, missing } = await writeReportPage({ title, at: now, isDemo, version, headings, method }, sections(), {
      maxBytes,
      pictures: () =>
        fetchPictures(
          made.flatMap(({ cards }) => cards),
          context,
        ),
    });
    const bytes = Buffer.from(html);
    const file = await context.exports().create({
      name: `${chosen ?? `report-${dayOf(now)}`}.html`,
      mimeType: 'text/html',
      ttlMs: reportTtl,
      write: (take) => take(bytes),
    });
    const shown = made.map(({ shown, rows, cards, problem }) => ({
      heading: shown.heading,
      ...(rows !== undefined && { rows }),
      ...(cards.length > 0 && { ads: cards.length }),
      ...(problem && { problem }),
    }));
    return {
      data: { ...addressesOf(file, context), bytes: file.bytes, sections: shown },
      text: [
        `${word(file.name)}: ${count(shown.length, 'section')}, ${file.bytes} bytes. ${locationText(file, context)}.`,
      ]
        .concat(shown.flatMap(({ heading, problem }) => (problem ? `${quote(heading)}: ${problem}` : [])))
        .concat(missing > 0 ? `${count(missing, 'picture')} could not be shown; the report says why.` : [])
        .join('\n'),
      attached: [linkTo(file)],
    };
  },
});

const maxBytes = 5_000_000;
/** Rows of a table. */
const maxTableRows = 200;
/** Characters of a cell. */
const cell = 300;
/** The most points of a line. */
const maxChartRows = 1000;
const maxGatherings = 60;

interface MadeSection {
  /** Let go once it is written. */
  shown: ReportSection;
  /** Rows of the whole result; null where they are too many to count. */
  rows?: number | null;
  cards: ChosenAd[];
  /** The problem for the caller. Readers of the report need no names of columns. */
  problem?: string | undefined;
}

/** An ad as the report shows it, and its picture. */
type ChosenAd = Omit<ReturnType<typeof cardOf>, 'address' | 'copy'>;

/** The ads that sections name, by their keys. */
interface NamedAds {
  items: ReadonlyMap<string, StoredItem>;
  labels: ReturnType<typeof labelsByAd>;
}

async function makeSection(
  section: SectionInput,
  { items, labels }: NamedAds,
  { contents, context }: { contents: DatasetContents; context: ToolContext },
): Promise<MadeSection> {
  const { heading, text, sql, chart, adIds = [] } = section;
  const { now, isDemo, signal } = context;
  const problems: string[] = [];
  const shown: ReportSection = { heading, text };
  const made: MadeSection = { shown, cards: [] };
  if (sql === undefined && chart !== undefined) problems.push('A chart needs sql, whose rows it draws.');
  if (sql !== undefined) {
    try {
      const limit = chart === undefined ? maxTableRows : maxChartRows;
      const { columns, rows, rowCount } = await context.sql().query(contents, { sql, limit, cell, signal });
      made.rows = rowCount;
      shown.table = { columns, rows: rows.slice(0, maxTableRows), rowCount };
      const wide = chart && chartOf(chart, { columns, rows }, { now, isDemo });
      const narrow = chart && chartOf(chart, { columns, rows }, { now, isDemo, isNarrow: true });
      if (wide && 'problem' in wide) problems.push(`There is no chart: ${wide.problem}.`);
      else if (wide && narrow && 'shapes' in narrow) shown.charts = { wide, narrow };
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof AdLibraryError)) throw error;
      problems.push(error.message);
      shown.problem = 'The rows of this section could not be read.';
    }
  }
  const keys = new Set(adIds.map(idKey));
  const unknown = adIds.filter((id) => !items.has(idKey(id)));
  if (unknown.length > 0) {
    problems.push(`${listed(unknown.map(word))} ${unknown.length === 1 ? 'is' : 'are'} not in the dataset.`);
  }
  for (const key of keys) {
    const item = items.get(key);
    if (item === undefined) continue;
    const { card, picture } = cardOf(objectOf(item) as Fields, { ...item, now });
    made.cards.push({ card: { ...card, labels: labelTexts(labels.get(key)) }, picture });
  }
  shown.ads = made.cards.map(({ card }) => card);
  made.problem = problems.join(' ') || undefined;
  shown.problem ??= made.problem;
  return made;
}

/** Finds the ads of all sections in one pass. */
function adsById(contents: DatasetContents, sections: readonly SectionInput[]): NamedAds {
  const keys = new Set(sections.flatMap(({ adIds = [] }) => adIds.map(idKey)));
  if (keys.size === 0) return { items: new Map(), labels: new Map() };
  const named = contents.ads.filter(({ id }) => keys.has(idKey(id)));
  return { items: new Map(named.map((item) => [idKey(item.id), item])), labels: labelsByAd(contents, keys) };
}

/** Pixels of a card on a dense screen; many pictures are smaller, so that more of them fit. */
const sideOf = (pictures: number) => (pictures > 60 ? 280 : 400);

/** The pictures of ads, as far as half the time that is left allows. */
async function fetchPictures(ads: readonly ChosenAd[], context: ToolContext): Promise<CardAd['picture'][]> {
  const side = sideOf(ads.length);
  const { signal, deadline, clock } = context;
  if (ads.every(({ picture }) => 'reason' in picture)) return ads.map(({ card }) => card.picture);
  const pictures = await context.pictures();
  const shown = await withDeadline({ signals: [signal], ms: (deadline - clock()) / 2 }, (timeUp) =>
    Promise.all(
      ads.map(async ({ card, picture }) => {
        if ('reason' in picture) return { adId: card.id, picture, fetched: picture };
        return { adId: card.id, picture, fetched: await pictures.thumbnail(picture.address, { side, signal, timeUp }) };
      }),
    ),
  );
  await keepPrints((await context.dataset()).own, printsOf(shown));
  return shown.map(({ fetched }) =>
    'jpeg' in fetched ? { src: `data:image/jpeg;base64,${Buffer.from(fetched.jpeg).toString('base64')}` } : fetched,
  );
}

async function methodOf(sections: readonly SectionInput[], contents: DatasetContents, context: ToolContext) {
  const statements = sections.flatMap(({ heading, sql }) => (sql === undefined ? [] : [{ heading, sql }]));
  const known = await context.adRows.knownAds(context.tenantId, contents);
  const gatherings = paidGatherings(contents).slice(0, maxGatherings);
  const listed = new Set(gatherings.flatMap(({ id, parts }) => [id, ...parts]));
  return {
    ads: contents.ads.length,
    gatherings,
    more: contents.gatherings.filter(({ id }) => !listed.has(id)).length,
    coverage: [coverageText(viewCoverage({ contents, known }))],
    statements,
  };
}
