import { TenantCache } from './memory-state.ts';

/** A file made of a tenant's dataset. */
export interface ExportedFile {
  /** The address under which a host reads it as a resource. */
  uri: string;
  /** Without folders, as it was written: `ads.csv`, `ads-2.csv`. */
  name: string;
  mimeType: string;
  bytes: number;
  /** In milliseconds since the epoch. */
  at: number;
  /** Where it lies on this machine, if it does. */
  path?: string | undefined;
  content(): Promise<Uint8Array>;
  /** Removes it, where what belongs beside it cannot be written. */
  discard?(): Promise<void>;
}

export interface NewFile {
  name: string;
  /** How the name of the file ends that comes beside it: where files are numbered, that must be free, too. */
  besideEnding?: string;
  mimeType: string;
  /** Writes the file in parts; each is taken before the next is made. */
  write(take: (bytes: Uint8Array) => Promise<void>): Promise<unknown>;
}

/** The files that one tenant exported, and that are not too old. */
export interface Exports {
  /** A larger file is refused. */
  maxBytes: number;
  create(file: NewFile): Promise<ExportedFile>;
  /** The newest first. */
  list(): Promise<ExportedFile[]>;
  find(uri: string): Promise<ExportedFile | undefined>;
}

/** The files of all tenants. */
export interface ExportStore {
  of(tenantId: string): Exports;
}

const MB = 1024 * 1024;
/** Files of all tenants together. */
const maxBytesInAll = 64 * MB;
/** One file in memory. */
export const maxExportBytes = 16 * MB;
/** How long a file can be read, in milliseconds: an hour. */
export const exportTtl = 3_600_000;

/** The time for readers, and one that only goes on. */
export interface Clocks {
  now: () => number;
  elapsed: () => number;
}

/** Gives every file of a process an address of its own. */
export function uriMaker(): (name: string, at: number) => string {
  let count = 0;
  return (name, at) => `ad-library://exports/${at.toString(36)}-${++count}/${encodeURIComponent(name)}`;
}

/** Keeps files in memory, with a fair share for each tenant. */
export class MemoryExports implements ExportStore {
  readonly #files: TenantCache<ExportedFile>;
  readonly #now: () => number;
  readonly #uriOf = uriMaker();

  constructor({ now, elapsed }: Clocks) {
    this.#files = new TenantCache({ maxBytes: maxBytesInAll, ttl: exportTtl, now: elapsed });
    this.#now = now;
  }

  of(tenantId: string): Exports {
    return {
      maxBytes: maxExportBytes,
      create: async ({ name, mimeType, write }) => {
        const parts: Uint8Array[] = [];
        await write(async (bytes) => void parts.push(bytes));
        const whole = Buffer.concat(parts);
        const at = this.#now();
        const about = { uri: this.#uriOf(name, at), name, mimeType, bytes: whole.length, at };
        const file: ExportedFile = { ...about, content: async () => whole };
        this.#files.set(tenantId, file.uri, { value: file, bytes: whole.length });
        return file;
      },
      list: async () => this.#files.values(tenantId),
      find: async (uri) => this.#files.get(tenantId, uri),
    };
  }
}
