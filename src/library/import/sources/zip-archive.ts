import { crc32 } from 'node:zlib';
import { UnreadableSourceError } from './source-entry.ts';

/** An entry of a ZIP archive: a file, or a folder if its name ends with a slash. */
export interface ZipEntry {
  name: string;
  bytes: AsyncIterable<Uint8Array>;
}

/** An entry whose bytes arrive while the archive is being read. */
interface PendingEntry {
  name: string;
  chunks: Uint8Array[];
  isComplete: boolean;
  error: Error | undefined;
}

/**
 * The size of the chunks passed to the ZIP reader. A chunk can expand to 1,032 times its size, so small chunks limit
 * the memory usage.
 */
const zipChunkLength = 16 * 1024;

/** The record at the end of a ZIP archive: its signature, its size, and its largest size with a comment. */
const endRecordSignature = Buffer.from('PK\x05\x06');
const endRecordBytes = 22;
const maxEndRecordBytes = endRecordBytes + 0xffff;
/**
 * The end record has this number of entries if the archive has 65,535 entries or more. Such an archive stores the
 * actual number elsewhere.
 */
const unknownEntryCount = 0xffff;

/**
 * The maximum size of the list of entries, which is at the end of an archive. It has 46 bytes for each entry, and its
 * name. In a longer list, the checksums are not checked.
 */
const maxEntryListBytes = 8 * 1024 * 1024;
const listedEntrySignature = 0x02014b50;
const listedEntryBytes = 46;

/**
 * Reads a ZIP archive from start to end, and checks that it is complete and undamaged. The checks need the list of
 * entries at the end of the archive: it has the number of entries and the checksum of each entry.
 */
export class ZipArchive {
  readonly #bytes: AsyncIterable<Uint8Array>;
  /** The last chunks of the archive, and the number of their bytes. */
  readonly #lastChunks: Uint8Array[] = [];
  #lastByteCount = 0;
  #entryCount = 0;
  /** The checksum of each entry that was read completely. Several entries may have the same name. */
  readonly #checksums: { name: string; checksum: number }[] = [];

  constructor(bytes: AsyncIterable<Uint8Array>) {
    this.#bytes = bytes;
  }

  /** Reads the entries one after another, without unpacking the archive to disk. */
  async *readEntries(): AsyncGenerator<ZipEntry> {
    const { Unzip, UnzipInflate } = await import('fflate');
    const pendingEntries: PendingEntry[] = [];
    const unzip = new Unzip((file) => {
      const name = cleanName(file.name);
      const entry: PendingEntry = { name, chunks: [], isComplete: false, error: undefined };
      pendingEntries.push(entry);
      this.#entryCount++;
      let checksum = 0;
      file.ondata = (error, data, isFinal) => {
        if (error) entry.error = error;
        if (data && data.length > 0) {
          entry.chunks.push(data);
          checksum = crc32(data, checksum);
        }
        if (isFinal && error === null) this.#checksums.push({ name, checksum });
        entry.isComplete ||= isFinal || error !== null;
      };
      try {
        file.start();
      } catch (error) {
        entry.error = error as Error;
        entry.isComplete = true;
      }
    });
    unzip.register(UnzipInflate);
    const archiveChunks = this.#readChunks();
    let archiveError: Error | undefined;
    /** Reads the next chunk of the archive. Returns false at the end of the archive. */
    async function readChunk(): Promise<boolean> {
      if (archiveError) return false;
      try {
        const { value, done } = await archiveChunks.next();
        unzip.push(done ? new Uint8Array() : value, done);
        return !done;
      } catch (error) {
        // An error with a code, such as `EIO`, comes from the file system and not from a damaged archive. It must end the
        // whole import.
        if (typeof (error as NodeJS.ErrnoException).code === 'string') throw error;
        archiveError = error as Error;
        return false;
      }
    }
    async function* readEntry(entry: PendingEntry): AsyncGenerator<Uint8Array> {
      for (;;) {
        yield* entry.chunks.splice(0);
        if (entry.error) break;
        if (entry.isComplete) return;
        if (!(await readChunk()) && entry.chunks.length === 0 && !entry.isComplete) break;
      }
      const reason = entry.error ?? archiveError;
      throw new UnreadableSourceError(
        `the entry of the ZIP archive is damaged, encrypted or cut off${reason ? ` (${reason.message})` : ''}`,
      );
    }
    for (;;) {
      while (pendingEntries.length === 0) if (!(await readChunk())) break;
      const entry = pendingEntries.shift();
      if (!entry) return;
      yield { name: entry.name, bytes: readEntry(entry) };
      // The caller may have ignored the entry. Discard its bytes to reach the next entry.
      while (!entry.isComplete && (await readChunk())) entry.chunks.length = 0;
    }
  }

