import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe } from 'vitest';
import { freePort } from './free-port.ts';

/** A real server that keeps nothing on disk but what `SAVE` writes. */
export interface RedisServer {
  url: string;
  port: number;
  /** Ends it at once, or stops and continues it, as a machine in trouble would. */
  kill(): Promise<void>;
  pause(): void;
  resume(): void;
  /** Starts it again on the same port, with what was last saved: nothing, without `SAVE`. */
  restart(): Promise<void>;
  /** What `redis-cli` prints for a command. */
  cli(...args: string[]): string;
  close(): Promise<void>;
}

export const hasRedis = (() => {
  try {
    execFileSync('redis-server', ['--version']);
    return true;
  } catch {
    return false;
  }
})();

/** Tests with a real server. Where there is none they are skipped, unless the environment asks for them. */
export function describeWithRedis(name: string, tests: () => void): void {
  if (!hasRedis && process.env.AD_LIBRARY_TEST_REDIS !== 'required') {
    describe.skip(`${name} (skipped: install redis-server, a package of Debian, to run these tests)`, tests);
  } else describe(name, tests);
}

export async function startRedis(options: readonly string[] = [], tls?: Certificate): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), 'ad-library-redis-'));
  const port = await freePort();
  let child = await begin();

  async function begin(): Promise<ChildProcess> {
    const args = [...argumentsOf(tls, port), '--bind', '127.0.0.1', '--dir', folder, ...options];
    const started = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    await new Promise<void>((resolve, reject) => {
      started.stdout.setEncoding('utf8').on('data', (text: string) => {
        said += text;
        if (/Ready to accept connections/.test(said)) resolve();
      });
      started.once('error', reject);
      started.once('exit', () => reject(new Error(`redis-server ended: ${said}`)));
    });
    return started;
  }

  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  };
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    kill,
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    restart: async () => {
      await kill();
      child = await begin();
    },
    cli: (...args) => String(execFileSync('redis-cli', ['-p', String(port), ...args], { maxBuffer: 1e9 })).trim(),
    close: async () => {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The files of a server that requires TLS. */
interface Certificate {
  key: string;
  certificate: string;
}

function argumentsOf(tls: Certificate | undefined, port: number): string[] {
  const inMemory = ['--save', '', '--appendonly', 'no'];
  if (!tls) return ['--port', String(port), ...inMemory];
  const files = ['--tls-cert-file', tls.certificate, '--tls-key-file', tls.key, '--tls-auth-clients', 'no'];
  return ['--port', '0', '--tls-port', String(port), ...files, ...inMemory];
}
