import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { renderToString } from '#preact/render-to-string';
import { createInvalidRequestError } from '../api/errors.ts';
import type { Chart, ChartColor, Shape } from '../charts/chart.ts';
import {
  formatAdQuery,
  type getReadingPeriod,
  type selectPaidGatherings,
  type sumGatheringCharges,
} from '../dataset/gatherings.ts';
import { AdCard, type AdCardContent, cardStyles } from '../ui/ad-card.tsx';
import { formatCount, formatDay, formatNumber } from '../ui/formats.ts';
import type { VNode } from '../ui/jsx.d.ts';
import { Link } from '../ui/links.tsx';
import { demoNotice, Page } from '../ui/page.tsx';
import { Prose, proseStyles } from '../ui/prose.tsx';
import { createColumnFormatter, formatCell, Table, TableRows, tableStyles } from '../ui/table.tsx';
import { formatColumnTitle } from '../views/column-title.ts';
import { formatCreditAmount } from '../views/numbers.ts';
import { sanitize, sanitizeLine } from '../views/safe-text.ts';

/**
 * Everything in a report except its sections. The texts may come from ads, so they are sanitized when the report is
 * written.
 */
export interface ReportMetadata {
  title: string;
  /** The time at which the report was written, in milliseconds since 1970. */
  writtenAt: number;
  isDemo: boolean;
  version: string;
  headings: readonly string[];
  /** Notes about ads that the report could not include. */
  missingAdNotes?: readonly string[];
  methodology: ReportMethodology;
}

/** The content of one section of a report. */
export interface ReportSection {
  heading: string;
  text?: string | undefined;
  /**
   * The time at which the text was written, in milliseconds since 1970. Set only if the text is older than the figures.
   * The text is then shown below the figures, with its date.
   */
  textWrittenAt?: number | undefined;
  /** The numbers that the table had in an earlier report, by column name. Set only for a table with a single row. */
  previousFigures?: { reportWrittenAt: number; row: Readonly<Record<string, number>> };
  charts?: { wide: Chart; narrow: Chart } | undefined;
  table?: ReportTable | undefined;
  ads?: readonly AdCardContent[] | undefined;
  /** A sentence that says what is missing from the section, and why. */
  problem?: string | undefined;
}

/** The table of a section. The table shows the result of the section's SQL statement. */
export interface ReportTable {
  columns: readonly string[];
  /** The rows to show, which may be only the first rows of the SQL result. */
  rows: readonly (readonly unknown[])[];
  /** The number of rows in the whole SQL result. Null if the result has too many rows to count. */
  rowCount: number | null;
}

/** Data on how the ads of a report were read. A gathering is the stored list of all ads that match one search. */
export interface ReportMethodology {
  adCount: number;
  /** The number of ads that the `gather_ads` tool read. The other stored ads come from single searches. */
  gatheredAdCount: number;
  gatherings: ReturnType<typeof selectPaidGatherings>;
  /** The number of gatherings (stored ad lists of searches) that the report does not list. */
  unlistedGatheringCount: number;
  /** The period in which the `gather_ads` tool read the ads. Undefined if the tool was never called. */
  readingPeriod: ReturnType<typeof getReadingPeriod>;
  /** The cost of all gatherings (stored ad lists of searches), including gatherings that the report does not list. */
  cost: ReturnType<typeof sumGatheringCharges>;
  /**
   * Returns sentences about ads that are missing from the report. Called after the last section, because the sentences
   * depend on the SQL statements of all sections.
   */
  describeCoverage: () => string;
  statements: readonly { heading: string; sql: string }[];
}

/**
 * Writes a report as one HTML file without scripts or external requests. Each section is requested from `sections` only
 * after the previous section has been written.
 * @param loadPictures returns the picture of each ad in order, or the reason why the picture is missing; called last
 * @returns the HTML page, and the reason for each missing picture
 * @throws AdLibraryError if the page would be too large
 */