  /** Splits the bytes of the archive into chunks for the ZIP reader, and remembers the last chunks. */
  async *#readChunks(): AsyncGenerator<Uint8Array, undefined> {
    for await (const bytes of this.#bytes)
      for (let start = 0; start < bytes.length; start += zipChunkLength) {
        const chunk = bytes.subarray(start, start + zipChunkLength);
        this.#lastChunks.push(Uint8Array.from(chunk));
        this.#lastByteCount += chunk.length;
        while (this.#lastByteCount - (this.#lastChunks[0]?.length ?? 0) > maxEntryListBytes + maxEndRecordBytes)
          this.#lastByteCount -= this.#lastChunks.shift()?.length ?? 0;
        yield chunk;
      }
    return undefined;
  }

  /**
   * Returns a message about what is missing from the archive or damaged. Returns undefined if nothing is. Call this
   * method after all entries were read.
   */
  findProblem(): string | undefined {
    const archiveEnd = Buffer.concat(this.#lastChunks);
    const endRecordStart = archiveEnd.lastIndexOf(endRecordSignature);
    if (endRecordStart < 0 || endRecordStart + endRecordBytes > archiveEnd.length)
      return 'the ZIP archive is cut off: its end is missing, so files may be missing, too';
    const statedEntryCount = archiveEnd.readUInt16LE(endRecordStart + 10);
    if (statedEntryCount !== unknownEntryCount && statedEntryCount > this.#entryCount)
      return `the ZIP archive is damaged: it lists ${statedEntryCount} entries, but only ${this.#entryCount} can be read`;
    const listBytes = archiveEnd.readUInt32LE(endRecordStart + 12);
    if (listBytes > endRecordStart) return undefined;
    const listedChecksums = readEntryList(archiveEnd.subarray(endRecordStart - listBytes, endRecordStart));
    const damagedEntry = this.#checksums.find(
      ({ name, checksum }) => !(listedChecksums.get(name)?.has(checksum) ?? true),
    );
    if (!damagedEntry) return undefined;
    return `the entry ${damagedEntry.name} of the ZIP archive is damaged or encrypted: its bytes do not match their checksum; import an undamaged copy`;
  }
}

/** Reads the checksums in the list of entries, by the name of the entry. */
function readEntryList(entryList: Buffer): Map<string, Set<number>> {
  const checksumsByName = new Map<string, Set<number>>();
  for (let entryStart = 0; entryStart + listedEntryBytes <= entryList.length; ) {
    if (entryList.readUInt32LE(entryStart) !== listedEntrySignature) break;
    const nameBytes = entryList.readUInt16LE(entryStart + 28);
    const isUtf8 = (entryList.readUInt16LE(entryStart + 8) & 0x800) !== 0;
    const nameStart = entryStart + listedEntryBytes;
    const name = cleanName(entryList.toString(isUtf8 ? 'utf8' : 'latin1', nameStart, nameStart + nameBytes));
    checksumsByName.set(name, (checksumsByName.get(name) ?? new Set()).add(entryList.readUInt32LE(entryStart + 16)));
    entryStart =
      nameStart + nameBytes + entryList.readUInt16LE(entryStart + 30) + entryList.readUInt16LE(entryStart + 32);
  }
  return checksumsByName;
}

const cleanName = (name: string): string => name.replace(/\p{C}/gu, ' ');
