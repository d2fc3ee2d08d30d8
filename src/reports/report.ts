import type { Chart, ChartColour, Shape } from '../charts/chart.ts';
import { questionText, type WholeGathering } from '../dataset/gatherings.ts';
import { dayOf } from '../present/dates.ts';
import { count } from '../present/lists.ts';
import { sanitize } from '../present/safe-text.ts';
import { type CardAd, cardHtml } from './card.ts';
import { dayText, escaped, numberText, pageHtml, paragraphs, text } from './page.ts';

/** The content of a report. Texts may come from outside: they are made safe where they are written. */
export interface Report {
  title: string;
  /** When the report was written, in milliseconds since the epoch. */
  at: number;
  isDemo: boolean;
  version: string;
  sections: readonly ReportSection[];
  method: ReportMethod;
}

export interface ReportSection {
  heading: string;
  text?: string | undefined;
  chart?: Chart | undefined;
  table?: ReportTable | undefined;
  ads?: readonly CardAd[] | undefined;
  /** The part that could not be shown, and why. */
  problem?: string | undefined;
}

export interface ReportTable {
  columns: readonly string[];
  rows: readonly (readonly unknown[])[];
  /** Rows of the whole result; null where they are too many to count. */
  rowCount: number | null;
}

/** The method: how the ads were gathered, and what the numbers cover. */
export interface ReportMethod {
  /** Ads of the dataset. */
  ads: number;
  gatherings: readonly WholeGathering[];
  /** Gatherings that are not listed. */
  more: number;
  /** Advertisers that the answers do not cover. */
  coverage: readonly string[];
  statements: readonly { heading: string; sql: string }[];
}

/** The rows of a table that a page shows. */
export const maxTableRows = 200;

/** One HTML page that needs nothing else: no script, no request to anywhere. */
export function reportHtml(report: Report): string {
  const { title, sections, method } = report;
  const body = [
    cover(report),
    ...sections.map(sectionHtml),
    methodHtml(method, sections.length + 1),
    `<footer>Written by ad-library-mcp ${text(report.version)} on ${dayText(report.at)}. Texts and pictures of ads belong to their advertisers.</footer>`,
  ];
  return pageHtml({ title, body, policy: "default-src 'none'; img-src data:; style-src 'unsafe-inline'" });
}

function cover({ title, at, isDemo, sections, method }: Report): string {
  const contents = [...sections.map(({ heading }) => heading), methodHeading];
  const entries = contents.map((heading, index) => `<li><a href="#s${index + 1}">${text(heading)}</a></li>`);
  return `<header>
${isDemo ? '<p class="notice">Demo data: every advertiser and ad is generated and fictional.</p>\n' : ''}<h1 dir="auto">${text(title)}</h1>
<p class="soft"><time datetime="${new Date(at).toISOString()}">${dayText(at)}</time> · ${restsOn(method)}</p>
<nav aria-label="Contents"><ol>${entries.join('')}</ol></nav>
</header>`;
}

function restsOn({ ads, gatherings, more }: ReportMethod): string {
  if (gatherings.length === 0) return `${adsText(ads)} that searches brought; no gathering covers them`;
  const days = gatherings.map(({ gatheredAt }) => dayOf(gatheredAt) ?? '').sort();
  const [first = '', last = ''] = [days[0], days.at(-1)];
  const when = first === last ? `on ${dayText(first)}` : `from ${dayText(first)} to ${dayText(last)}`;
  return `${adsText(ads)}, read in ${count(gatherings.length + more, 'gathering')} ${when}`;
}

/** A count of ads, with commas. */
const adsText = (ads: number) => `${numberText(ads)} ${ads === 1 ? 'ad' : 'ads'}`;

function sectionHtml({ heading, text: words, chart, table, ads, problem }: ReportSection, index: number): string {
  const parts = [
    `<h2 dir="auto">${text(heading)}</h2>`,
    ...paragraphs(words ?? ''),
    chart && chartHtml(chart, heading),
    table && tableHtml(table, heading),
    ads && ads.length > 0 && `<ul class="cards">${ads.map(cardHtml).join('')}</ul>`,
    problem && `<p class="problem">${text(problem)}</p>`,
  ];
  return `<section id="s${index + 1}">\n${parts.filter(Boolean).join('\n')}\n</section>`;
}

/** A chart as inline SVG, whose colours follow the page. */
function chartHtml({ width, height, shapes }: Chart, heading: string): string {
  const drawn = shapes.map(shapeSvg).join('');
  return `<div class="chart" role="group" aria-label="${text(`Chart: ${heading}`)}" tabindex="0"><svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${text(`Chart: ${heading}`)}">${drawn}</svg></div>`;
}

function shapeSvg(shape: Shape): string {
  const colour = colourClass(shape.colour);
  if (shape.is === 'line') {
    const points = shape.points.map(([x, y]) => `${tenth(x)},${tenth(y)}`).join(' ');
    return `<polyline class="line ${colour}" stroke-width="${shape.width}" points="${points}"/>`;
  }
  if (shape.is === 'rect') {
    const [x, y, width, height] = [shape.x, shape.y, shape.width, shape.height].map(tenth);
    const round = shape.width > 4 && shape.height > 4 ? ' rx="2"' : '';
    return `<rect class="${colour}" x="${x}" y="${y}" width="${width}" height="${height}"${round}/>`;
  }
  const weight = shape.bold ? ' font-weight="650"' : '';
  const at = `x="${tenth(shape.x)}" y="${tenth(shape.y)}" font-size="${shape.size}" text-anchor="${shape.anchor}"`;
  return `<text class="${colour}" ${at}${weight}>${text(shape.text)}</text>`;
}

