import { mkdir, open, readFile, rename, rm, rmdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

/**
 * One process owns a database file. Its note beside the file, `<database>.owner`, says who that is, and, when it
 * serves, where and with which token the other commands can ask it to act for them.
 */
export type Owner = { pid: number; token: string; url: string | null };

export type Claim = {
  /** Says where the owner serves from now on; null: no longer, though it still has the file open. */
  announce(url: string | null): Promise<void>;
  release(): Promise<void>;
};

/** The file is in the hands of a process that lives. */
export class InUse extends Error {
  readonly owner: Owner;

  constructor(database: string, owner: Owner) {
    super(
      `${database} is in use by process ${owner.pid}. Wait until it ends; if that process is no ad-library-mcp, delete ${noteOf(database)}.`,
    );
    this.owner = owner;
  }
}

const noteOf = (database: string) => `${database}.owner`;

/** Notes of this process: after a restart in a container another process may have had the same id. */
const held = new Set<string>();

/**
 * Takes a database file for this process. What a dead owner left behind is cleared away: its note, and the lock folder
 * of the engine, which a killed process cannot remove.
 * @throws InUse when its owner lives
 */
export async function claim(database: string, token: string): Promise<Claim> {
  const note = noteOf(database);
  await alone(`${database}.claim`, async () => {
    const owner = await readOwner(database);
    if (owner && (await lives(owner))) throw new InUse(database, owner);
    await rm(`${database}.lock`, { recursive: true, force: true });
    await write(note, { pid: process.pid, token, url: null });
  });
  held.add(token);
  return {
    announce: (url) => write(note, { pid: process.pid, token, url }),
    async release() {
      held.delete(token);
      await rm(note, { force: true });
    },
  };
}

/** Who the note names; undefined without a note, or with one cut short by a power cut. */
async function readOwner(database: string): Promise<Owner | undefined> {
  try {
    const { pid, token, url } = JSON.parse(await readFile(noteOf(database), 'utf8'));
    return Number.isInteger(pid) && typeof token === 'string' ? { pid, token, url: url ?? null } : undefined;
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * Whether an owner is still there. A process that is gone is not; one that serves must also know its token, since its
 * id may belong to another program by now. One that is too busy to answer counts as alive.
 */
async function lives(owner: Owner): Promise<boolean> {
  if (!processExists(owner.pid)) return false;
  if (owner.pid === process.pid) return held.has(owner.token);
  if (owner.url === null) return true;
  try {
    const response = await fetch(`${owner.url}/-/owner`, {
      headers: { Authorization: `Bearer ${owner.token}` },
      signal: AbortSignal.timeout(5_000),
    });
    return response.ok;
  } catch (error) {
    return (error as { cause?: { code?: string } }).cause?.code !== 'ECONNREFUSED';
  }
}

function processExists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Whole or not at all, readable by this user alone: the token opens the database to whoever has it. */
async function write(note: string, owner: Owner): Promise<void> {
  const draft = `${note}.${owner.token.slice(0, 8)}`;
  const file = await open(draft, 'w', 0o600);
  await file.writeFile(JSON.stringify(owner));
  await file.close();
  await rename(draft, note);
}

/** A claim takes milliseconds: a folder that still stands after so many waits was left by a process that died in it. */
const mostWaits = 500;

/** Two processes that find the same dead owner must not both take its place. The folder is the lock between them. */
async function alone(folder: string, work: () => Promise<void>): Promise<void> {
  for (let waits = 0; !(await made(folder)); waits++) {
    if (waits === mostWaits) await rmdir(folder).catch(() => {});
    await pause(20);
  }
  try {
    await work();
  } finally {
    await rmdir(folder).catch(() => {});
  }
}

async function made(folder: string): Promise<boolean> {
  try {
    await mkdir(folder);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return false;
    throw new Error(
      `The database cannot be kept in ${dirname(folder)}: ${code === 'ENOENT' ? 'there is no such folder' : code}.`,
    );
  }
}