export async function writeReportPage(
  metadata: ReportMetadata,
  sections: AsyncIterable<ReportSection> | Iterable<ReportSection>,
  loadPictures: () => Promise<readonly AdCardContent['picture'][]>,
): Promise<{ html: string; missingPictures: string[] }> {
  const writer = createPageWriter();
  const cards: { chunkIndex: number; ad: AdCardContent }[] = [];
  const contentSecurityPolicy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'";
  const page = <Page title={metadata.title} contentSecurityPolicy={contentSecurityPolicy} styles={styles} />;
  await writer.writeInsideElement(page, async () => {
    await writer.writeChunk(<ReportHeader metadata={metadata} />);
    let sectionNumber = 0;
    for await (const section of sections) {
      const id = `s${++sectionNumber}`;
      await writer.writeInsideElement(<section id={id} />, async () => {
        cards.push(...(await writeSection(writer, section)));
      });
    }
    await writeMethodology(writer, metadata);
    await writer.writeChunk(
      <footer>
        Written by ad-library-mcp {metadata.version} on {formatDay(metadata.writtenAt)}. Texts and pictures of ads
        belong to their advertisers.
      </footer>,
    );
  });
  const loadedPictures = cards.length > 0 ? await loadPictures() : [];
  const missingPictures: string[] = [];
  for (const [index, { chunkIndex, ad }] of cards.entries()) {
    const picture = loadedPictures[index] ?? ad.picture;
    const isPicture = picture !== undefined && 'src' in picture;
    const isWritten = writer.replaceChunk(chunkIndex, <AdCard ad={{ ...ad, picture }} />);
    if (!isWritten && isPicture)
      writer.replaceChunk(chunkIndex, <AdCard ad={{ ...ad, picture: { reason: tooLargeReason } }} />);
    if (!isPicture) missingPictures.push(picture?.reason ?? 'the ad has no picture');
    else if (!isWritten) missingPictures.push(tooLargeReason);
    await yieldToEventLoop();
  }
  return { html: writer.getHtml(), missingPictures };
}

const maxPageBytes = 5_000_000;
const tooLargeReason = 'the report would pass 5 MB';

/**
 * Creates a writer that limits the size of an HTML page. The page is rendered in chunks, each of which takes a few
 * milliseconds. Between two chunks, the server can respond to other callers.
 */
function createPageWriter() {
  const htmlChunks = ['<!doctype html>\n'];
  let pageBytes = 16;
  function appendHtml(html: string): number {
    pageBytes += Buffer.byteLength(html);
    if (pageBytes <= maxPageBytes) return htmlChunks.push(html) - 1;
    throw createInvalidRequestError(
      `The report would have more than ${maxPageBytes} bytes without its pictures. Give it fewer sections, or select fewer columns and shorter texts.`,
    );
  }
  return {
    /**
     * Renders an element and appends its HTML to the page as a chunk. Returns the index with which `replaceChunk` can
     * replace this chunk.
     */
    async writeChunk(chunkElement: VNode): Promise<number> {
      const chunkIndex = appendHtml(renderToString(chunkElement));
      await yieldToEventLoop();
      return chunkIndex;
    },
    /** Writes the opening tags of an element, then the content of the element, and then its closing tags. */
    async writeInsideElement(emptyElement: VNode, writeContent: () => Promise<void>): Promise<void> {
      const html = renderToString(emptyElement);
      const closingTagsIndex = html.search(closingTagsPattern);
      appendHtml(html.slice(0, closingTagsIndex));
      await yieldToEventLoop();
      await writeContent();
      appendHtml(html.slice(closingTagsIndex));
    },
    /**
     * Replaces the chunk of the page for which `writeChunk` returned this index. If the page would become too large,
     * changes nothing and returns false.
     */
    replaceChunk(chunkIndex: number, chunkElement: VNode): boolean {
      const html = renderToString(chunkElement);
      const newPageBytes = pageBytes + Buffer.byteLength(html) - Buffer.byteLength(htmlChunks[chunkIndex] ?? '');
      if (newPageBytes > maxPageBytes) return false;
      htmlChunks[chunkIndex] = html;
      pageBytes = newPageBytes;
      return true;
    },
    getHtml: () => htmlChunks.join(''),
  };
}

/** Matches the closing tags of nested empty elements, e.g. `</ul></section>`. Content is inserted before these tags. */
const closingTagsPattern = /(?:<\/[a-z\d]+>)+$/;

type PageWriter = ReturnType<typeof createPageWriter>;

function ReportHeader({
  metadata: { title, writtenAt, isDemo, headings, missingAdNotes = [], methodology },
}: {
  metadata: ReportMetadata;
}) {
  return (
    <header>
      {isDemo && demoNotice}
      <h1 dir="auto">{sanitizeLine(title)}</h1>
      <p class="soft">
        <time dateTime={new Date(writtenAt).toISOString()}>{formatDay(writtenAt)}</time> ·{' '}
        {formatDataBasis(methodology)}
      </p>
      {missingAdNotes.map((sentence) => (
        <p class="problem">{sanitizeLine(sentence)}</p>
      ))}
      <nav aria-label="Contents">
        <ol>
          {[...headings, methodologyHeading].map((heading, index) => (
            <li>
              <Link to={`#s${index + 1}`}>{sanitizeLine(heading)}</Link>
            </li>
          ))}
        </ol>
      </nav>
    </header>
  );
}

