import * as z from 'zod';
import { withDeadline } from '../api/abort.ts';
import { AdLibraryError, invalidRequest } from '../api/errors.ts';
import { chartOf } from '../charts/chart.ts';
import { coverageText, viewCoverage } from '../dataset/coverage.ts';
import { newestGatherings, wholeOf } from '../dataset/gatherings.ts';
import { labelsByAd, labelTexts } from '../dataset/labels.ts';
import type { Pictures } from '../pictures/pictures.ts';
import { dayOf } from '../present/dates.ts';
import { count } from '../present/lists.ts';
import { listed, quote, word } from '../present/safe-text.ts';
import type { Fields } from '../present/view.ts';
import { type CardAd, cardOf } from '../reports/card.ts';
import { maxTableRows, type Report, type ReportSection, reportHtml } from '../reports/report.ts';
import { type DatasetContents, idKey } from '../state/dataset.ts';
import { objectOf, type StoredItem } from '../state/item-versions.ts';
import { fileName } from './arguments.ts';
import { defineListTool, type FieldMeanings, linkTo, locationText, type ToolContext } from './tool.ts';

const Section = z.strictObject({
  heading: z.string().min(1).max(200),
  text: z.string().max(10_000).optional().describe('plain; blank lines separate paragraphs'),
  sql: z.string().optional().describe('its rows as a table'),
  chart: z.enum(['bar', 'line']).optional().describe('of the rows, as in query_ads'),
  adIds: z.array(z.string()).max(12).optional().describe('as cards with pictures'),
});
type SectionInput = z.output<typeof Section>;

export const writeReport = defineListTool({
  name: 'write_report',
  title: 'Write a report',
  description:
    'Write a report to share: one HTML file with your text, tables and charts of SELECTs, ads as cards, and how the ads were gathered.',
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
  input: z.strictObject({
    title: z.string().min(1).max(200),
    sections: z.array(Section).min(1).max(20),
    name: fileName,
  }),
  output: z.looseObject({
    uri: z.string(),
    file: z.string().optional(),
    bytes: z.number(),
    sections: z.array(
      z.looseObject({
        heading: z.string(),
        rows: z.number().nullable().optional(),
        ads: z.number().optional(),
        problem: z.string().optional(),
      }),
    ),
  }),
  async run({ title, sections: wanted, name: chosen }, context) {
    const { now, version, isDemo } = context;
    const contents = await (await context.dataset()).contents();
    const made = [];
    for (const section of wanted) made.push(await makeSection(section, contents, context));
    const report: Report = {
      title,
      at: now,
      isDemo,
      version,
      sections: made.map(({ shown }) => shown),
      method: await methodOf(wanted, contents, context),
    };
    const withoutPictures = Buffer.byteLength(reportHtml(report));
    if (withoutPictures > maxBytes) {
      throw invalidRequest(
        `The report would have ${withoutPictures} bytes without its pictures, and at most ${maxBytes} are allowed. Give it fewer sections, or select fewer columns and shorter texts.`,
      );
    }
    const missing = await addPictures(
      made.flatMap(({ ads }) => ads),
      maxBytes - withoutPictures,
      context,
    );
    const html = Buffer.from(reportHtml(report));
    const file = await context.exports().create({
      name: `${chosen ?? `report-${dayOf(now)}`}.html`,
      mimeType: 'text/html',
      write: (take) => take(html),
    });
    const sections = made.map(({ shown, rows, ads, problem }) => ({
      heading: shown.heading,
      ...(rows !== undefined && { rows }),
      ...(ads.length > 0 && { ads: ads.length }),
      ...(problem && { problem }),
    }));
    const path = file.path === undefined ? {} : { file: file.path };
    return {
      data: { uri: file.uri, ...path, bytes: file.bytes, sections },
      text: [`${word(file.name)}: ${count(sections.length, 'section')}, ${file.bytes} bytes. ${locationText(file)}.`]
        .concat(sections.flatMap(({ heading, problem }) => (problem ? `${quote(heading)}: ${problem}` : [])))
        .concat(missing > 0 ? `${count(missing, 'picture')} could not be shown; the report says why.` : [])
        .join('\n'),
      attached: [linkTo(file)],
    };
  },
});

const maxBytes = 5_000_000;
/** Characters of a cell. */
const cell = 300;
/** The most points of a line. */
const maxChartRows = 1000;
const maxGatherings = 60;

interface MadeSection {
  shown: ReportSection;
  /** Rows of the whole result; null where they are too many to count. */
  rows?: number | null;
  ads: ChosenAd[];
  /** The problem for the caller. Readers of the report need no names of columns. */
  problem?: string | undefined;
}

/** An ad as the report shows it, and the address of its picture. */
interface ChosenAd {
  card: CardAd;
  address: string | undefined;
}

