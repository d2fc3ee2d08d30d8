import { hash, randomUUID } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { NamedTurns, tooBusy } from '../memory-state.ts';
import type { Turns } from '../state.ts';

/** How long the turn of a process that is not seen any more is kept free for it, and how often one renews it. */
const LEASE_MS = 10_000;
const RENEW_MS = 3000;
/** The file of a turn that ends meanwhile is not made anew. */
const onlyIfThere = { flag: 'r+' };
/** How often one looks whether a turn is free. */
const LOOK_MS = 100;

/** Turns over all processes that use a folder. Each is a file while it lasts; that of a process that ended is free. */
export class FileTurns implements Turns {
  readonly #folder: string;
  /** Within this process, so that only one of its calls has to look. */
  readonly #own = new NamedTurns();

  /** @param files the folder that a person chose */
  constructor(files: string) {
    this.#folder = join(files, 'turns');
  }

  async take(name: string, signal: AbortSignal): Promise<() => void> {
    const endOwn = await this.#own.take(name, signal);
    try {
      const end = await this.#lease(join(this.#folder, hash('sha256', name).slice(0, 32)), signal);
      return () => {
        end();
        endOwn();
      };
    } catch (error) {
      endOwn();
      throw error;
    }
  }

  async #lease(path: string, signal: AbortSignal): Promise<() => void> {
    const owner = `${process.pid} ${randomUUID()}`;
    let known = '';
    for (let unchangedMs = 0; ; unchangedMs += LOOK_MS) {
      const taken = await this.#create(path, owner);
      // Where nothing can be written, nothing is kept either that others could read.
      if (taken === 'impossible') return () => {};
      if (taken === 'mine') break;
      const note = noteAt(path);
      if (note !== known) unchangedMs = 0;
      known = note;
      if (hasEnded(note) || unchangedMs >= LEASE_MS) removeIf(path, note);
      else
        await wait(LOOK_MS, undefined, { signal }).catch(() => {
          throw tooBusy();
        });
    }
    let renewals = 0;
    const renewal = setInterval(() => {
      if (noteAt(path).startsWith(owner)) void writeFile(path, `${owner} ${++renewals}`, onlyIfThere).catch(() => {});
    }, RENEW_MS).unref();
    return () => {
      clearInterval(renewal);
      removeIf(path, owner);
    };
  }

  async #create(path: string, owner: string): Promise<'mine' | 'taken' | 'impossible'> {
    try {
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    } catch {
      return 'impossible';
    }
    return writeFile(path, owner, { flag: 'wx', mode: 0o600 }).then(
      () => 'mine',
      ({ code }: NodeJS.ErrnoException) => (code === 'EEXIST' ? 'taken' : 'impossible'),
    );
  }
}

/** The number of the process whose turn it is, a name of that, and how often it was renewed. */
function noteAt(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Unless it was renewed or changed hands meanwhile. At once, since the process may end now. */
function removeIf(path: string, note: string): void {
  if (noteAt(path).startsWith(note)) rmSync(path, { force: true });
}

/** Whether its process is gone from this machine; one that runs elsewhere is known by its renewals. */
function hasEnded(note: string): boolean {
  const [pid] = /^\d+/.exec(note) ?? [];
  if (pid === undefined) return false;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}