/**
 * Formats the number of ads in a report and the days on which they were read, e.g. `1,200 ads, 900 of them read in 3
 * gatherings on 2026-06-14`.
 */
function formatDataBasis({
  adCount,
  gatheredAdCount,
  gatherings,
  unlistedGatheringCount,
  readingPeriod,
}: ReportMethodology): string {
  if (readingPeriod === undefined)
    return `${formatCount(adCount, 'ad')} that searches brought; no gathering covers them`;
  const [firstDay, lastDay] = [formatDay(readingPeriod.from), formatDay(readingPeriod.to)];
  const periodText = firstDay === lastDay ? `on ${firstDay}` : `from ${firstDay} to ${lastDay}`;
  const gatheredText = gatheredAdCount < adCount ? `${formatNumber(gatheredAdCount)} of them ` : '';
  return `${formatCount(adCount, 'ad')}, ${gatheredText}read in ${formatCount(gatherings.length + unlistedGatheringCount, 'gathering')} ${periodText}`;
}

async function writeSection(writer: PageWriter, section: ReportSection) {
  const { heading, text = '', textWrittenAt, previousFigures, charts, table, ads = [], problem } = section;
  const cards: { chunkIndex: number; ad: AdCardContent }[] = [];
  const figures = table && buildKeyFigures(table, previousFigures?.row);
  await writer.writeChunk(
    <>
      <h2 dir="auto">{sanitizeLine(heading)}</h2>
      {figures && (
        <KeyFigures figures={figures} previousDay={previousFigures && formatDay(previousFigures.reportWrittenAt)} />
      )}
      {textWrittenAt === undefined && <Prose text={text} />}
    </>,
  );
  if (charts) await writer.writeChunk(<ResponsiveChart label={heading} {...charts} />);
  if (table && !figures) await writeTable(writer, table, section);
  if (ads.length > 0)
    await writer.writeInsideElement(<ul class="cards" />, async () => {
      for (const ad of ads) cards.push({ chunkIndex: await writer.writeChunk(<AdCard ad={ad} />), ad });
    });
  if (textWrittenAt !== undefined)
    await writer.writeChunk(
      <>
        <p class="soft">Written on {formatDay(textWrittenAt)}</p>
        <Prose text={text} />
      </>,
    );
  if (problem) await writer.writeChunk(<p class="problem">{sanitizeLine(problem)}</p>);
  return cards;
}

const maxKeyFigures = 8;
/** The maximum length of a key figure, in characters. */
const maxKeyFigureLength = 60;

/**
 * Converts a table with a single row into key figures, which are shown in large type. A key figure has a title, a
 * number or short text, and the number from an earlier report, if any. Returns undefined if the table is not suitable.
 */
function buildKeyFigures(
  { columns, rows: [row, ...otherRows] }: ReportTable,
  previousRow: Readonly<Record<string, number>> = {},
) {
  if (row === undefined || otherRows.length > 0 || columns.length > maxKeyFigures || !row.some(Number.isFinite)) return;
  const figures = columns.map((name, index) => {
    const cell = row[index] ?? null;
    const previousValue = typeof cell === 'number' && Object.hasOwn(previousRow, name) ? previousRow[name] : undefined;
    const formatter = createColumnFormatter(name, [cell, ...(previousValue === undefined ? [] : [previousValue])]);
    const formatFigure = (value: unknown) =>
      formatter && typeof value === 'number' ? formatter(value) : value === null ? '–' : formatCell(value);
    return {
      title: formatColumnTitle(name),
      text: formatFigure(cell),
      previousText: previousValue === undefined ? undefined : formatFigure(previousValue),
    };
  });
  return figures.every(({ text }) => text.length <= maxKeyFigureLength) ? figures : undefined;
}

interface KeyFiguresProps {
  figures: NonNullable<ReturnType<typeof buildKeyFigures>>;
  /** The day on which the earlier report was written. Undefined if there is no earlier report. */
  previousDay: string | undefined;
}