async function makeSection(
  section: SectionInput,
  contents: DatasetContents,
  context: ToolContext,
): Promise<MadeSection> {
  const { heading, text, sql, chart, adIds = [] } = section;
  const problems: string[] = [];
  const shown: ReportSection = { heading, text };
  const made: MadeSection = { shown, ads: [] };
  if (sql === undefined && chart !== undefined) problems.push('A chart needs sql, whose rows it draws.');
  if (sql !== undefined) {
    try {
      const { signal } = context;
      const limit = chart === undefined ? maxTableRows : maxChartRows;
      const { columns, rows, rowCount } = await context.sql().query(contents, { sql, limit, cell, signal });
      made.rows = rowCount;
      shown.table = { columns, rows, rowCount };
      const drawn = chart && chartOf(chart, { columns, rows });
      if (drawn && 'problem' in drawn) problems.push(`There is no chart: ${drawn.problem}.`);
      else shown.chart = drawn;
    } catch (error) {
      context.signal.throwIfAborted();
      if (!(error instanceof AdLibraryError)) throw error;
      problems.push(error.message);
      shown.problem = 'The rows of this section could not be read.';
    }
  }
  const items = adsById(contents, adIds);
  const unknown = adIds.filter((id) => !items.has(idKey(id)));
  if (unknown.length > 0) {
    problems.push(`${listed(unknown.map(word))} ${unknown.length === 1 ? 'is' : 'are'} not in the dataset.`);
  }
  const labels = labelsByAd(contents, new Set(items.keys()));
  made.ads = [...items].map(([key, item]) => {
    const { card, address } = cardOf(objectOf(item) as Fields, { ...item, now: context.now });
    return { card: { ...card, labels: labelTexts(labels.get(key)) }, address };
  });
  shown.ads = made.ads.map(({ card }) => card);
  made.problem = problems.join(' ') || undefined;
  shown.problem ??= made.problem;
  return made;
}

/** Ads by their keys, in the order asked for. */
function adsById({ ads }: DatasetContents, ids: readonly string[]): Map<string, StoredItem> {
  const keys = new Set(ids.map(idKey));
  const found = new Map(ads.flatMap((item) => (keys.has(idKey(item.id)) ? [[idKey(item.id), item]] : [])));
  return new Map([...keys].flatMap((key) => (found.has(key) ? [[key, found.get(key) as StoredItem]] : [])));
}

/** Pixels of a card on a dense screen; many pictures are smaller, so that more of them fit. */
const sideOf = (pictures: number) => (pictures > 60 ? 280 : 400);

/** Fetches what fits into `room` bytes, within half the time that is left. @returns how many ads have no picture */
async function addPictures(ads: readonly ChosenAd[], room: number, context: ToolContext): Promise<number> {
  const side = sideOf(ads.length);
  const { signal, deadline, clock } = context;
  let left = room;
  const pictures = ads.some(({ address }) => address !== undefined) ? await context.pictures() : undefined;
  const fetched = await withDeadline({ signals: [signal], ms: (deadline - clock()) / 2 }, (timeUp) =>
    Promise.all(
      ads.map(({ address }) => address && pictures && thumbnail(pictures, address, { side, signal, timeUp })),
    ),
  );
  for (const [index, picture] of fetched.entries()) {
    const ad = ads[index];
    if (!ad || !picture) continue;
    if ('reason' in picture) ad.card.picture = picture;
    else if (picture.src.length > left) ad.card.picture = { reason: 'the report would pass 5 MB' };
    else {
      left -= picture.src.length;
      ad.card.picture = picture;
    }
  }
  return ads.filter(({ card }) => 'reason' in card.picture).length;
}

async function thumbnail(pictures: Pictures, address: string, options: Parameters<Pictures['thumbnail']>[1]) {
  const made = await pictures.thumbnail(address, options);
  return 'reason' in made ? made : { src: `data:image/jpeg;base64,${Buffer.from(made.jpeg).toString('base64')}` };
}

async function methodOf(sections: readonly SectionInput[], contents: DatasetContents, context: ToolContext) {
  const statements = sections.flatMap(({ heading, sql }) => (sql === undefined ? [] : [{ heading, sql }]));
  const known = await context.adRows.knownAds(context.tenantId, contents);
  const sql = statements.map((statement) => statement.sql).join('\n');
  const newest = newestGatherings(contents);
  const parts = new Set(newest.flatMap((gathering) => gathering.parts));
  // A part that was read by itself cost something of its own.
  const whole = newest
    .filter(({ id, charged }) => !parts.has(id) || charged !== 0)
    .sort((left, right) => right.gatheredAt - left.gatheredAt);
  return {
    ads: contents.ads.length,
    gatherings: whole.slice(0, maxGatherings).map((gathering) => wholeOf(gathering, contents)),
    more: contents.gatherings.length - parts.size - Math.min(whole.length, maxGatherings),
    coverage: [coverageText(viewCoverage({ contents, known, sql }))],
    statements,
  };
}

/** For docs alone: see `FieldMeanings`. */
export const resultFields = {
  uri: 'string: the file as a resource, for an hour',
  'file?': 'string: its path, where `AD_LIBRARY_FILES` names a folder',
  bytes: 'number: its size',
  sections: 'Section[]: what became of each section',
} satisfies FieldMeanings;

export const resultObjects = {
  Section: {
    heading: 'string: as you wrote it',
    'rows?': 'number | null: rows of its table',
    'ads?': 'number: ads shown',
    'problem?': 'string: why a part of it is missing',
  },
} satisfies Record<string, FieldMeanings>;
