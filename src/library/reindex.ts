import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ItemType } from '../api/schemas.ts';
import { loadAdLanguage } from './ad-language.ts';
import type { ServiceContext } from './service-context.ts';

type Context = Pick<ServiceContext, 'database' | 'records'>;

export interface IndexProgress {
  /** Records that are indexed again, and how many there are. */
  done: number;
  of: number;
}

/** Records per transaction: the owner of the file renews its lock between two. */
const batchSize = 200;

const kinds = ['pages', 'ads'] as const;

/**
 * Fills the index of a file whose index an update of its form has emptied. Rows are indexed in order, so that a
 * process that is ended meanwhile loses nothing: the next one goes on behind the last row.
 */
export async function indexMissingRecords(
  context: Context,
  onProgress: (progress: IndexProgress) => void = () => {},
): Promise<void> {
  const of = kinds.reduce((sum, kind) => sum + countMissing(context, kind), 0);
  let done = 0;
  for (const kind of kinds) {
    let numbers = missingFrom(context, kind);
    if (numbers.length === 0) continue;
    const put = await writerOf(context, kind);
    for (; numbers.length > 0; numbers = missingFrom(context, kind)) {
      context.database.transaction(() => {
        for (const json of context.records.read(kind, numbers)) put(json);
      });
      done += numbers.length;
      onProgress({ done, of });
      await nextTurn();
    }
  }
}

const missing = (kind: ItemType) =>
  `FROM ${kind} WHERE number > (SELECT coalesce(max(id), 0) FROM ${kind}_text_docsize)`;

function missingFrom({ database }: Context, kind: ItemType): number[] {
  const sql = `SELECT number ${missing(kind)} ORDER BY number LIMIT ?`;
  return database.all<{ number: number }>(sql, [batchSize]).map(({ number }) => number);
}

const countMissing = ({ database }: Context, kind: ItemType): number =>
  database.get<{ missing: number }>(`SELECT count(*) AS missing ${missing(kind)}`)?.missing ?? 0;

async function writerOf({ records }: Context, kind: ItemType): Promise<(json: string) => void> {
  if (kind === 'pages') return (json) => records.putPage(JSON.parse(json), json);
  const withLanguage = await loadAdLanguage();
  return (json) => records.putAd(withLanguage(JSON.parse(json)), json);
}
