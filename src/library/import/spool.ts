import { randomUUID } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** So many characters stay in memory; longer sources go to a file. */
const maxInMemory = 8 * 1024 * 1024;
const chunkLength = 256 * 1024;

/**
 * Lines of text that are written once and then read once. How a source writes its dates and numbers is known only at its
 * end, so all records wait here. A long source waits in a temporary file, which only the user can read.
 */
export class Spool {
  #lines: string[] = [];
  #length = 0;
  #file: { handle: FileHandle; path: string } | undefined;

  async writeLine(line: string): Promise<void> {
    this.#lines.push(line);
    this.#length += line.length + 1;
    if (this.#length > (this.#file ? chunkLength : maxInMemory)) await this.#flush();
  }

  async #flush(): Promise<void> {
    if (!this.#file) {
      const path = join(tmpdir(), `ad-library-import-${randomUUID()}`);
      this.#file = { path, handle: await open(path, 'wx+', 0o600) };
    }
    const readLines = this.#lines;
    this.#lines = [];
    this.#length = 0;
    for (let at = 0; at < readLines.length; at += 1000)
      await this.#file.handle.appendFile(`${readLines.slice(at, at + 1000).join('\n')}\n`);
  }

  /** The lines in their order, some at a time. */
  async *readLines(): AsyncGenerator<string[]> {
    if (this.#file) {
      await this.#flush();
      let rest = '';
      const stream = this.#file.handle.createReadStream({ encoding: 'utf8', start: 0, autoClose: false });
      for await (const chunk of stream) {
        const readLines = (rest + chunk).split('\n');
        rest = readLines.pop() ?? '';
        yield readLines;
      }
    } else yield this.#lines;
  }

  async close(): Promise<void> {
    await this.#file?.handle.close();
    if (this.#file) await rm(this.#file.path, { force: true });
  }
}
