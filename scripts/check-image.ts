/**
 * Builds the container image with podman or docker, runs it, and checks everything that docs/operations.md promises:
 * MCP over HTTP and stdio, the health check, a read-only file system without capabilities, a local library on a volume,
 * and shutdown on SIGTERM. Run it with `npm run image:check [-- NODE_IMAGE]`. NODE_IMAGE replaces the base image of the
 * Dockerfile, for machines that cannot download it. IMAGE_BUILD_OPTIONS contains additional options for `build`, such
 * as `--network host`.
 */
import { spawnSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));
const image = 'ad-library-mcp:check';
const [baseImage] = process.argv.slice(2);

/** The name of the installed container engine: `podman` or `docker`. */
const engine = findEngine();
// Show only the message of a failure. The container engine has already printed its error, and a stack trace would not
// help the reader.
process.once('uncaughtException', (error) => fail(error.message));

/**
 * Returns the name of an installed container engine: `podman` or `docker`. buildah is not sufficient, because it
 * can only build images and run single commands. This program also publishes ports, and stops and inspects containers.
 */
function findEngine(): string {
  const isUsable = (program: string, ...args: string[]) => spawnSync(program, args, { stdio: 'ignore' }).status === 0;
  const usableEngine = ['podman', 'docker'].find((name) => isUsable(name, 'info'));
  if (usableEngine !== undefined) return usableEngine;
  if (isUsable('buildah', '--version'))
    fail('buildah can build the image but cannot run this check; install podman, which uses the same storage');
  const stoppedEngine = ['podman', 'docker'].find((name) => isUsable(name, '--version'));
  if (stoppedEngine !== undefined)
    fail(`${stoppedEngine} is installed but does not work; "${stoppedEngine} info" shows the reason`);
  return fail('no container engine is installed; install podman, or docker with a running daemon');
}

/** Prints the reason why a check failed, and ends the program with exit code 1. */
function fail(reason: string): never {
  process.stderr.write(`image:check: ${reason}\n`);
  process.exit(1);
}

/** Runs a command of the container engine and returns its standard output. If the command fails, the program ends. */
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

/**
 * Starts a container with the same restrictions as in compose.yaml: without capabilities and with a read-only file
 * system.
 */
function startContainer(name: string, options: string[], command: string[] = []): string {
  const containerName = `ad-library-check-${name}-${process.pid}`;
  containers.push(containerName);
  const hardeningOptions = ['--read-only', '--cap-drop=ALL', '--security-opt=no-new-privileges'];
  runEngine(['run', '--detach', '--name', containerName, ...hardeningOptions, ...options, image, ...command]);
  return containerName;
}

/** Returns the port on this machine that is mapped to the container's port 3000. */
const readHostPort = (container: string): string => runEngine(['port', container, '3000/tcp']).split(':').at(-1) ?? '';

/** Repeats a check until it passes, for at most 30 seconds. */
async function waitForCheck<Result>(checkName: string, runCheck: () => Promise<Result>): Promise<Result> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await runCheck();
    } catch (error) {
      if (attempt === 60) throw new Error(`${checkName}: ${(error as Error).message}`);
      await delay(500);
    }
  }
}

function assertCheck(condition: boolean, checkName: string): void {
  if (!condition) throw new Error(checkName);
  process.stdout.write(`ok: ${checkName}\n`);
}

const initializeMessage = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'check', version: '1' } },
};
const callMessage = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'count_ads', arguments: {} } };
/**
 * Returns true if the text is the response to the tool call. The response to `initialize` also mentions demo data, so
 * the request id is checked, too.
 */
const isCallResponse = (text: string) => /"id":1\b/.test(text) && text.includes('DEMO DATA');

async function postCall(port: string): Promise<string> {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const response = await fetch(`http://127.0.0.1:${port}/mcp`, {
    method: 'POST',
    headers,
    body: JSON.stringify(callMessage),
  });
  if (!response.ok) throw new Error(`status ${response.status}`);
  return response.text();
}

const baseImageOptions = baseImage === undefined ? [] : ['--build-arg', `NODE_IMAGE=${baseImage}`];
// The default image format of podman does not support health checks, so use the format of docker.
const formatOptions = engine === 'podman' ? ['--format', 'docker'] : [];
const buildOptions = process.env.IMAGE_BUILD_OPTIONS?.split(' ') ?? [];
runEngine(['build', ...formatOptions, ...buildOptions, ...baseImageOptions, '--tag', image, '.']);
assertCheck(runEngine(['run', '--rm', image, '--version']) !== '', 'the image starts the command');
assertCheck(runEngine(['run', '--rm', '--entrypoint', 'id', image, '-u']) !== '0', 'the server does not run as root');

const demoOptions = ['-e', 'AD_LIBRARY_DEMO=true'];
const httpContainer = startContainer('http', [...demoOptions, '-p', '127.0.0.1::3000']);
assertCheck(
  isCallResponse(await waitForCheck('MCP over HTTP', () => postCall(readHostPort(httpContainer)))),
  'a call over HTTP is answered',
);
const [imageDetails] = JSON.parse(runEngine(['image', 'inspect', image]));
// podman reports the health check of an image in `Healthcheck`, and docker in `Config.Healthcheck`.
const [, ...healthCommand] = (imageDetails.Healthcheck ?? imageDetails.Config.Healthcheck).Test;
assertCheck(
  spawnSync(engine, ['exec', httpContainer, ...healthCommand]).status === 0,
  'the health check of the image passes',
);
runEngine(['stop', '--time', '15', httpContainer]);
assertCheck(
  runEngine(['inspect', '--format', '{{.State.ExitCode}}', httpContainer]) === '0',
  'the server ends with code 0 after SIGTERM',
);

const sessionInput = [initializeMessage, callMessage].map((message) => `${JSON.stringify(message)}\n`).join('');
const stdioOutput = runEngine(['run', '--rm', '-i', ...demoOptions, image, 'stdio'], sessionInput);
assertCheck(isCallResponse(stdioOutput), 'a call over stdio is answered after the end of the input');
const fileOptions = ['-v', `${volume}:/data`, '-e', 'AD_LIBRARY_FILES=/data/files'];
assertCheck(
  isCallResponse(runEngine(['run', '--rm', '-i', ...demoOptions, ...fileOptions, image, 'stdio'], sessionInput)),
  'stdio uses the volume',
);

const importedAdId = '11111111-1111-4111-8111-111111111111';
const libraryCommand = ['run', '--rm', '-i', '-v', `${volume}:/data`, image, 'library'];
runEngine([...libraryCommand, 'import', '-'], `${JSON.stringify({ id: importedAdId })}\n`);
const libraryKey = runEngine([...libraryCommand, 'key', 'create', '--unmetered']);
const libraryContainer = startContainer(
  'library',
  ['-v', `${volume}:/data`, '-p', '127.0.0.1::3000'],
  ['library', 'serve'],
);
const adJson = await waitForCheck('the library', async () => {
  const headers = { authorization: `Bearer ${libraryKey}` };
  const response = await fetch(`http://127.0.0.1:${readHostPort(libraryContainer)}/v1/ads/${importedAdId}`, {
    headers,
  });
  if (!response.ok) throw new Error(`status ${response.status}`);
  return response.text();
});
assertCheck(adJson.includes(importedAdId), 'a local library outlives its container on the volume');
