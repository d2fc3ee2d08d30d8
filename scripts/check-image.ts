/**
 * Builds the container image with podman or docker, runs it, and checks everything that docs/operations.md promises:
 * MCP over HTTP and stdio, the health check, a read-only file system without capabilities, a local library on a volume,
 * and shutdown on SIGTERM. Run it with `npm run image:check [-- NODE_IMAGE]`. NODE_IMAGE replaces the base image of the
 * Dockerfile, for machines that cannot download it. IMAGE_BUILD_OPTIONS contains additional options for `build`, such
 * as `--network host`.
 */
import { spawnSync } from 'node:child_process';
import { setTimeout as after } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));
const image = 'ad-library-mcp:check';
const [nodeImage] = process.argv.slice(2);

/** The installed container engine. */
const engine = findEngine();
// Show only the reason of a failure, because the output of the engine precedes it and the stack says nothing more.
process.once('uncaughtException', (error) => fail(error.message));

/**
 * Returns the name of the container engine. buildah alone is not sufficient, because it only builds the image, and this
 * program also starts, stops and inspects containers.
 */
function findEngine(): string {
  const isUsable = (name: string, ...args: string[]) => spawnSync(name, args, { stdio: 'ignore' }).status === 0;
  const usable = ['podman', 'docker'].find((name) => isUsable(name, 'info'));
  if (usable !== undefined) return usable;
  if (isUsable('buildah', '--version'))
    fail('buildah can build the image but cannot run this check; install podman, which uses the same storage');
  const stopped = ['podman', 'docker'].find((name) => isUsable(name, '--version'));
  if (stopped !== undefined) fail(`${stopped} is installed but does not work; "${stopped} info" shows the reason`);
  return fail('no container engine is installed; install podman, or docker with a running daemon');
}

/** Prints the reason and ends the program with exit code 1. */
function fail(reason: string): never {
  process.stderr.write(`image:check: ${reason}\n`);
  process.exit(1);
}

/** Runs the engine and returns its standard output. */
function runEngine(args: string[], input = ''): string {
  const { status, signal, stdout } = spawnSync(engine, args, {
    cwd: root,
    input,
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  if (status !== 0) fail(`"${engine} ${args.join(' ')}" ended with ${signal ?? `exit code ${status}`}`);
  return stdout.trim();
}

const containers: string[] = [];
const volume = `ad-library-check-${process.pid}`;
process.once('exit', () => {
  for (const name of containers) spawnSync(engine, ['rm', '--force', name], { stdio: 'ignore' });
  spawnSync(engine, ['volume', 'rm', '--force', volume], { stdio: 'ignore' });
});

/** Starts a container in the same way as compose.yaml: without capabilities and with a read-only file system. */
function startContainer(name: string, options: string[], command: string[] = []): string {
  const container = `ad-library-check-${name}-${process.pid}`;
  containers.push(container);
  const hardening = ['--read-only', '--cap-drop=ALL', '--security-opt=no-new-privileges'];
  runEngine(['run', '--detach', '--name', container, ...hardening, ...options, image, ...command]);
  return container;
}

/** Returns the port on this machine that is mapped to the container's port 3000. */
const readPort = (container: string): string => runEngine(['port', container, '3000/tcp']).split(':').at(-1) ?? '';

/** Repeats a check until it passes, for at most 30 seconds. */
async function waitFor<Result>(what: string, check: () => Promise<Result>): Promise<Result> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await check();
    } catch (error) {
      if (attempt === 60) throw new Error(`${what}: ${(error as Error).message}`);
      await after(500);
    }
  }
}

function check(condition: boolean, what: string): void {
  if (!condition) throw new Error(what);
  process.stdout.write(`ok: ${what}\n`);
}

const initialize = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'check', version: '1' } },
};
const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'count_ads', arguments: {} } };
/**
 * Returns true for the response to the tool call. The response to `initialize` also mentions demo data, so the id is
 * checked, too.
 */
const isAnswer = (text: string) => /"id":1\b/.test(text) && text.includes('DEMO DATA');

async function post(port: string): Promise<string> {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const response = await fetch(`http://127.0.0.1:${port}/mcp`, { method: 'POST', headers, body: JSON.stringify(call) });
  if (!response.ok) throw new Error(`status ${response.status}`);
  return response.text();
}

const buildArguments = nodeImage === undefined ? [] : ['--build-arg', `NODE_IMAGE=${nodeImage}`];
// The default image format of podman does not support health checks.
const format = engine === 'podman' ? ['--format', 'docker'] : [];
const buildOptions = process.env.IMAGE_BUILD_OPTIONS?.split(' ') ?? [];
runEngine(['build', ...format, ...buildOptions, ...buildArguments, '--tag', image, '.']);
check(runEngine(['run', '--rm', image, '--version']) !== '', 'the image starts the command');
check(runEngine(['run', '--rm', '--entrypoint', 'id', image, '-u']) !== '0', 'the server does not run as root');

const demo = ['-e', 'AD_LIBRARY_DEMO=true'];
const http = startContainer('http', [...demo, '-p', '127.0.0.1::3000']);
check(isAnswer(await waitFor('MCP over HTTP', () => post(readPort(http)))), 'a call over HTTP is answered');
const [inspected] = JSON.parse(runEngine(['image', 'inspect', image]));
// podman and docker report the health check of an image in different places.
const [, ...healthCommand] = (inspected.Healthcheck ?? inspected.Config.Healthcheck).Test;
check(spawnSync(engine, ['exec', http, ...healthCommand]).status === 0, 'the health check of the image passes');
runEngine(['stop', '--time', '15', http]);
check(
  runEngine(['inspect', '--format', '{{.State.ExitCode}}', http]) === '0',
  'the server ends with code 0 after SIGTERM',
);

const session = [initialize, call].map((message) => `${JSON.stringify(message)}\n`).join('');
const overStdio = runEngine(['run', '--rm', '-i', ...demo, image, 'stdio'], session);
check(isAnswer(overStdio), 'a call over stdio is answered after the end of the input');
const files = ['-v', `${volume}:/data`, '-e', 'AD_LIBRARY_FILES=/data/files'];
check(isAnswer(runEngine(['run', '--rm', '-i', ...demo, ...files, image, 'stdio'], session)), 'stdio uses the volume');

const id = '11111111-1111-4111-8111-111111111111';
const onVolume = ['run', '--rm', '-i', '-v', `${volume}:/data`, image, 'library'];
runEngine([...onVolume, 'import', '-'], `${JSON.stringify({ id })}\n`);
const key = runEngine([...onVolume, 'key', 'create', '--unmetered']);
const library = startContainer('library', ['-v', `${volume}:/data`, '-p', '127.0.0.1::3000'], ['library', 'serve']);
const ad = await waitFor('the library', async () => {
  const headers = { authorization: `Bearer ${key}` };
  const response = await fetch(`http://127.0.0.1:${readPort(library)}/v1/ads/${id}`, { headers });
  if (!response.ok) throw new Error(`status ${response.status}`);
  return response.text();
});
check(ad.includes(id), 'a local library outlives its container on the volume');