const colourClass = (colour: ChartColour) => (typeof colour === 'number' ? `series${colour % 8}` : colour);
const tenth = (length: number) => Math.round(length * 10) / 10;

function tableHtml({ columns, rows, rowCount }: ReportTable, heading: string): string {
  const shown = rows.slice(0, maxTableRows);
  const formats = columns.map((_, index) => columnFormat(shown.map((row) => row[index] ?? null)));
  const head = columns.map((name, index) => `<th scope="col"${classOf(formats[index])}>${text(name)}</th>`);
  const lines = shown.map(
    (row) => `<tr>${columns.map((_, index) => cellHtml(row[index] ?? null, formats[index])).join('')}</tr>`,
  );
  const left = rowCount === null ? 'more than 100,000' : numberText(rowCount - shown.length);
  const rest = rowCount === shown.length ? '' : `<p class="soft">${left} more rows are not shown.</p>`;
  return `<div class="table" role="region" aria-label="${text(`Table: ${heading}`)}" tabindex="0"><table><thead><tr>${head.join('')}</tr></thead><tbody>${lines.join('')}</tbody></table></div>${rest}`;
}

type ColumnFormat = ((number: number) => string) | undefined;

/**
 * How a column writes its numbers, so that they can be compared; undefined for a column that also holds other values.
 */
function columnFormat(cells: readonly unknown[]): ColumnFormat {
  const numbers = cells.filter((cell) => cell !== null);
  if (numbers.length === 0 || !numbers.every((cell) => typeof cell === 'number')) return undefined;
  const digits = Math.max(...numbers.map(decimals));
  // A number below ten thousand gets no comma, because it may be a year.
  const useGrouping = numbers.some((number) => Math.abs(number) >= 10_000);
  const format = new Intl.NumberFormat('en', {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
    useGrouping,
  });
  return (number) => (Number.isFinite(number) ? format.format(number).replace('-', '−') : String(number));
}

const decimals = (number: number) =>
  (Number.isFinite(number) ? [0, 1].find((digits) => Number(number.toFixed(digits)) === number) : 0) ?? 2;
const classOf = (format: ColumnFormat) => (format === undefined ? '' : ' class="number"');

function cellHtml(cell: unknown, format: ColumnFormat): string {
  if (cell === null) return `<td${classOf(format)}><span class="soft">–</span></td>`;
  if (format !== undefined && typeof cell === 'number') return `<td class="number">${format(cell)}</td>`;
  const words = String(cell).replace(isoMidnight, '').replace(isoSeconds, ' $1');
  return startsWithDate.test(words) ? `<td class="date">${text(words)}</td>` : `<td><bdi>${text(words)}</bdi></td>`;
}

const startsWithDate = /^\d{4}-\d{2}-\d{2}(?: \d{2}:\d{2})?$/;

/** Times as the dataset writes them, as days, or to the minute. */
const isoMidnight = /(?<=^\d{4}-\d{2}-\d{2})T00:00:00\.000Z$/;
const isoSeconds = /(?<=^\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}):\d{2}\.\d{3}Z$/;

const methodHeading = 'How these numbers came about';

function methodHtml({ ads, gatherings, more, coverage, statements }: ReportMethod, number: number): string {
  const costs = gatherings.map(({ charged }) => charged);
  const known = costs.reduce<number>((sum, charged) => sum + (charged ?? 0), 0);
  const cost = `${costs.includes(null) ? 'at least ' : ''}${count(known, 'credit')}`;
  const question = ({ gatheredAt, found, adIds, complete, charged, ...about }: WholeGathering) =>
    `<tr><td><bdi>${text(questionText(about))}</bdi></td><td>${dayText(gatheredAt)}</td><td class="number">${found === null ? 'not stated' : numberText(found)}</td><td class="number">${numberText(adIds.size)}</td><td>${complete ? 'yes' : 'no'}</td><td class="number">${charged === null ? 'unknown' : numberText(charged)}</td></tr>`;
  const parts = [
    `<p>The report rests on ${adsText(ads)} that an ad-intelligence service listed. “Found” is the total that the service gave, “read” the number of different ads that were read. Where a gathering is not complete, it holds the first ads in the service’s order, which is no random sample. Reach, spend, revenue and performance are the service’s own estimates.</p>`,
    gatherings.length > 0 &&
      `<div class="table" role="region" aria-label="Questions" tabindex="0"><table><thead><tr><th scope="col">Question</th><th scope="col">Read on</th><th scope="col" class="number">Found</th><th scope="col" class="number">Read</th><th scope="col">Complete</th><th scope="col" class="number">Credits</th></tr></thead><tbody>${gatherings.map(question).join('')}</tbody></table></div>`,
    gatherings.length > 0 &&
      `<p>Reading them cost ${cost}${more > 0 ? `; ${count(more, 'earlier gathering')} not listed` : ''}.</p>`,
    ...coverage.map((sentence) => `<p>${text(sentence)}</p>`),
    ...statements.map(
      ({ heading, sql }) =>
        `<h3 dir="auto">${text(heading)}</h3><pre tabindex="0"><code>${escaped(sanitize(sql).trim())}</code></pre>`,
    ),
  ];
  return `<section id="s${number}" class="method">\n<h2>${methodHeading}</h2>\n${parts.filter(Boolean).join('\n')}\n</section>`;
}
