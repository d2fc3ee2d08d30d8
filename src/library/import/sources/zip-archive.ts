import { crc32 } from 'node:zlib';
import { UnreadableSourceError } from './source-entry.ts';

/** An entry of a ZIP archive: a file, or a folder if its name ends with a slash. */
export interface ZipEntry {
  name: string;
  bytes: AsyncIterable<Uint8Array>;
}

/** An archive entry whose remaining bytes may still be unread. */
interface PendingEntry {
  name: string;
  unreadChunks: Uint8Array[];
  isComplete: boolean;
  error: Error | undefined;
}

/**
 * The size of the chunks passed to the ZIP reader, in bytes. A chunk may expand to 1,032 times its size, so small
 * chunks limit the memory usage.
 */
const zipChunkBytes = 16 * 1024;

/**
 * The signature of the record at the end of a ZIP archive, and the size of this record without and with the longest
 * comment.
 */
const endRecordSignature = Buffer.from('PK\x05\x06');
const endRecordBytes = 22;
const maxEndRecordBytes = endRecordBytes + 0xffff;
/**
 * The entry count in the end record if the archive has at least 65,535 entries. Such an archive stores the actual count
 * elsewhere.
 */
const overflowEntryCount = 0xffff;

/**
 * The maximum size of the entry list at the end of an archive. If the list is longer, the import does not check the
 * checksums. Each entry takes up 46 bytes plus its name.
 */
const maxEntryListBytes = 8 * 1024 * 1024;
const listedEntrySignature = 0x02014b50;
const listedEntryBytes = 46;

/**
 * Reads a ZIP archive from start to end, and checks that it is complete and undamaged. The checks use the list at the
 * end of the archive, which contains the number of entries and the checksum of each entry.
 */
export class ZipArchive {
  readonly #bytes: AsyncIterable<Uint8Array>;
  /** The last chunks of the archive, which contain the list of entries, and the total size of these chunks. */
  readonly #lastChunks: Uint8Array[] = [];
  #lastChunksByteCount = 0;
  #entryCount = 0;
  /**
   * The checksum of each entry that was read completely. This is a list, because several entries may have the same
   * name.
   */
  readonly #checksums: { name: string; checksum: number }[] = [];
  /** True if reading stopped at an entry that cannot be read safely. */
  #hasStoppedEarly = false;

  constructor(bytes: AsyncIterable<Uint8Array>) {
    this.#bytes = bytes;
  }

  /** Reads the entries one after another, without unpacking the archive to disk. */
  async *readEntries(): AsyncGenerator<ZipEntry> {
    const { Unzip, UnzipInflate } = await import('fflate');
    const pendingEntries: PendingEntry[] = [];
    let archiveError: Error | undefined;
    const unzip = new Unzip((file) => {
      if (archiveError) return;
      const name = cleanName(file.name);
      const entry: PendingEntry = { name, unreadChunks: [], isComplete: false, error: undefined };
      pendingEntries.push(entry);
      this.#entryCount++;
      let checksum = 0;
      file.ondata = (error, data, isFinal) => {
        if (error) entry.error = error;
        if (data && data.length > 0) {
          entry.unreadChunks.push(data);
          checksum = crc32(data, checksum);
        }
        if (isFinal && error === null) this.#checksums.push({ name, checksum });
        entry.isComplete ||= isFinal || error !== null;
      };
      // If the archive was written as a stream, the size of an entry comes after its data. The ZIP reader then searches
      // the data for the signature of the next entry, and would find the signatures of the inner archive.
      if (file.size === undefined && /\.zip$/i.test(name)) {
        archiveError = new UnreadableSourceError(
          'the ZIP archive was written as a stream and contains another ZIP archive; unpack it and import its files',
        );
        this.#hasStoppedEarly = true;
        entry.error = archiveError;
        entry.isComplete = true;
        return;
      }
      try {
        file.start();
      } catch (error) {
        entry.error = error as Error;
        entry.isComplete = true;
      }
    });
    unzip.register(UnzipInflate);
    const archiveChunks = this.#readChunks();
    /** Passes the next chunk of the archive to the ZIP reader. Returns false if no more chunks can be read. */
    async function passNextChunk(): Promise<boolean> {
      if (archiveError) return false;
      try {
        const { value, done } = await archiveChunks.next();
        unzip.push(done ? new Uint8Array() : value, done);
        return !done;
      } catch (error) {
        // An error with a code, such as `EIO`, comes from the file system and not from a damaged archive. Rethrow it to
        // stop the whole import.
        if (typeof (error as NodeJS.ErrnoException).code === 'string') throw error;
        archiveError = error as Error;
        return false;
      }
    }
    async function* readEntry(entry: PendingEntry): AsyncGenerator<Uint8Array> {
      for (;;) {
        yield* entry.unreadChunks.splice(0);
        if (entry.error) break;
        if (entry.isComplete) return;
        if (!(await passNextChunk()) && entry.unreadChunks.length === 0 && !entry.isComplete) break;
      }
      const reason = entry.error ?? archiveError;
      if (reason instanceof UnreadableSourceError) throw reason;
      throw new UnreadableSourceError(
        `the entry of the ZIP archive is damaged, encrypted or cut off${reason ? ` (${reason.message})` : ''}`,
      );
    }
    for (;;) {
      while (pendingEntries.length === 0) if (!(await passNextChunk())) break;
      const entry = pendingEntries.shift();
      if (!entry) return;
      yield { name: entry.name, bytes: readEntry(entry) };
      // The caller may not have read the entry to its end. Discard the remaining bytes to reach the next entry.
      while (!entry.isComplete && (await passNextChunk())) entry.unreadChunks.length = 0;
    }
  }

