import { AdLibraryError, invalidRequest } from '../api/errors.ts';

/**
 * The kinds of a person's own records beside a dataset, and how many there may be of each kind. The records stay when
 * ads are evicted for want of room.
 */
export const maxRecords = { label: 20_000, watch: 50 } as const;

export type RecordKind = keyof typeof maxRecords;

export const recordKinds = Object.keys(maxRecords) as RecordKind[];

/** JSON values by their ids. The one that was put first comes first; a new value keeps its place. */
export type RecordsById = ReadonlyMap<string, unknown>;

/** The records that one person has beside their dataset. */
export interface OwnRecords {
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

export interface RecordChange<Result> {
  put?: Iterable<readonly [id: string, value: unknown]>;
  removed?: Iterable<string>;
  result: Result;
}

/** One change as it is written. */
export interface RecordStep {
  kind: 'own';
  of: RecordKind;
  put: (readonly [id: string, value: unknown])[];
  removed: string[];
}

/** Characters of one record as JSON. */
const maxRecordChars = 64 * 1024;
/** The overhead of a record: its entry in a map, its objects. */
const recordBytes = 300;

/** Writes a change; undefined if nothing changes. Throws if there is no room for it. */
export function recordStep(
  of: RecordKind,
  records: RecordsById,
  { put = [], removed = [] }: Omit<RecordChange<unknown>, 'result'>,
): RecordStep | undefined {
  const step: RecordStep = {
    ...{ kind: 'own', of },
    put: [...new Map(put)],
    removed: [...removed].filter((id) => records.has(id)),
  };
  if (step.put.length + step.removed.length === 0) return;
  const ids = new Set(records.keys());
  for (const id of step.removed) ids.delete(id);
  for (const [id] of step.put) ids.add(id);
  const [max, more] = [maxRecords[of], ids.size - maxRecords[of]];
  if (ids.size > records.size && more > 0)
    throw invalidRequest(
      `At most ${counted(max)} ${of === 'label' ? 'labels' : 'watches'} are kept, and there are ${counted(records.size)}: ` +
        `these are ${counted(more)} too many. Nothing was changed. Remove some first.`,
    );
  if (step.put.some((record) => JSON.stringify(record).length > maxRecordChars))
    throw invalidRequest(`A ${of} may have at most ${counted(maxRecordChars)} characters as JSON.`);
  return step;
}

export function applyStep(records: Map<string, unknown>, { put, removed }: RecordStep): void {
  for (const id of removed) records.delete(id);
  for (const [id, value] of put) records.set(id, value);
}

let created = 0;

export class RecordTable {
  readonly #records = { label: new Map<string, unknown>(), watch: new Map<string, unknown>() };
  bytes = 0;
  /** Tells the versions of this object from those of one that took its place. */
  readonly #name = ++created;
  #changes = 0;

  /** The version, which differs after each change; empty before the first. */
  get version(): string {
    return this.#changes === 0 ? '' : `${this.#name}.${this.#changes}`;
  }

  of(kind: RecordKind): RecordsById {
    return this.#records[kind];
  }

  apply(step: RecordStep): void {
    const records = this.#records[step.of];
    const ids = new Set([...step.removed, ...step.put.map(([id]) => id)]);
    const bytes = () =>
      [...ids].reduce((sum, id) => {
        const value = records.get(id);
        return value === undefined ? sum : sum + recordBytes + 2 * (id.length + JSON.stringify(value).length);
      }, 0);
    this.bytes -= bytes();
    applyStep(records, step);
    this.bytes += bytes();
    this.#changes++;
  }

  /** What brings it back, in parts. */
  *steps(): Generator<RecordStep> {
    for (const of of recordKinds) {
      const all = [...this.#records[of]];
      for (let at = 0; at < all.length; at += 500) yield { kind: 'own', of, put: all.slice(at, at + 500), removed: [] };
    }
  }
}

const counted = (count: number): string => count.toLocaleString('en-US');

/** For all persons together, in the memory of this process. */
const maxBytes = 64 * 1024 * 1024;

/** The records of all tenants in the memory of this process. Records that do not fit are refused. */
export class MemoryRecords {
  readonly #tables = new Map<string, RecordTable>();
  #bytes = 0;

  of(tenantId: string): OwnRecords {
    return {
      isLasting: false,
      read: async (kind) => new Map(this.table(tenantId).of(kind)),
      update: async (kind, change) => {
        const table = this.table(tenantId);
        const { result, ...changes } = change(table.of(kind));
        const step = recordStep(kind, table.of(kind), changes);
        if (step === undefined) return result;
        if (step.put.length > 0 && this.#bytes > maxBytes) throw noRoom();
        this.#bytes -= table.bytes;
        table.apply(step);
        this.#bytes += table.bytes;
        this.#tables.set(tenantId, table);
        return result;
      },
    };
  }

  table(tenantId: string): RecordTable {
    return this.#tables.get(tenantId) ?? new RecordTable();
  }
}

export const noRoom = () =>
  new AdLibraryError({ kind: 'busy', problem: 'This server has no room for more labels and watches.', sent: false });
