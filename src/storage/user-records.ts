import type * as z from 'zod';
import { AdLibraryError, invalidRequest } from '../api/errors.ts';
import { dayMs } from '../views/durations.ts';
import { formatNumber } from '../views/numbers.ts';
import type { StoreAccess } from './store/access.ts';

/**
 * The kinds of records that are stored beside a dataset, and the largest number of each kind: labels, watches and reports
 * of a person, and perceptual hashes of pictures. The records stay when ads are evicted.
 */
export const maxRecords = { label: 20_000, watch: 50, report: 20, picture: 20_000 } as const;

/** The kind of a record. */
export type RecordKind = keyof typeof maxRecords;

/** JSON values by their ids, in the order in which the ids were first stored. Replacing a value keeps its position. */
export type RecordsById = ReadonlyMap<string, unknown>;

/** The records of one account. */
export interface UserRecords {
  /** Whether the records outlive this process. */
  isLasting: boolean;
  /** Reads all records of a kind. The result does not change when other callers change records. */
  read(kind: RecordKind): Promise<RecordsById>;
  /**
   * Changes records of a kind atomically, even if several processes change records at the same time. When the promise
   * resolves, the change is on the disk or in the store.
   * @param change receives the current records. It may run several times, and its last result counts
   * @throws AdLibraryError `invalid_request` if there would be too many records, `busy` if the store is nearly full
   */
  update<Result>(kind: RecordKind, change: (records: RecordsById) => RecordChange<Result>): Promise<Result>;
}

interface RecordChange<Result> {
  put?: Iterable<readonly [id: string, value: unknown]>;
  remove?: Iterable<string>;
  result: Result;
}

/** The largest size of one record as JSON, in characters. */
const maxRecordChars = 64 * 1024;
/** How long records live after their last use, and how often their use is recorded, in milliseconds. */
const ttlMs = 400 * dayMs;
const touchIntervalMs = dayMs;

/** All records of one kind. They are one document, so that one atomic change can check the number of records. */
interface StoredRecords {
  usedAt: number;
  records: [id: string, value: unknown][];
}

/** Reads the records of a kind. Extends their lifetime in the background if they were not used for `touchIntervalMs`. */
async function readRecords({ documents, keyOf }: StoreAccess, tenantId: string, kind: RecordKind) {
  const key = keyOf(tenantId, 'own', kind);
  const { doc, now, version } = await documents.read<StoredRecords>(key);
  if (doc && now - doc.usedAt > touchIntervalMs)
    documents
      .update<StoredRecords, void>(key, (doc, now) => ({
        ...(doc && { next: { ...doc, usedAt: now }, ttlMs }),
        result: undefined,
      }))
      .catch(() => {});
  return { records: new Map(doc?.records), version };
}

/** Reads the labels and the picture hashes of a tenant, which are part of the contents of a dataset. */
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

/** The records that are part of the contents of a dataset. */
export interface ContentRecords {
  labels: RecordsById;
  /** Changes with each change of the labels, and only then. */
  labelsVersion: string;
  /** The perceptual hash of each ad's picture, as `picturePrint` writes it, by the normalized id of the ad. */
  pictures: RecordsById;
  /** Changes with each change of the picture hashes, and only then. */
  picturesVersion: string;
}

/** The records of an account that has stored none. */
export const emptyContentRecords: ContentRecords = {
  labels: new Map(),
  labelsVersion: '',
  pictures: new Map(),
  picturesVersion: '',
};

/** Opens the records of a tenant in a store. */
export const openUserRecords = (source: StoreAccess, tenantId: string, { isLasting = true } = {}): UserRecords => ({
  isLasting,
  read: async (kind) => (await readRecords(source, tenantId, kind)).records,
  update: <Result>(kind: RecordKind, change: (records: RecordsById) => RecordChange<Result>) =>
    source.documents.update<StoredRecords, Result>(source.keyOf(tenantId, 'own', kind), (doc, now) => {
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

/**
 * Returns the records that match a schema, with their names. Records that another version of this program wrote in
 * another form are left out.
 */
export const parseNamedRecords = <Schema extends z.ZodObject>(records: RecordsById, schema: Schema) =>
  [...records.entries()].flatMap(([name, value]) => {
    const { data } = schema.safeParse(value);
    return data ? [{ name, ...data }] : [];
  });

const plurals = { label: 'labels', watch: 'watches', report: 'reports', picture: 'pictures' };

/**
 * Checks the limit of a kind of records. A change that does not increase the number of records is always allowed.
 * @throws AdLibraryError `invalid_request` if the number grows beyond the limit
 */
export function assertRecordLimit(kind: RecordKind, countBefore: number, countAfter: number): void {
  if (countAfter <= Math.max(countBefore, maxRecords[kind])) return;
  throw invalidRequest(
    `At most ${formatNumber(maxRecords[kind])} ${plurals[kind]} can be stored, and there are ${formatNumber(countBefore)}. ` +
      `This change would store ${formatNumber(countAfter - maxRecords[kind])} too many. Nothing was changed. Remove some first.`,
  );
}

/** Returns the error of a record that exceeds `maxChars` characters. */
export const createTooLargeError = (kind: RecordKind, maxChars: number) =>
  invalidRequest(`A stored ${kind} may have at most ${formatNumber(maxChars)} characters as JSON.`);

const createFullError = () =>
  new AdLibraryError({
    kind: 'busy',
    problem: 'This server cannot store any more labels, watches and reports.',
    storage: 'full',
  });
