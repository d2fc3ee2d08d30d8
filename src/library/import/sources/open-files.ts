import { createReadStream } from 'node:fs';
import { readdir, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { decompress } from './decode-text.ts';
import { cellLineBreak, UnreadableSourceError } from './source-entry.ts';
import { ZipArchive } from './zip-archive.ts';

/** A file to import: a file on disk, an entry of a ZIP archive, or the first sheet of a workbook. */
export interface SourceFile {
  name: string;
  bytes: AsyncIterable<Uint8Array>;
  /** What the file may contain. The default is `records`, which applies to files that the user named. */
  contentKind?: FileContentKind;
  /**
   * Only for a workbook: returns the number of its sheets after `bytes` was read. The import reads only the first
   * sheet.
   */
  countSheets?: () => number;
}

/**
 * What a file in a folder or an archive may contain, as far as its name and its first bytes show:
 * - `records`: the file is read. If it contains no readable record, the import reports a problem.
 * - `text`: the file is read. If its format is unknown, it contains no records, e.g. because it explains other files.
 * - `other`: the file is not read, because it contains no records, e.g. because it is a picture.
 */
export type FileContentKind = 'records' | 'text' | 'other';

/** Matches the names of files that usually contain records, e.g. `ads.csv`. */
const recordFileNamePattern = /\.(?:csv|tsv|tab|json|jsonl|ndjson|xlsx?|zip|gz)$/i;
/** Matches the names of files that may contain records in a format that an import cannot read. */
const unreadableFileNamePattern =
  /\.(?:xlsb|ods|numbers|parquet|feather|arrow|avro|rds|rdata|rda|sav|dta|pkl|pickle|7z|rar|tar|tgz|tar\.gz|bz2|xz|zst)$/i;
/** Matches names without an extension or with `.txt`. Such files may contain records or any other text. */
const textFileNamePattern = /(?:\.txt|(?:^|[/\\])[^./\\]+)$/i;
/** Matches the names of hidden files, the metadata files of macOS, and the lock files of Microsoft Office. */
const hiddenFileNamePattern = /(?:^|[/\\])(?:\.|__MACOSX[/\\]|~\$)/;

function guessContentKind(name: string): FileContentKind {
  if (hiddenFileNamePattern.test(name)) return 'other';
  if (recordFileNamePattern.test(name) || unreadableFileNamePattern.test(name)) return 'records';
  return textFileNamePattern.test(name) ? 'text' : 'other';
}

const unreadableProblem =
  'a file of this type may contain ads, but an import cannot read it; save it as CSV, JSON or .xlsx, and import the new file';

/** The maximum nesting depth of ZIP archives. An archive may contain archives that contain no further archives. */
const maxArchiveDepth = 2;
/**
 * The maximum size of a workbook in bytes, compressed and uncompressed. A workbook must be read as a whole, so these
 * limits bound the memory usage.
 */
const maxWorkbookBytes = { compressed: 100e6, uncompressed: 500e6 };
/** A file to import. `byteCount` is undefined if the size is unknown, e.g. for standard input. */
export interface ListedFile {
  path: string;
  contentKind: FileContentKind;
  byteCount: number | undefined;
}

/**
 * Lists the files to import, in the order of the arguments. For a folder, lists all files in it, sorted by name.
 * Numbers in names are sorted by their value, so that the file with the newest date in its name comes last.
 * @throws Error if a file does not exist
 */
export async function listFiles(paths: readonly string[]): Promise<ListedFile[]> {
  const listedFiles: ListedFile[] = [];
  for (const path of paths) {
    if (path === '-') {
      listedFiles.push({ path, byteCount: undefined, contentKind: 'records' });
      continue;
    }
    const stats = await stat(path);
    if (!stats.isDirectory()) listedFiles.push({ path, byteCount: stats.size, contentKind: 'records' });
    else
      for (const name of (await listFilesInFolder(path)).sort(compareNames)) {
        const contentKind = guessContentKind(name);
        const fileStats = await stat(join(path, name)).catch(() => undefined);
        if (fileStats?.isFile())
          listedFiles.push({
            path: join(path, name),
            byteCount: contentKind === 'other' ? 0 : fileStats.size,
            contentKind,
          });
      }
  }
  return listedFiles;
}

/**
 * Lists the files in a folder and its subfolders. Ignores links to folders that were already listed, because a link to
 * a parent folder would otherwise lead to the same files again and again.
 */
async function listFilesInFolder(folder: string, listedFolders = new Set<string>()): Promise<string[]> {
  const realFolder = await realpath(folder);
  if (listedFolders.has(realFolder)) return [];
  listedFolders.add(realFolder);
  const fileNames: string[] = [];
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const isFolder = entry.isSymbolicLink()
      ? ((await stat(join(folder, entry.name)).catch(() => undefined))?.isDirectory() ?? false)
      : entry.isDirectory();
    if (!isFolder) fileNames.push(entry.name);
    else
      for (const name of await listFilesInFolder(join(folder, entry.name), listedFolders))
        fileNames.push(join(entry.name, name));
  }
  return fileNames;
}

