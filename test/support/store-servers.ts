import { type ChildProcess, execFileSync, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe } from 'vitest';
import { findFreePort } from './loopback.ts';

const isInstalled = (...binFolder: string[]) =>
  binFolder.every((program) => {
    try {
      execFileSync(program, ['--version'], { stdio: 'ignore' });
      return true;
    } catch {
      return false;
    }
  });

/**
 * Defines tests that need an installed server program. Without the program, the tests are skipped, or fail if the
 * environment variable is `required`.
 */
const describeWith =
  (isAvailable: boolean, variable: string, packages: string) =>
  (name: string, tests: () => void): void => {
    if (isAvailable || process.env[variable] === 'required') describe(name, tests);
    else describe.skip(`${name} (skipped: install ${packages} of Debian to run these tests)`, tests);
  };

/** Starts a program. Resolves when its output matches `readyPattern`, which means that it accepts connections. */
async function startProgram(program: string, args: string[], readyPattern: RegExp, options: SpawnOptions = {}) {
  const child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        output += text;
        if (readyPattern.test(output)) resolve();
      });
    child.once('error', reject);
    child.once('exit', () => reject(new Error(`${program} ended: ${output}`)));
  });
  return child;
}

interface ServerProgram {
  folder: string;
  startProcess(): Promise<ChildProcess>;
  /** The signal that ends the program and its child processes, which would otherwise prevent a restart. */
  endSignal: NodeJS.Signals;
  listChildProcesses?(pid: number | undefined): number[];
}

/** Runs a server program that a test can kill, pause and restart. */
async function runFaultyServer({ folder, startProcess, endSignal, listChildProcesses = () => [] }: ServerProgram) {
  let child = await startProcess();
  const signalAll = (signal: NodeJS.Signals) => {
    const children = listChildProcesses(child.pid);
    child.kill(signal);
    for (const pid of children) process.kill(pid, signal);
  };
  /** Kills the program without an orderly shutdown. */
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, 'exit');
    child.kill(endSignal);
    await exit;
  };
  return {
    kill,
    pause: () => signalAll('SIGSTOP'),
    resume: () => signalAll('SIGCONT'),
    /** Kills and restarts the program on the same port, with the data on its disk. */
    restart: async () => {
      await kill();
      child = await startProcess();
    },
    close: async () => {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** True if `redis-server` is installed. */
export const hasRedis = isInstalled('redis-server');
/** Defines tests that need Redis. */
export const describeWithRedis = describeWith(hasRedis, 'AD_LIBRARY_TEST_REDIS', 'redis-server, a package');

/** A running Redis server. */
export type RedisServer = Awaited<ReturnType<typeof startRedis>>;

/**
 * Starts a Redis server that writes to its disk only on `SAVE`.
 * @param tls the paths of the key and the certificate, for a server that requires TLS
 */
export async function startRedis(options: readonly string[] = [], tls?: Record<'key' | 'certificate', string>) {
  const folder = mkdtempSync(join(tmpdir(), 'ad-library-redis-'));
  const port = await findFreePort();
  const listenOptions = tls
    ? [
        ...['--port', '0', '--tls-port', String(port), '--tls-auth-clients', 'no'],
        ...['--tls-cert-file', tls.certificate, '--tls-key-file', tls.key],
      ]
    : ['--port', String(port)];
  const memoryOptions = ['--save', '', '--appendonly', 'no'];
  const args = [...listenOptions, ...memoryOptions, '--bind', '127.0.0.1', '--dir', folder, ...options];
  const startProcess = () => startProgram('redis-server', args, /Ready to accept connections/);
  return {
    ...(await runFaultyServer({ folder, startProcess, endSignal: 'SIGKILL' })),
    url: `redis://127.0.0.1:${port}`,
    port,
    cli: (...redisArgs: string[]) =>
      String(execFileSync('redis-cli', ['-p', String(port), ...redisArgs], { maxBuffer: 1e9 })).trim(),
  };
}

const postgresFolder = '/usr/lib/postgresql';
const programFolders = existsSync(postgresFolder)
  ? readdirSync(postgresFolder).map((version) => join(postgresFolder, version, 'bin'))
  : [];
/** Debian installs the PostgreSQL server programs outside `PATH`. */
const programFolder = programFolders.toSorted().at(-1) ?? '';
/** True if PostgreSQL and PgBouncer are installed. */
export const hasPostgres = isInstalled(join(programFolder, 'initdb'), 'pgbouncer');
/** Defines tests that need PostgreSQL. */
export const describeWithPostgres = describeWith(
  hasPostgres,
  'AD_LIBRARY_TEST_POSTGRES',
  'postgresql and pgbouncer, packages',
);

/** The user for PostgreSQL and PgBouncer, which refuse to run as root. Tests in containers run as root. */
const nobodyIds = process.getuid?.() === 0 ? { uid: readNobodyId('-u'), gid: readNobodyId('-g') } : {};
function readNobodyId(flag: string): number {
  return Number(execFileSync('id', [flag, 'nobody']));
}

function createServerFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'ad-library-postgres-'));
  if (nobodyIds.uid !== undefined) chownSync(folder, nobodyIds.uid, nobodyIds.gid);
  return folder;
}