const KeyFigures = ({ figures, previousDay }: KeyFiguresProps) => (
  <dl class="figures">
    {figures.map(({ title, text, previousText }) => (
      <div>
        <dt>
          {title}
          {previousText !== undefined && `, ${previousText} on ${previousDay}`}
        </dt>
        <dd dir="auto">{text}</dd>
      </div>
    ))}
  </dl>
);

/**
 * The approximate number of table cells that are written at a time. After each chunk of a table, other work in the
 * event loop can continue.
 */
const cellsPerChunk = 100;

async function writeTable(
  writer: PageWriter,
  { columns, rows, rowCount }: ReportTable,
  { heading, charts }: ReportSection,
) {
  const columnFormatters = columns.map((name, index) =>
    createColumnFormatter(
      name,
      rows.map((row) => row[index] ?? null),
    ),
  );
  const tableElement = (
    <Table label={`Table: ${heading}`} columns={columns.map(formatColumnTitle)} columnFormatters={columnFormatters} />
  );
  const collapsedTable = (
    <details>
      <summary>{formatCount(rows.length, 'row')} behind the chart</summary>
      {tableElement}
    </details>
  );
  await writer.writeInsideElement(charts ? collapsedTable : tableElement, async () => {
    const rowsPerChunk = Math.max(1, Math.floor(cellsPerChunk / columns.length));
    for (let start = 0; start < rows.length; start += rowsPerChunk) {
      await writer.writeChunk(
        <TableRows rows={rows.slice(start, start + rowsPerChunk)} columnFormatters={columnFormatters} />,
      );
    }
  });
  if (rowCount === rows.length) return;
  const totalRows = rowCount === null ? 'more than 100,000' : formatNumber(rowCount);
  const note = `The first ${formatNumber(rows.length)} of ${totalRows} rows are shown.`;
  await writer.writeChunk(<p class="soft">{note}</p>);
}

const methodologyHeading = 'How these numbers came about';
const gatheringColumns = ['Question', 'Read on', 'Found', 'Read', 'Complete', 'Credits'];
const gatheringFormatters = [undefined, undefined, formatNumber, formatNumber, undefined, formatCreditAmount];

async function writeMethodology(writer: PageWriter, { headings, methodology }: ReportMetadata): Promise<void> {
  const { adCount, gatherings, unlistedGatheringCount, cost, describeCoverage, statements } = methodology;
  const credits = `${cost.isExact ? '' : 'at least '}${formatCreditAmount(cost.credits)} ${cost.credits === 1 ? 'credit' : 'credits'}`;
  const hasSplitGatherings = gatherings.some(({ partGatheringIds }) => partGatheringIds.length > 1);
  const buildGatheringRow = ({
    gatheredAt,
    matchingCount,
    adIds,
    isComplete,
    chargedCredits,
    ...adQuery
  }: ReportMethodology['gatherings'][number]) => [
    formatAdQuery(adQuery),
    formatDay(gatheredAt),
    matchingCount ?? 'not stated',
    adIds.size,
    isComplete ? 'yes' : 'no',
    chargedCredits ?? 'unknown',
  ];
  await writer.writeInsideElement(<section id={`s${headings.length + 1}`} class="method" />, async () => {
    await writer.writeChunk(
      <>
        <h2>{methodologyHeading}</h2>
        <p>
          The report rests on {formatCount(adCount, 'ad')} that an ad-intelligence service listed. “Found” is the total
          that the service gave, “read” the number of different ads that were read.{' '}
          {hasSplitGatherings &&
            'For a question in parts, “found” is the sum of its parts, and counts an ad of several parts several times. '}
          Where a gathering is not complete, it holds the first ads in the service’s order, which is no random sample.
          Reach, spend, revenue and performance are the service’s own estimates.
        </p>
        {gatherings.length > 0 && (
          <>
            <Table label="Questions" columns={gatheringColumns} columnFormatters={gatheringFormatters}>
              <TableRows rows={gatherings.map(buildGatheringRow)} columnFormatters={gatheringFormatters} />
            </Table>
            <p>
              {unlistedGatheringCount === 0
                ? `Reading them cost ${credits}.`
                : `Reading them and ${formatCount(unlistedGatheringCount, 'earlier gathering')} that ${unlistedGatheringCount === 1 ? 'is' : 'are'} not listed cost ${credits}.`}
            </p>
          </>
        )}
        <p>{sanitizeLine(describeCoverage())}</p>
      </>,
    );
    for (const { heading, sql } of statements)
      await writer.writeChunk(
        <>
          <h3 dir="auto">{sanitizeLine(heading)}</h3>
          <pre>
            <code>{sanitize(sql).trim()}</code>
          </pre>
        </>,
      );
  });
}