const { compare: compareNames } = new Intl.Collator('en', { numeric: true });

/**
 * Reads a file in chunks. The file is only opened when the caller requests the first chunk, so that many files can be
 * listed without opening them.
 */
export async function* readFileLazily(path: string): AsyncGenerator<Uint8Array> {
  yield* createReadStream(path);
}

/**
 * Opens a file, and yields the files in it: each entry of a ZIP archive, or the first sheet of a workbook as CSV.
 * Yields any other file itself. The caller must read each file before requesting the next one.
 */
export async function* openFile(file: SourceFile, archiveDepth = 0): AsyncGenerator<SourceFile> {
  const { name, bytes } = file;
  if (file.contentKind === 'other') {
    yield file;
    return;
  }
  const fileStartOrError = await readFirstBytes(bytes).catch((error: unknown) => {
    if (error instanceof UnreadableSourceError) return error;
    throw error;
  });
  const createRecordsFile = (recordBytes: AsyncIterable<Uint8Array>): SourceFile => ({
    ...{ name, bytes: recordBytes, contentKind: 'records' },
  });
  // If the first bytes of the file cannot be read, yield a file that throws the error when it is read. The caller then
  // reports the error and continues with the next file of the archive.
  if (fileStartOrError instanceof UnreadableSourceError) {
    yield createRecordsFile(throwWhenRead(fileStartOrError.message));
    return;
  }
  const { firstBytes, allBytes } = fileStartOrError;
  // Decompress only archives and workbooks here. Other compressed files are decompressed when their text is read.
  if (firstBytes.readUInt16BE(0) === gzipSignature && /\.(?:zip|xlsx)\.gz$/i.test(name)) {
    yield* openFile({ ...file, bytes: decompress(allBytes) }, archiveDepth);
    return;
  }
  const firstEntryName = readFirstEntryName(firstBytes);
  if (firstEntryName === undefined) {
    const isOldWorkbook = firstBytes.readUInt32BE(0) === oldWorkbookSignature;
    if (isOldWorkbook) yield createRecordsFile(throwWhenRead(oldWorkbookProblem));
    else if (unreadableFileNamePattern.test(name)) yield createRecordsFile(throwWhenRead(unreadableProblem));
    else yield { ...file, bytes: allBytes, ...(startsLikeJson(firstBytes) && { contentKind: 'records' }) };
  } else if (/^(?:\[Content_Types\]\.xml|_rels\/|docProps\/|xl\/)/.test(firstEntryName)) {
    let sheetCount = 1;
    const sheetRows = readWorkbook(allBytes, (count) => {
      sheetCount = count;
    });
    yield { ...createRecordsFile(sheetRows), countSheets: () => sheetCount };
  } else if (archiveDepth >= maxArchiveDepth) {
    yield createRecordsFile(throwWhenRead('too many ZIP archives inside each other; unpack them first'));
  } else {
    let hasRecords = false;
    const archive = new ZipArchive(allBytes);
    for await (const entry of archive.readEntries()) {
      if (entry.name.endsWith('/')) continue;
      const contentKind = guessContentKind(entry.name);
      hasRecords ||= contentKind !== 'other';
      yield* openFile({ name: `${name}/${entry.name}`, bytes: entry.bytes, contentKind }, archiveDepth + 1);
    }
    const problem = archive.findProblem();
    if (problem !== undefined) yield createRecordsFile(throwWhenRead(problem));
    else if (!hasRecords) yield createRecordsFile(throwWhenRead('a ZIP archive without CSV, JSON or Excel files'));
  }
}

