import { createReadStream } from 'node:fs';
import { readdir, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { UnreadableSourceError } from './source-entry.ts';

/** A file to import: a file on disk, an entry of a ZIP archive, or the first sheet of a workbook. */
export interface SourceFile {
  name: string;
  bytes: AsyncIterable<Uint8Array>;
}

/** Matches the names of files that an import reads from a folder. Other files, e.g. pictures, are ignored. */
const readableNamePattern = /\.(?:csv|tsv|tab|txt|json|jsonl|ndjson|xlsx|zip)(?:\.gz)?$/i;
const isReadableName = (name: string) => readableNamePattern.test(name) && !/(?:^|\/)(?:\.|__MACOSX\/|~\$)/.test(name);

/** The maximum nesting depth of archives: a ZIP archive may contain another ZIP archive. */
const maxArchiveDepth = 2;
/**
 * The maximum size of a workbook in bytes, packed and unpacked. The limits save memory, because a workbook can only be
 * read as a whole.
 */
const maxWorkbookBytes = { packed: 100e6, unpacked: 500e6 };
/**
 * The size of the chunks passed to the ZIP reader. A chunk can expand to 1,032 times its size, so small chunks limit
 * the memory usage.
 */
const zipChunkLength = 16 * 1024;

/**
 * Lists the files to import, in the order of the arguments. For a folder, lists all readable files in it, sorted by
 * name with numbers in numerical order, so that the file with the newest date in its name comes last.
 * @throws Error if a file does not exist
 */
export async function listFiles(paths: readonly string[]): Promise<{ path: string; byteCount: number | undefined }[]> {
  const listedFiles: { path: string; byteCount: number | undefined }[] = [];
  for (const path of paths) {
    if (path === '-') {
      listedFiles.push({ path, byteCount: undefined });
      continue;
    }
    const stats = await stat(path);
    if (!stats.isDirectory()) listedFiles.push({ path, byteCount: stats.size });
    else
      for (const name of (await listNames(path)).sort(compareNames))
        if (isReadableName(name)) {
          const fileStats = await stat(join(path, name));
          if (fileStats.isFile()) listedFiles.push({ path: join(path, name), byteCount: fileStats.size });
        }
  }
  return listedFiles;
}

/**
 * Lists the files in a folder and its subfolders. A link to a folder that was already listed is ignored, because a link
 * to a parent folder would lead to the same files again and again.
 */
async function listNames(folder: string, listedFolders = new Set<string>()): Promise<string[]> {
  const realFolder = await realpath(folder);
  if (listedFolders.has(realFolder)) return [];
  listedFolders.add(realFolder);
  const fileNames: string[] = [];
  for (const entry of (await readdir(folder, { withFileTypes: true })).sort((a, b) => compareNames(a.name, b.name))) {
    const isFolder = entry.isSymbolicLink()
      ? ((await stat(join(folder, entry.name)).catch(() => undefined))?.isDirectory() ?? false)
      : entry.isDirectory();
    if (!isFolder) fileNames.push(entry.name);
    else
      for (const name of await listNames(join(folder, entry.name), listedFolders))
        fileNames.push(join(entry.name, name));
  }
  return fileNames;
}

const { compare: compareNames } = new Intl.Collator('en', { numeric: true });

/**
 * Reads a file in chunks. The file is opened when the caller requests the first chunk, so that many files can be listed
 * without opening them.
 */
export async function* readFileLazily(path: string): AsyncGenerator<Uint8Array> {
  yield* createReadStream(path);
}

/**
 * Opens a file. For a ZIP archive, yields each readable entry. For a workbook, yields its first sheet as CSV. Any other
 * file is yielded itself. The caller must read each file before requesting the next one.
 */
export async function* openFile({ name, bytes }: SourceFile, depth = 0): AsyncGenerator<SourceFile> {
  const fileStart = await readFirstBytes(bytes).catch((error: unknown) => {
    if (error instanceof UnreadableSourceError) return error;
    throw error;
  });
  // The first bytes of the file cannot be read. Return a file that throws the error when it is read, so that the caller
  // reports it and continues with the next file of the archive.
  if (fileStart instanceof UnreadableSourceError) {
    yield { name, bytes: throwWhenRead(fileStart.message) };
    return;
  }
  const { head, allBytes } = fileStart;
  // Decompress only archives and workbooks here. Other compressed files are decompressed when their text is read.
  if (head.readUInt16BE(0) === gzipSignature && /\.(?:zip|xlsx)\.gz$/i.test(name)) {
    yield* openFile({ name, bytes: gunzip(allBytes) }, depth);
    return;
  }
  const firstEntryName = readFirstEntryName(head);
  if (firstEntryName === undefined) {
    yield { name, bytes: head.readUInt32BE(0) === oldWorkbookSignature ? throwWhenRead(oldWorkbookProblem) : allBytes };
  } else if (/^(?:\[Content_Types\]\.xml|_rels\/|docProps\/|xl\/)/.test(firstEntryName)) {
    yield { name, bytes: readWorkbook(allBytes) };
  } else if (depth >= maxArchiveDepth) {
    yield { name, bytes: throwWhenRead('too many ZIP archives inside each other; unpack them first') };
  } else {
    let hasEntries = false;
    const endCheck = new ZipEndCheck();
    for await (const entry of readZipEntries(endCheck.rememberLastBytes(allBytes))) {
      endCheck.entryCount++;
      if (!isReadableName(entry.name)) continue;
      hasEntries = true;
      yield* openFile({ name: `${name}/${entry.name}`, bytes: entry.bytes }, depth + 1);
    }
    const problem = endCheck.findProblem();
    if (problem !== undefined) yield { name, bytes: throwWhenRead(problem) };
    else if (!hasEntries) yield { name, bytes: throwWhenRead('a ZIP archive without CSV, JSON or Excel files') };
  }
}

// biome-ignore lint/correctness/useYield: the error must reach the reader of the file, who reports it
async function* throwWhenRead(problem: string): AsyncGenerator<Uint8Array> {
  throw new UnreadableSourceError(problem);
}

/** The first bytes of a file compressed with gzip. */
const gzipSignature = 0x1f8b;

async function* gunzip(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const decompressed = createGunzip();
  // Ignore errors here, because the loop over `decompressed` throws the same error.
  pipeline(bytes, decompressed).catch(() => {});
  try {
    yield* decompressed;
  } catch (error) {
    throw new UnreadableSourceError(`the compressed file is damaged or cut off (${(error as Error).message})`);
  }
}

/** The first bytes of a workbook in the `.xls` format from before 2007. */
const oldWorkbookSignature = 0xd0cf11e0;
const oldWorkbookProblem = 'a workbook in the old format .xls; save it as .xlsx or CSV, and import the new file';

/** Reads the first bytes of a file, by which its format is recognized: at least 1 KB if the file is long enough. */
async function readFirstBytes(bytes: AsyncIterable<Uint8Array>) {
  const iterator = bytes[Symbol.asyncIterator]();
  let firstBytes = Buffer.alloc(0);
  let nextChunk = await iterator.next();
  while (!nextChunk.done) {
    firstBytes = Buffer.concat([firstBytes, nextChunk.value]);
    if (firstBytes.length >= 1024) break;
    nextChunk = await iterator.next();
  }
  async function* iterateAll(): AsyncGenerator<Uint8Array> {
    yield firstBytes;
    for (let item = await iterator.next(); !item.done; item = await iterator.next()) yield item.value;
  }
  return { head: Buffer.concat([firstBytes, Buffer.alloc(4)]), allBytes: iterateAll() };
}

/** Returns the name of the first entry of a ZIP archive. Returns undefined for any other file. */
function readFirstEntryName(firstBytes: Buffer): string | undefined {
  if (firstBytes.length < 34 || firstBytes.readUInt32LE(0) !== 0x04034b50) return undefined;
  return firstBytes.toString('utf8', 30, 30 + firstBytes.readUInt16LE(26));
}

/**
 * Checks that a ZIP archive is complete. If an archive was cut off between two entries, all remaining entries are
 * readable, but the record at the end with the number of entries is missing.
 */
class ZipEndCheck {
  /** The number of files and folders that were read from the archive. */
  entryCount = 0;
  #lastBytes = Buffer.alloc(0);

  /** Passes the bytes of the archive through, and remembers the last ones. */
  async *rememberLastBytes(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of bytes) {
      const lastBytes =
        chunk.length >= maxEndRecordBytes ? Buffer.from(chunk) : Buffer.concat([this.#lastBytes, chunk]);
      this.#lastBytes = lastBytes.subarray(-maxEndRecordBytes);
      yield chunk;
    }
  }

  /** Returns a message about what is missing from the archive. Returns undefined if the archive is complete. */
  findProblem(): string | undefined {
    const endRecordStart = this.#lastBytes.lastIndexOf(endRecordSignature);
    if (endRecordStart < 0 || endRecordStart + endRecordBytes > this.#lastBytes.length)
      return 'the ZIP archive is cut off: its end is missing, so files may be missing, too';
    const statedEntryCount = this.#lastBytes.readUInt16LE(endRecordStart + 10);
    if (statedEntryCount === unknownEntryCount || statedEntryCount <= this.entryCount) return undefined;
    return `the ZIP archive is damaged: it lists ${statedEntryCount} entries, but only ${this.entryCount} can be read`;
  }
}

/** The record at the end of a ZIP archive: its signature, its size, and its largest size with a comment. */
const endRecordSignature = Buffer.from('PK\x05\x06');
const endRecordBytes = 22;
const maxEndRecordBytes = endRecordBytes + 0xffff;
/**
 * The end record has this number of entries if the archive has 65,535 entries or more. Such an archive stores the
 * actual number elsewhere.
 */
const unknownEntryCount = 0xffff;

/** An entry of a ZIP archive. Its bytes arrive while the archive is being read. */
interface PendingEntry {
  name: string;
  chunks: Uint8Array[];
  isComplete: boolean;
  error: Error | undefined;
}

/** Reads the entries of a ZIP archive one after another, without unpacking the archive to disk. */
async function* readZipEntries(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<SourceFile> {
  const { Unzip, UnzipInflate } = await import('fflate');
  const pendingEntries: PendingEntry[] = [];
  const unzip = new Unzip((file) => {
    const entry: PendingEntry = { name: file.name, chunks: [], isComplete: false, error: undefined };
    pendingEntries.push(entry);
    file.ondata = (error, data, isFinal) => {
      if (error) entry.error = error;
      if (data && data.length > 0) entry.chunks.push(data);
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
  const archiveChunks = splitChunks(bytes);
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

async function* splitChunks(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, undefined> {
  for await (const chunk of bytes)
    for (let start = 0; start < chunk.length; start += zipChunkLength)
      yield chunk.subarray(start, start + zipChunkLength);
  return undefined;
}

/** Reads the first sheet of a workbook as CSV. */
async function* readWorkbook(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let byteCount = 0;
  for await (const chunk of bytes) {
    byteCount += chunk.length;
    if (byteCount > maxWorkbookBytes.packed) throw new UnreadableSourceError(tooLargeWorkbookProblem);
    chunks.push(chunk);
  }
  const workbook = Buffer.concat(chunks);
  const { unzipSync } = await import('fflate');
  let unpackedByteCount = 0;
  let rows: unknown[][];
  try {
    unzipSync(workbook, {
      filter({ originalSize }) {
        unpackedByteCount += originalSize;
        return false;
      },
    });
    if (unpackedByteCount > maxWorkbookBytes.unpacked) throw new UnreadableSourceError(tooLargeWorkbookProblem);
    const { readSheet } = await import('read-excel-file/universal');
    const workbookBytes = workbook.buffer.slice(workbook.byteOffset, workbook.byteOffset + workbook.byteLength);
    rows = await readSheet(workbookBytes as ArrayBuffer, { parseNumber: (text) => text });
  } catch (error) {
    if (error instanceof UnreadableSourceError) throw error;
    throw new UnreadableSourceError(`not a workbook that can be read (${(error as Error).message}); save it as CSV`);
  }
  for (const row of rows) {
    if (row.every((cell) => cell === null || cell === '')) continue;
    yield Buffer.from(`${row.map(toCsvCell).join(',')}\n`);
  }
}

const tooLargeWorkbookProblem =
  'a workbook that is too large to be read as a whole; save it as CSV, and import the CSV file';

/** Formats a cell of a workbook as a CSV cell. */
function toCsvCell(cell: unknown): string {
  if (cell === null || cell === undefined) return '';
  if (cell instanceof Date) return cell.toISOString();
  const text = String(cell);
  // Spreadsheets store 15 digits of a number. A longer number is probably an id whose last digits were lost, so write
  // it in a form that cannot be mistaken for the id.
  const isRounded = typeof cell !== 'boolean' && /^\d{16,}$/.test(text) && Number(text) > 0 && text.endsWith('0');
  return `"${(isRounded ? Number(text).toExponential() : text).replaceAll('"', '""')}"`;
}
