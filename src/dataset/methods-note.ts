import { canonical } from '../api/call.ts';
import type { DatasetContents, Gathering } from '../state/dataset.ts';
import { isoTime } from './cells.ts';
import { describedColumns } from './columns.ts';
import { type CoverageView, uncoveredText } from './coverage.ts';
import { adIdsOf, countOutside, foundBy, foundInParts, isComplete } from './gatherings.ts';

interface MethodsNote {
  contents: DatasetContents;
  coverage: CoverageView;
  sql: string;
  rows: number;
  /** Milliseconds since the epoch. */
  now: number;
  version: string;
}

/** What whoever works with an export has to know of it: questions, dates, totals, coverage. Markdown. */
export function methodsNote({ contents, coverage, sql, rows, now, version }: MethodsNote): string {
  const { ads, pages, gatherings, letGo } = contents;
  const outside = countOutside(contents);
  return `# How these ads were gathered

Exported ${isoTime(now)} by ad-library-mcp ${version}: ${rows} rows from ${ads.length} ads and ${pages.length} pages.

## Statement

${indented(sql)}

## Gatherings

${gatherings.length === 0 ? 'None: the ads are those that searches happened to show. Shares and totals say nothing about all ads there are.' : [tableHead, ...gatherings.map((gathering) => tableRow(gathering, contents))].join('\n')}
${outside > 0 ? `\n${outside} of the ads came only from searches or earlier gatherings. The newest gathering of each question does not have them.${uncoveredText(coverage)}\n` : ''}${letGo.ads > 0 ? `\n${letGo.ads} ads were removed to make room.\n` : ''}
## What to keep in mind

- "Found" is the total that the service gave, "read" the number of different ads that were read. A gathering that is not complete is a part of what there is, in the service's order, and no random sample.
- Each ad is in its newest version. A field that a later answer left out keeps its earlier value.
${describedColumns()
  .flatMap(({ name, meaning }) => (meaning === undefined ? [] : `- \`${name}\`: ${meaning}.\n`))
  .join(
    '',
  )}- \`duplicates\`: copies of the ad, itself included. Dates are in UTC; one that came without an offset counts as UTC.
- Reach, spend, revenue, trend and performance are the service's own estimates; its document does not define them.
- An ad that is no longer found has not necessarily ended.
`;
}

const indented = (sql: string) => sql.trim().replace(/^/gm, '    ');

const tableHead = '| gathering | question | gathered | found | read | complete |\n|---|---|---|---|---|---|';

function tableRow(gathering: Gathering, contents: DatasetContents): string {
  const { id, filters, collectionId, gatheredAt } = gathering;
  const question = collectionId === null ? canonical(filters ?? {}) : `collection ${collectionId}`;
  const cells = [
    id,
    `\`${question.replace(/[`|\n\r]/g, ' ')}\``,
    isoTime(gatheredAt),
    foundBy(gathering, contents) ?? foundInParts(gathering, contents) ?? 'not stated',
    adIdsOf(gathering, contents).size,
    isComplete(gathering, contents) ? 'yes' : 'no',
  ];
  return `| ${cells.join(' | ')} |`;
}