  /** Splits the bytes of the archive into chunks for the ZIP reader, and keeps the last chunks for the final checks. */
  async *#readChunks(): AsyncGenerator<Uint8Array, undefined> {
    for await (const bytes of this.#bytes)
      for (let chunkStart = 0; chunkStart < bytes.length; chunkStart += zipChunkBytes) {
        const chunk = bytes.subarray(chunkStart, chunkStart + zipChunkBytes);
        this.#lastChunks.push(Uint8Array.from(chunk));
        this.#lastChunksByteCount += chunk.length;
        while (this.#lastChunksByteCount - (this.#lastChunks[0]?.length ?? 0) > maxEntryListBytes + maxEndRecordBytes)
          this.#lastChunksByteCount -= this.#lastChunks.shift()?.length ?? 0;
        yield chunk;
      }
    return undefined;
  }

  /**
   * Returns a message if a part of the archive is missing or damaged, and undefined otherwise. Call this method after
   * all entries have been read.
   */
  findProblem(): string | undefined {
    if (this.#hasStoppedEarly) return undefined;
    const archiveEnd = Buffer.concat(this.#lastChunks);
    const endRecordStart = archiveEnd.lastIndexOf(endRecordSignature);
    if (endRecordStart < 0 || endRecordStart + endRecordBytes > archiveEnd.length)
      return 'the ZIP archive is cut off: its end is missing, so files may be missing, too';
    const statedEntryCount = archiveEnd.readUInt16LE(endRecordStart + 10);
    if (statedEntryCount !== overflowEntryCount && statedEntryCount > this.#entryCount)
      return `the ZIP archive is damaged: it lists ${statedEntryCount} entries, but only ${this.#entryCount} can be read`;
    const listBytes = archiveEnd.readUInt32LE(endRecordStart + 12);
    if (listBytes > endRecordStart) return undefined;
    const listedChecksums = readChecksums(archiveEnd.subarray(endRecordStart - listBytes, endRecordStart));
    const damagedEntry = this.#checksums.find(
      ({ name, checksum }) => !(listedChecksums.get(name)?.has(checksum) ?? true),
    );
    if (!damagedEntry) return undefined;
    return `the entry ${damagedEntry.name} of the ZIP archive is damaged or encrypted: its bytes do not match their checksum; import an undamaged copy`;
  }
}

/** Reads the checksums from the list of entries at the end of an archive. Returns them by entry name. */
function readChecksums(entryList: Buffer): Map<string, Set<number>> {
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
