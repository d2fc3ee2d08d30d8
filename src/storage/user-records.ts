import type * as z from 'zod';
import { AdLibraryError, createInvalidRequestError } from '../api/errors.ts';
import { dayMs } from '../views/durations.ts';
import { formatNumber } from '../views/numbers.ts';
import type { StoreAccess } from './store/access.ts';

/**
 * The maximum number of records of each kind. A `watch` is a saved search that is repeated to find new ads. A `picture`
 * is the perceptual hash of a picture. Records are kept when ads are evicted.
 */
export const maxRecords = { label: 20_000, watch: 50, report: 20, picture: 20_000 } as const;

/** A kind of record that is stored for a user, e.g. `label` or `watch`. */
export type RecordKind = keyof typeof maxRecords;

/** The stored JSON values by id, in the order in which the ids were first stored. */
export type RecordsById = ReadonlyMap<string, unknown>;

/** The labels, watches (repeated searches), reports and picture records of one API key. */
export interface UserRecords {
  /** False if the records exist only in memory and are therefore lost when this process ends. */
  isPersistent: boolean;
  /** Reads all records of a kind. The returned map does not reflect later changes. */
  read(kind: RecordKind): Promise<RecordsById>;
  /**
   * Changes records of one kind atomically. Resolves when the change is on disk or in the store.
   * @param change receives the current records and returns the changes. It may be called several times, but only its
   * last result is used.
   * @throws AdLibraryError `invalid_request` if there would be too many records, `busy` if the store is nearly full
   */
  update<Result>(kind: RecordKind, change: (records: RecordsById) => RecordChange<Result>): Promise<Result>;
}

interface RecordChange<Result> {
  put?: Iterable<readonly [id: string, value: unknown]>;
  remove?: Iterable<string>;
  result: Result;
}

/** The maximum length of the JSON text of a record, in characters. */
const maxRecordChars = 64 * 1024;
/**
 * How long records are stored after their last use, in milliseconds, and the minimum interval between two updates of
 * the time of use.
 */
const recordTtlMs = 400 * dayMs;
const minUseUpdateIntervalMs = dayMs;

/**
 * All records of one kind, in a single document. A single change can therefore check the number of records and add a
 * record atomically.
 */
interface StoredRecords {
  usedAt: number;
  records: [id: string, value: unknown][];
}

/**
 * Reads the records of a kind. If their time of use was last updated more than `minUseUpdateIntervalMs` ago, also
 * extends their lifetime in the background.
 */
async function readRecords({ documents, buildKey }: StoreAccess, tenantId: string, kind: RecordKind) {
  const documentKey = buildKey(tenantId, 'own', kind);
  const { doc, readAt, version } = await documents.read<StoredRecords>(documentKey);
  if (doc && readAt - doc.usedAt > minUseUpdateIntervalMs)
    documents
      .update<StoredRecords, void>(documentKey, (doc, now) => ({
        ...(doc && { next: { ...doc, usedAt: now }, ttlMs: recordTtlMs }),
        result: undefined,
      }))
      .catch(() => {});
  return { records: new Map(doc?.records), version };
}

/** Reads the labels and picture records of a tenant (API key). They are part of each snapshot of the stored ads. */
export async function readContentRecords(access: StoreAccess, tenantId: string): Promise<ContentRecords> {
  const [labels, pictureRecords] = await Promise.all([
    readRecords(access, tenantId, 'label'),
    readRecords(access, tenantId, 'picture'),
  ]);
  return {
    labels: labels.records,
    labelsVersion: labels.version,
    pictureRecords: pictureRecords.records,
    pictureRecordsVersion: pictureRecords.version,
  };
}

/**
 * The labels and picture records of one API key. They are part of each snapshot of the stored ads, because SQL
 * statements can read them.
 */
export interface ContentRecords {
  labels: RecordsById;
  /** A version that changes whenever a label changes. The version is part of cache keys. */
  labelsVersion: string;
  /**
   * The records of fetched ad pictures, which contain perceptual hashes as computed by `computePerceptualHash`. The map
   * keys are ad ids in lower case.
   */
  pictureRecords: RecordsById;
  /** A version that changes whenever a picture record changes. The version is part of cache keys. */
  pictureRecordsVersion: string;
}

/** The content records of an API key that has no labels and no picture records. */
export const emptyContentRecords: ContentRecords = {
  labels: new Map(),
  labelsVersion: '',
  pictureRecords: new Map(),
  pictureRecordsVersion: '',
};

/** Opens the labels, watches (repeated searches), reports and picture records of a tenant (API key) in a store. */
export const openUserRecords = (access: StoreAccess, tenantId: string, { isPersistent = true } = {}): UserRecords => ({
  isPersistent,
  read: async (kind) => (await readRecords(access, tenantId, kind)).records,
  update: <Result>(kind: RecordKind, change: (records: RecordsById) => RecordChange<Result>) =>
    access.documents.update<StoredRecords, Result>(access.buildKey(tenantId, 'own', kind), (doc, now) => {
      const records = new Map(doc?.records);
      const { result, put = [], remove: removed = [] } = change(records);
      const [entries, ids] = [[...new Map(put)], [...removed].filter((id) => records.has(id))];
      if (entries.length + ids.length === 0) return { result };
      if (entries.length > 0 && access.store.isNearlyFull()) throw createStoreFullError();
      const countBefore = records.size;
      for (const id of ids) records.delete(id);
      for (const [id, value] of entries) records.set(id, value);
      assertRecordLimit(kind, countBefore, records.size);
      if (entries.some((record) => JSON.stringify(record).length > maxRecordChars))
        throw createTooLargeError(kind, maxRecordChars);
      return { next: records.size > 0 ? { usedAt: now, records: [...records] } : null, ttlMs: recordTtlMs, result };
    }),
});

/**
 * Returns the records that match a schema, each with its name. Skips records that were stored in the format of another
 * version of this server.
 */
export const parseNamedRecords = <Schema extends z.ZodObject>(records: RecordsById, schema: Schema) =>
  [...records.entries()].flatMap(([name, storedRecord]) => {
    const { data } = schema.safeParse(storedRecord);
    return data ? [{ name, ...data }] : [];
  });

const plurals = { label: 'labels', watch: 'watches', report: 'reports', picture: 'pictures' };

/**
 * Checks that a change does not exceed the maximum number of records. Changes that add no records are always allowed.
 * @throws AdLibraryError `invalid_request` if the change adds records beyond the limit
 */
export function assertRecordLimit(kind: RecordKind, countBefore: number, countAfter: number): void {
  if (countAfter <= Math.max(countBefore, maxRecords[kind])) return;
  throw createInvalidRequestError(
    `At most ${formatNumber(maxRecords[kind])} ${plurals[kind]} can be stored, and there are ${formatNumber(countBefore)}. ` +
      `This change would store ${formatNumber(countAfter - maxRecords[kind])} too many. Nothing was changed. Remove some first.`,
  );
}

/** Creates the error for a record (e.g. a label) that has more than `maxChars` characters. */
export const createTooLargeError = (kind: RecordKind, maxChars: number) =>
  createInvalidRequestError(`A stored ${kind} may have at most ${formatNumber(maxChars)} characters as JSON.`);

const createStoreFullError = () =>
  new AdLibraryError({
    kind: 'busy',
    problem: 'This server cannot store any more labels, watches and reports.',
    storage: 'full',
  });