const login = { user: 'ad_library', password: 'not a secret: p@ss/word', database: 'postgres' };

/** Returns the URL and the login of a PostgreSQL server. */
const buildConnectionDetails = (port: number) => ({
  url: `postgres://${login.user}:${encodeURIComponent(login.password)}@127.0.0.1:${port}/${login.database}`,
  ...{ port, ...login },
});

/** A running PostgreSQL server. */
export type PostgresServer = Awaited<ReturnType<typeof startPostgres>>;

/** Starts a PostgreSQL server. With `isDurable`, it syncs to its disk and uses the default buffers, as in production. */
export async function startPostgres({ isDurable = false } = {}) {
  const folder = createServerFolder();
  const port = await findFreePort();
  const dataFolder = join(folder, 'data');
  const passwordFile = join(folder, 'password');
  writeFileSync(passwordFile, login.password, { mode: 0o644 });
  const authenticationOptions = ['-U', login.user, '--pwfile', passwordFile, '-A', 'scram-sha-256'];
  const initdbArgs = [
    '-D',
    dataFolder,
    ...authenticationOptions,
    '-E',
    'UTF8',
    '--locale=C',
    '--no-sync',
    '--no-instructions',
  ];
  execFileSync(join(programFolder, 'initdb'), initdbArgs, { ...nobodyIds, stdio: 'pipe', cwd: folder });
  const settings = {
    ...(isDurable ? {} : { fsync: 'off', shared_buffers: '16MB' }),
    unix_socket_directories: '',
    listen_addresses: '127.0.0.1',
  };
  const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const args = ['-D', dataFolder, '-p', String(port), ...options];
  const startProcess = () =>
    startProgram(join(programFolder, 'postgres'), args, /ready to accept connections/, nobodyIds);
  /** PostgreSQL runs one process for each connection. */
  const listChildProcesses = (pid: number | undefined) =>
    String(execFileSync('ps', ['-o', 'pid=', '--ppid', String(pid)]))
      .trim()
      .split(/\s+/)
      .map(Number);
  return {
    ...buildConnectionDetails(port),
    ...(await runFaultyServer({ folder, startProcess, endSignal: 'SIGQUIT', listChildProcesses })),
    sql: (statement: string) =>
      String(
        execFileSync('psql', ['-X', '-A', '-t', '-c', statement, buildConnectionDetails(port).url], { maxBuffer: 1e9 }),
      ).trim(),
  };
}

/** Starts PgBouncer in front of a server, in transaction pooling mode. */
export async function startPgBouncer(port: number) {
  const folder = createServerFolder();
  const poolerPort = await findFreePort();
  const [users, settings] = [join(folder, 'users'), join(folder, 'settings')];
  writeFileSync(users, `"${login.user}" "${login.password}"\n`, { mode: 0o644 });
  const text = `
[databases]
* = host=127.0.0.1 port=${port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${poolerPort}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${users}
pool_mode = transaction
default_pool_size = 4
`;
  writeFileSync(settings, text, { mode: 0o644 });
  const startProcess = () => startProgram('pgbouncer', [settings], /process up/, nobodyIds);
  const { close } = await runFaultyServer({ folder, startProcess, endSignal: 'SIGKILL' });
  return { ...buildConnectionDetails(poolerPort), close };
}
