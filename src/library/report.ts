import type { ImportedFile, ImportProgress, ServedLibrary } from './commands.ts';
import type { KeyInfo } from './keys.ts';
import type { IndexProgress } from './reindex.ts';

/** The texts that the commands print, without the final line break. */

const barWidth = 24;

/** A progress line, which the terminal overwrites while a file is imported. */
export function progressLine({ name, bytes, of }: ImportProgress): string {
  const read = `${(bytes / 2 ** 20).toFixed(1)} MB`;
  if (!of) return `${name}  ${read}`;
  return `${name}  ${barOf(bytes / of)}  ${read}`;
}

/** The same while records are indexed again. */
export const indexLine = (database: string, { done, of }: IndexProgress): string =>
  `${database}: indexing again, because the file is of an older version  ${barOf(done / of)}`;

function barOf(part: number): string {
  const share = Math.min(1, part);
  const bar = '█'.repeat(Math.floor(share * barWidth)).padEnd(barWidth, '·');
  return `${bar} ${String(Math.floor(share * 100)).padStart(3)} %`;
}

const counted = (amount: number, what: string) => `${amount} ${what}${amount === 1 ? '' : 's'}`;

/** Which file is served, and what it holds: one in the wrong folder is new and empty. */
export function storedText({ database, ads, pages }: NonNullable<ServedLibrary['stored']>): string {
  if (ads + pages === 0) return `${database} is empty; "library import" loads ads and pages into it`;
  return `${database} holds ${counted(ads, 'ad')} and ${counted(pages, 'page')}`;
}

export function importText({ name, notes, ...report }: ImportedFile): string {
  const { ads, pages, updated, fromPublicArchive, skipped, problems, reasons } = report;
  const mapped = fromPublicArchive ? ` (${fromPublicArchive} from the public ad library’s format)` : '';
  const replaced = updated ? `, ${updated} of them updated an earlier record` : '';
  const unlisted = skipped - problems.length;
  return [
    `${name}: ${counted(ads, 'ad')}${mapped} and ${counted(pages, 'page')}${replaced}${skipped ? `, ${skipped} skipped:` : ''}`,
    ...problems.map((problem) => `  ${problemText(problem)}`),
    ...(unlisted > 0 ? [`  and ${unlisted} more:`] : []),
    ...Object.entries(reasons).map(([reason, amount]) => `    ${amount} × ${reason}`),
    ...notes.map((note) => `  note: ${note}`),
  ].join('\n');
}

/** `line 12: id: …`, or `line 12, data[3].id: …` in a document. */
function problemText({ line, path, problem }: ImportedFile['problems'][number]): string {
  if (path === '') return `line ${line}: ${problem}`;
  return `line ${line}, ${path}${/^[\w.]+: /.test(problem) ? '.' : ': '}${problem}`;
}

/** The exit code of an import; `note` explains a code other than 0. */
export function importOutcome(files: Pick<ImportedFile, 'ads' | 'pages' | 'skipped'>[]): {
  exitCode: number;
  note?: string;
} {
  if (files.every(({ skipped }) => skipped === 0)) return { exitCode: 0 };
  const isStored = files.some(({ ads, pages }) => ads + pages > 0);
  const rest = isStored ? 'some records were skipped; everything else is stored' : 'nothing was stored';
  return { exitCode: 1, note: `exit code 1: ${rest}` };
}

export function keysText(keys: KeyInfo[]): string {
  if (keys.length === 0) return 'No keys yet. "library key create" makes one.';
  return keys
    .map(({ id, keyPrefix, name, scopes, unmetered, createdAt, revokedAt }) => {
      const active = unmetered ? 'active, unmetered' : 'active';
      const state = revokedAt === null ? active : `revoked ${isoDay(revokedAt)}`;
      return `${keyPrefix}…  ${id}  made ${isoDay(createdAt)}  ${state}  ${name}  ${scopes.join(',')}`;
    })
    .join('\n');
}

const isoDay = (time: number) => new Date(time).toISOString().slice(0, 10);