/** Returns true if a file seems to start with a JSON record or a list of records. */
const startsLikeJson = (firstBytes: Buffer): boolean =>
  /^\W{0,20}[{[][\s\0]*["'{[]/.test(firstBytes.toString('latin1', 0, 200));

// biome-ignore lint/correctness/useYield: the error must reach the reader of the file, who reports it
async function* throwWhenRead(problem: string): AsyncGenerator<Uint8Array> {
  throw new UnreadableSourceError(problem);
}

/** The first two bytes of a file that is compressed with gzip. */
const gzipSignature = 0x1f8b;

/** The first four bytes of a workbook in the `.xls` format, which Excel used before 2007. */
const oldWorkbookSignature = 0xd0cf11e0;
const oldWorkbookProblem = 'a workbook in the old format .xls; save it as .xlsx or CSV, and import the new file';

/**
 * Reads the first bytes of a file, from which the caller detects the format: at least 1 KB if the file is long enough.
 */
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
  return { firstBytes: Buffer.concat([firstBytes, Buffer.alloc(4)]), allBytes: iterateAll() };
}

/** Returns the name of the first entry if the file is a ZIP archive. Returns undefined for any other file. */
function readFirstEntryName(firstBytes: Buffer): string | undefined {
  if (firstBytes.length < 34 || firstBytes.readUInt32LE(0) !== 0x04034b50) return undefined;
  return firstBytes.toString('utf8', 30, 30 + firstBytes.readUInt16LE(26));
}

/**
 * Reads the first sheet of a workbook, and yields each row as one line of CSV.
 * @param onSheetsCounted called with the number of sheets before the first row is yielded
 */
async function* readWorkbook(
  bytes: AsyncIterable<Uint8Array>,
  onSheetsCounted: (count: number) => void,
): AsyncGenerator<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let byteCount = 0;
  for await (const chunk of bytes) {
    byteCount += chunk.length;
    if (byteCount > maxWorkbookBytes.compressed) throw new UnreadableSourceError(tooLargeWorkbookProblem);
    chunks.push(chunk);
  }
  const workbook = Buffer.concat(chunks);
  const { unzipSync } = await import('fflate');
  let uncompressedByteCount = 0;
  let sheetCount = 0;
  let rows: unknown[][];
  try {
    unzipSync(workbook, {
      filter({ name, originalSize }) {
        uncompressedByteCount += originalSize;
        if (/^xl\/worksheets\/[^/]+\.xml$/i.test(name)) sheetCount++;
        return false;
      },
    });
    if (uncompressedByteCount > maxWorkbookBytes.uncompressed) throw new UnreadableSourceError(tooLargeWorkbookProblem);
    onSheetsCounted(sheetCount);
    const damage = await findWorkbookDamage(workbook);
    if (damage !== undefined) throw new UnreadableSourceError(damage);
    const { readSheet } = await import('read-excel-file/universal');
    const workbookBytes = workbook.buffer.slice(workbook.byteOffset, workbook.byteOffset + workbook.byteLength);
    rows = await readSheet(workbookBytes as ArrayBuffer, { parseNumber: formatWorkbookNumber });
  } catch (error) {
    if (error instanceof UnreadableSourceError) throw error;
    throw new UnreadableSourceError(`not a workbook that can be read (${(error as Error).message}); save it as CSV`);
  }
  for (const row of rows) {
    const isEmpty = row.every((cell) => cell === null || cell === '');
    yield Buffer.from(`${isEmpty ? '' : row.map(formatCsvCell).join(',')}\n`);
  }
}

/**
 * Checks a workbook, which is a ZIP archive, for damage. Returns a message about the damage, or undefined if there is
 * none.
 */
async function findWorkbookDamage(workbookBytes: Buffer): Promise<string | undefined> {
  const archive = new ZipArchive(toIterable(workbookBytes));
  try {
    for await (const { bytes } of archive.readEntries()) for await (const _ of bytes);
  } catch (error) {
    if (error instanceof UnreadableSourceError) return error.message;
    throw error;
  }
  return archive.findProblem();
}

async function* toIterable<Item>(item: Item): AsyncGenerator<Item> {
  yield item;
}

const tooLargeWorkbookProblem =
  'a workbook that is too large to be read as a whole; save it as CSV, and import the CSV file';

/**
 * Formats the number of a workbook cell as text. A workbook always stores a decimal point, but in a table, `11.305` could
 * also mean 11305. Therefore writes a fourth decimal: `11.3050` has only one meaning. A number in a column of texts gets
 * the fourth decimal, too.
 *
 * Spreadsheets store only 15 digits of a number. A longer number is probably an id that has lost its last digits.
 * Therefore writes it in exponential notation, so that nobody mistakes it for the id. An id that the workbook stores as
 * text has all of its digits.
 */
function formatWorkbookNumber(storedNumber: string): string {
  if (/^\d{15,}0$/.test(storedNumber) && Number(storedNumber) > 0) return Number(storedNumber).toExponential();
  return /^-?\d{1,3}\.\d{3}$/.test(storedNumber) ? `${storedNumber}0` : storedNumber;
}

/** Formats a workbook cell as a CSV cell. */
function formatCsvCell(cell: unknown): string {
  if (cell === null || cell === undefined) return '';
  if (cell instanceof Date) return cell.toISOString();
  return `"${String(cell)
    .replaceAll(/\r\n?|\n/g, cellLineBreak)
    .replaceAll('"', '""')}"`;
}
