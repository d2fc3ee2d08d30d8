import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe } from 'vitest';
import { freePort } from './free-port.ts';

const [user, password, database] = ['ad_library', 'not a secret: p@ss/word', 'postgres'];

/** Where something listens, as the server is given it. */
export interface PostgresEndpoint {
  url: string;
  port: number;
  user: string;
  password: string;
  database: string;
}

/** A real server that lives as long as a test. */
export interface PostgresServer extends PostgresEndpoint {
  /** Ends it at once, without a word to anybody, or stops and continues it, as a machine in trouble would. */
  kill(): Promise<void>;
  pause(): void;
  resume(): void;
  /** Starts it again on the same port, with what was committed. */
  restart(): Promise<void>;
  /** What `psql` prints for a statement. */
  sql(statement: string): string;
  close(): Promise<void>;
}

const installed = '/usr/lib/postgresql';
const folders = existsSync(installed) ? readdirSync(installed).map((version) => join(installed, version, 'bin')) : [];
/** Debian leaves what starts a server out of the path. */
const programs = folders.toSorted().at(-1) ?? '';
const hasProgram = (program: string) => {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};
export const hasPostgres = hasProgram(join(programs, 'initdb')) && hasProgram('pgbouncer');

/** Tests with a real server. Where there is none they are skipped, unless the environment asks for them. */
export function describeWithPostgres(name: string, tests: () => void): void {
  if (!hasPostgres && process.env.AD_LIBRARY_TEST_POSTGRES !== 'required') {
    const reason = 'install postgresql and pgbouncer, packages of Debian, to run these tests';
    describe.skip(`${name} (skipped: ${reason})`, tests);
  } else describe(name, tests);
}

/** Both programs refuse to run as root, under which containers run tests. */
const identity = process.getuid?.() === 0 ? { uid: idOf('-u'), gid: idOf('-g') } : {};
function idOf(flag: string): number {
  return Number(execFileSync('id', [flag, 'nobody']));
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'ad-library-postgres-'));
  if (identity.uid !== undefined) chownSync(folder, identity.uid, identity.gid);
  return folder;
}

const endpoint = (port: number): PostgresEndpoint => ({
  url: `postgres://${user}:${encodeURIComponent(password)}@127.0.0.1:${port}/${database}`,
  ...{ port, user, password, database },
});

/** Resolves when a program writes what it writes once it can be reached. */
async function started(child: ChildProcess, ready: RegExp): Promise<ChildProcess> {
  let written = '';
  await new Promise<void>((resolve, reject) => {
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      written += text;
      if (ready.test(written)) resolve();
    });
    child.once('error', reject);
    child.once('exit', () => reject(new Error(`it ended: ${written}`)));
  });
  return child;
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill(signal);
  await exit;
}

/** One that is durable waits for its disk, with the buffers that it has by default, as in production. */
export async function startPostgres({ isDurable = false } = {}): Promise<PostgresServer> {
  const folder = newFolder();
  const port = await freePort();
  const data = join(folder, 'data');
  const passwordFile = join(folder, 'password');
  writeFileSync(passwordFile, password, { mode: 0o644 });
  const access = ['-U', user, '--pwfile', passwordFile, '-A', 'scram-sha-256'];
  const make = ['-D', data, ...access, '-E', 'UTF8', '--locale=C', '--no-sync', '--no-instructions'];
  execFileSync(join(programs, 'initdb'), make, { ...identity, stdio: 'pipe', cwd: folder });
  const settings = {
    ...(isDurable ? {} : { fsync: 'off', shared_buffers: '16MB' }),
    unix_socket_directories: '',
    listen_addresses: '127.0.0.1',
  };
  const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const begin = () => {
    const args = ['-D', data, '-p', String(port), ...options];
    const child = spawn(join(programs, 'postgres'), args, { ...identity, stdio: ['ignore', 'ignore', 'pipe'] });
    return started(child, /ready to accept connections/);
  };
  let child = await begin();
  /** Each connection has a process of its own. */
  const signalAll = (signal: NodeJS.Signals) => {
    const children = String(execFileSync('ps', ['-o', 'pid=', '--ppid', String(child.pid)]));
    for (const pid of [String(child.pid), ...children.trim().split(/\s+/)]) process.kill(Number(pid), signal);
  };
  // Its processes all end with it; those that a kill would leave behind keep the next one from starting.
  const kill = () => end(child, 'SIGQUIT');
  const { url } = endpoint(port);
  return {
    ...endpoint(port),
    kill,
    pause: () => signalAll('SIGSTOP'),
    resume: () => signalAll('SIGCONT'),
    restart: async () => {
      await kill();
      child = await begin();
    },
    sql: (statement) =>
      String(execFileSync('psql', ['-X', '-A', '-t', '-c', statement, url], { maxBuffer: 1e9 })).trim(),
    close: async () => {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A pooler in front of a server, which lends a connection for one transaction. */
export async function startPgBouncer(port: number): Promise<PostgresEndpoint & { close(): Promise<void> }> {
  const folder = newFolder();
  const own = await freePort();
  const [users, settings] = [join(folder, 'users'), join(folder, 'settings')];
  writeFileSync(users, `"${user}" "${password}"\n`, { mode: 0o644 });
  const text = `
[databases]
* = host=127.0.0.1 port=${port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${own}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${users}
pool_mode = transaction
default_pool_size = 4
`;
  writeFileSync(settings, text, { mode: 0o644 });
  const child = spawn('pgbouncer', [settings], { ...identity, stdio: ['ignore', 'ignore', 'pipe'] });
  await started(child, /process up/);
  const close = async () => {
    await end(child, 'SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  };
  return { ...endpoint(own), close };
}