/**
 * Shows a chart as inline SVG in the colors of the page. `wide` is shown on wide screens and on paper, and `narrow` on
 * narrow screens.
 */
export function ResponsiveChart({ label, wide, narrow }: { label: string; wide: Chart; narrow: Chart }) {
  const svgLabel = sanitizeLine(`Chart: ${label}`);
  return (
    <div class="chart">
      <ChartSvg className="wide" label={svgLabel} chart={wide} />
      <ChartSvg className="narrow" label={svgLabel} chart={narrow} />
    </div>
  );
}

interface ChartSvgProps {
  className: 'wide' | 'narrow';
  label: string;
  chart: Chart;
}

const ChartSvg = ({ className, label, chart: { width, height, shapes } }: ChartSvgProps) => (
  <svg class={className} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
    {shapes.map(renderShape)}
  </svg>
);

function renderShape(shape: Shape) {
  const colorClass = getColorClass(shape.color);
  if (shape.kind === 'line') {
    const points = shape.points.map(([x, y]) => `${roundToTenth(x)},${roundToTenth(y)}`).join(' ');
    const dashPattern = shape.isDashed ? '7 6' : undefined;
    return (
      <polyline
        class={`line ${colorClass}`}
        stroke-width={shape.width}
        stroke-dasharray={dashPattern}
        points={points}
      />
    );
  }
  if (shape.kind === 'rect') {
    const [width, height] = [roundToTenth(shape.width), roundToTenth(shape.height)];
    const cornerRadius = width > 4 && height > 4 ? 2 : undefined;
    const className = shape.isPale ? `${colorClass} pale` : colorClass;
    return (
      <rect
        class={className}
        x={roundToTenth(shape.x)}
        y={roundToTenth(shape.y)}
        width={width}
        height={height}
        rx={cornerRadius}
      />
    );
  }
  const { x, y, size, anchor, bold, text } = shape;
  return (
    <text
      class={colorClass}
      x={roundToTenth(x)}
      y={roundToTenth(y)}
      font-size={size}
      text-anchor={anchor}
      font-weight={bold ? 650 : undefined}
    >
      {sanitizeLine(text)}
    </text>
  );
}

const getColorClass = (color: ChartColor) => (typeof color === 'number' ? `series${color % 8}` : color);
const roundToTenth = (length: number) => Math.round(length * 10) / 10;

const seriesStyles = Array.from(
  { length: 8 },
  (_, seriesIndex) => `.series${seriesIndex} { fill: var(--c${seriesIndex}); stroke: var(--c${seriesIndex}) }`,
);

const chartStyles = `
.chart { background: var(--panel); border-radius: 12px; padding: 6px }
.chart svg { display: block; width: 100%; height: auto; font-family: inherit }
.chart .narrow { display: none }
.chart .ink { fill: var(--ink) } .chart .soft { fill: var(--soft) } .chart .grid { fill: var(--line) }
${seriesStyles.join('\n')}
.chart rect, .chart text { stroke: none }
.chart text { unicode-bidi: plaintext }
.pale { fill-opacity: 0.45 }
.line { fill: none; stroke-linejoin: round; stroke-linecap: round }
@media screen and (max-width: 620px) { .chart .wide { display: none } .chart .narrow { display: block } }
`;

const styles = `${cardStyles}${proseStyles}${tableStyles}${chartStyles}
nav ol { display: flex; flex-wrap: wrap; gap: 4px 22px; counter-reset: part; font-size: 14px }
nav li { counter-increment: part; overflow-wrap: anywhere }
nav li::before { content: counter(part) '  '; color: var(--soft); font-variant-numeric: tabular-nums; white-space: pre }
.figures { display: flex; flex-wrap: wrap; gap: 10px 36px }
.figures div { display: flex; flex-direction: column-reverse }
.figures dt { color: var(--soft); font-size: 13.5px }
.figures dd { font-size: 30px; line-height: 1.2; font-weight: 700; letter-spacing: -0.02em; overflow-wrap: anywhere }
.method > p { max-width: 46em; overflow-wrap: anywhere }
.method { padding-top: 28px; border-top: 1px solid var(--line); font-size: 14px }
@media print { .method { padding-top: 4mm; font-size: 9pt } }
`;
