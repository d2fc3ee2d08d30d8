import type * as z from 'zod';
import { AdLibraryError, invalidRequest } from '../api/errors.ts';
import { dayMs } from '../views/durations.ts';
import { formatNumber } from '../views/numbers.ts';
import type { StoreAccess } from './store/access.ts';

/**
 * The kinds of records beside a dataset, and how many there may be of each kind: a person's labels, watches and reports,
 * and what is known of pictures. The records stay when ads are evicted to make room.
 */
export const maxRecords = { label: 20_000, watch: 50, report: 20, picture: 20_000 } as const;

export type RecordKind = keyof typeof maxRecords;

/** JSON values by their ids. The one that was put first comes first; a new value keeps its place. */
export type RecordsById = ReadonlyMap<string, unknown>;

export interface UserRecords {
  /** Whether the records outlive this process. */
  isLasting: boolean;
  /** The result stays as it is while others change records. */
  read(kind: RecordKind): Promise<RecordsById>;
  /**
   * Changes records of a kind in one step, all or nothing, however many processes change records at once. When it
   * resolves, the change is on the disk or in the store.
   * @param change receives the records and may run again: its last result counts
   * @throws AdLibraryError `invalid_request` if there would be too many
   */
  update<Result>(kind: RecordKind, change: (records: RecordsById) => RecordChange<Result>): Promise<Result>;
}

interface RecordChange<Result> {
  put?: Iterable<readonly [id: string, value: unknown]>;
  remove?: Iterable<string>;
  result: Result;
}

/** Characters of one record as JSON. */
const maxRecordChars = 64 * 1024;
/** How long records live after their last use, and how often their use is written down, in milliseconds. */
const ttlMs = 400 * dayMs;
const touchIntervalMs = dayMs;

/** All records of one kind: one document, because one step must tell whether more fit. */
interface WrittenRecords {
  usedAt: number;
  records: [id: string, value: unknown][];
}

async function readRecords({ documents, keyOf }: StoreAccess, tenantId: string, kind: RecordKind) {
  const key = keyOf(tenantId, 'own', kind);
  const { doc, now, version } = await documents.read<WrittenRecords>(key);
  if (doc && now - doc.usedAt > touchIntervalMs)
    documents
      .update<WrittenRecords, void>(key, (doc, now) => ({
        ...(doc && { next: { ...doc, usedAt: now }, ttlMs }),
        result: undefined,
      }))
      .catch(() => {});
  return { records: new Map(doc?.records), version };
}

export async function readContentRecords(source: StoreAccess, tenantId: string): Promise<ContentRecords> {
  const [labels, pictures] = await Promise.all([
    readRecords(source, tenantId, 'label'),
    readRecords(source, tenantId, 'picture'),
  ]);
  return {
    labels: labels.records,
    labelsVersion: labels.version,
    pictures: pictures.records,
    picturesVersion: pictures.version,
  };
}

export interface ContentRecords {
  labels: RecordsById;
  /** Changes with the labels alone. */
  labelsVersion: string;
  /** What `picturePrint` makes of an ad's picture, by `idKey` of the ad. */
  pictures: RecordsById;
  /** Changes with what is known of pictures alone. */
  picturesVersion: string;
}

export const emptyContentRecords: ContentRecords = {
  labels: new Map(),
  labelsVersion: '',
  pictures: new Map(),
  picturesVersion: '',
};

export const openUserRecords = (source: StoreAccess, tenantId: string, { isLasting = true } = {}): UserRecords => ({
  isLasting,
  read: async (kind) => (await readRecords(source, tenantId, kind)).records,
  update: <Result>(kind: RecordKind, change: (records: RecordsById) => RecordChange<Result>) =>
    source.documents.update<WrittenRecords, Result>(source.keyOf(tenantId, 'own', kind), (doc, now) => {
      const records = new Map(doc?.records);
      const { result, put = [], remove: removed = [] } = change(records);
      const [entries, ids] = [[...new Map(put)], [...removed].filter((id) => records.has(id))];
      if (entries.length + ids.length === 0) return { result };
      if (entries.length > 0 && source.store.isNearlyFull()) throw createFullError();
      const countBefore = records.size;
      for (const id of ids) records.delete(id);
      for (const [id, value] of entries) records.set(id, value);
      assertRecordLimit(kind, countBefore, records.size);
      if (entries.some((record) => JSON.stringify(record).length > maxRecordChars))
        throw createTooLargeError(kind, maxRecordChars);
      return { next: records.size > 0 ? { usedAt: now, records: [...records] } : null, ttlMs, result };
    }),
});

/** Records with their names. One in another version's form is left out. */
export const parseNamedRecords = <Schema extends z.ZodObject>(records: RecordsById, schema: Schema) =>
  [...records.entries()].flatMap(([name, value]) => {
    const { data } = schema.safeParse(value);
    return data ? [{ name, ...data }] : [];
  });

const plurals = { label: 'labels', watch: 'watches', report: 'reports', picture: 'pictures' };

/** @throws AdLibraryError where records would be more than before, and too many */
export function assertRecordLimit(kind: RecordKind, countBefore: number, countAfter: number): void {
  if (countAfter <= Math.max(countBefore, maxRecords[kind])) return;
  throw invalidRequest(
    `At most ${formatNumber(maxRecords[kind])} ${plurals[kind]} are kept, and there are ${formatNumber(countBefore)}: ` +
      `these are ${formatNumber(countAfter - maxRecords[kind])} too many. Nothing was changed. Remove some first.`,
  );
}

export const createTooLargeError = (kind: RecordKind, maxChars: number) =>
  invalidRequest(`A kept ${kind} may have at most ${formatNumber(maxChars)} characters as JSON.`);

const createFullError = () =>
  new AdLibraryError({
    kind: 'busy',
    problem: 'This server has no room for more labels, watches and reports.',
    storage: 'full',
  });
