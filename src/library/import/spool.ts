import { randomUUID } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * The maximum number of characters to keep in memory. If a source is longer, its records are written to a temporary
 * file.
 */
const maxCharactersInMemory = 8 * 1024 * 1024;
/**
 * The number of characters to collect in memory before a write to the temporary file. A few large writes are faster
 * than many small writes.
 */
const maxBufferedCharacters = 256 * 1024;
const linesPerWrite = 1000;

/**
 * Stores lines of text for a second pass. An import must read the whole source before it knows how each column writes
 * dates and numbers, so it stores all records here in the meantime. Many records go into a temporary file that only the
 * current user can read.
 */
export class LineSpool {
  #bufferedLines: string[] = [];
  #bufferedLength = 0;
  #file: { handle: FileHandle; path: string } | undefined;

  /** Appends a line, which must not contain a line break. */
  async writeLine(line: string): Promise<void> {
    this.#bufferedLines.push(line);
    this.#bufferedLength += line.length + 1;
    if (this.#bufferedLength > (this.#file ? maxBufferedCharacters : maxCharactersInMemory)) await this.#flush();
  }

  /** @throws Error that names the temporary folder if the temporary file cannot be written */
  async #flush(): Promise<void> {
    try {
      await this.#writeBufferedLines();
    } catch (error) {
      throw new Error(
        `The temporary folder ${tmpdir()} cannot be written (${(error as Error).message}). Free space there, or set TMPDIR (on Windows, TEMP) for the process that stores the records, which is library serve if it runs.`,
        { cause: error },
      );
    }
  }

  async #writeBufferedLines(): Promise<void> {
    if (!this.#file) {
      const path = join(tmpdir(), `ad-library-import-${randomUUID()}`);
      this.#file = { path, handle: await open(path, 'wx+', 0o600) };
      // Delete the open file now, so that no file remains if a signal ends the process. Where an open file cannot be
      // deleted, `close` deletes it.
      await rm(path, { force: true }).catch(() => {});
    }
    const lines = this.#bufferedLines;
    this.#bufferedLines = [];
    this.#bufferedLength = 0;
    for (let start = 0; start < lines.length; start += linesPerWrite)
      await this.#file.handle.appendFile(`${lines.slice(start, start + linesPerWrite).join('\n')}\n`);
  }

  /** Yields all lines in batches, in the order in which they were written. */
  async *readLines(): AsyncGenerator<string[]> {
    if (this.#file) {
      await this.#flush();
      let incompleteLine = '';
      const stream = this.#file.handle.createReadStream({ encoding: 'utf8', start: 0, autoClose: false });
      for await (const chunk of stream) {
        const lines = (incompleteLine + chunk).split('\n');
        incompleteLine = lines.pop() ?? '';
        yield lines;
      }
    } else yield this.#bufferedLines;
  }

  /** Deletes the temporary file, if there is one. */
  async close(): Promise<void> {
    await this.#file?.handle.close();
    if (this.#file) await rm(this.#file.path, { force: true });
  }
}
