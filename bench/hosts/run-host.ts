/**
 * Runs one host with the scripted model (a local server that sends fixed replies), and prints the measurements as JSON.
 * `npm run hosts` starts this program without access to the internet: `run-host.ts HOST SETUP INSTALLATION NODE`.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { packPlugins } from '../../scripts/plugins.ts';
import { hostsUnderTest } from './catalog.ts';
import { measureRun, type RecordedMessage } from './measure.ts';
import { type ScriptStep, startScriptedModel } from './scripted-model.ts';

/** The tool calls that the scripted model makes, in this order. Later calls use ad ids from earlier results. */
const steps: ScriptStep[] = [
  { toolName: 'search_ads', buildArguments: () => ({ limit: 10 }) },
  { toolName: 'view_ads', buildArguments: (adIds) => ({ adIds: adIds.slice(0, 2) }) },
  { toolName: 'query_ads', buildArguments: () => ({ sql: 'SELECT nothing FROM ads' }) },
  {
    toolName: 'write_report',
    buildArguments: () => ({ title: 'Ads', name: 'ads', sections: [{ heading: 'Ads', text: 'All ads.' }] }),
  },
];

/** The time limit of one command in milliseconds. On a busy machine, hosts need up to a minute. */
const maxCommandMs = 180_000;

const [hostId = '', setupName = 'command', installationFolder = '', nodePath = process.execPath] =
  process.argv.slice(2);
const host = hostsUnderTest[hostId];
if (host === undefined) throw new Error(`There is no host ${hostId}.`);

const runFolder = mkdtempSync(join(tmpdir(), 'ad-library-host-'));
process.once('exit', () => {
  if (process.env.KEEP_RUNS !== 'true') rmSync(runFolder, { recursive: true, force: true });
});
const homeFolder = join(runFolder, 'home');
const workFolder = join(runFolder, 'work');
for (const folderName of [homeFolder, workFolder]) mkdirSync(folderName);

// Replace `main.js` in each plugin with a program that starts the server and records the messages of host and server.
for (const { folderName, files } of packPlugins()) {
  for (const [path, content] of Object.entries(files)) writeFile(join(runFolder, folderName, path), content);
  const distFolder = join(runFolder, folderName, 'dist');
  renameSync(join(distFolder, 'main.js'), join(distFolder, 'server.js'));
  writeFile(join(distFolder, 'main.js'), readFileSync(new URL('tee.mjs', import.meta.url)));
}

const model = await startScriptedModel(steps);
const environment = {
  modelUrl: model.url,
  mainFile: join(runFolder, 'agent-plugin/dist/main.js'),
  getPluginFolder: (name: string) => join(runFolder, name),
};
const setup = host.getSetups(environment)[setupName as 'command' | 'plugin'];
if (setup === undefined) throw new Error(`${host.title} has no setup ${setupName}.`);
for (const [path, content] of Object.entries(setup.files ?? {})) {
  const text = typeof content === 'string' ? content : `${JSON.stringify(content, null, 2)}\n`;
  writeFile(path.startsWith('./') ? join(workFolder, path) : join(homeFolder, path), text);
}

const programPath = join(installationFolder, host.programPath);
const version = /\d+\.\d+\.\d+/.exec((await runProgram({ args: ['--version'] })).output)?.[0] ?? 'unknown';
let output = '';
for (const command of setup.commands ?? []) output += (await runProgram(command)).output;
output += (await runProgram({ args: setup.questionArgs })).output;
const measured = measureRun({
  requests: model.requests,
  messages: findRecordFiles(runFolder).flatMap(readRecords),
  toolNames: steps.map(({ toolName }) => toolName),
});
model.close();
process.stdout.write(JSON.stringify({ version, ...measured, missingTools: model.missingTools, output }));
process.exit(0);

function writeFile(path: string, content: string | Uint8Array): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}

/**
 * Runs a command of the host. The command does not inherit the environment variables of this process. It gets only the
 * variables that the host needs, a few fixed variables, and a `PATH` that contains Node.
 */
async function runProgram({ args, input = '' }: { args: string[]; input?: string }) {
  const variables = host?.getVariables(environment);
  const searchPath = [dirname(nodePath), '/usr/local/bin', '/usr/bin', '/bin'].join(':');
  const child = spawn(programPath, args, {
    cwd: workFolder,
    env: { PATH: searchPath, HOME: homeFolder, TERM: 'xterm', LANG: 'C.UTF-8', ...variables },
    timeout: maxCommandMs,
  });
  child.stdin.end(input);
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (text += chunk));
  const code = await new Promise((resolve) => child.on('close', resolve).on('error', resolve));
  return { output: `$ ${hostId} ${args.join(' ')}\n${text}exit code ${code}\n` };
}

/**
 * Returns the paths of the files with recorded messages. Searches all subfolders, because some hosts copy plugins into
 * their home folder.
 */
function findRecordFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('messages.jsonl'))
    .map((path) => join(folder, path));
}

function readRecords(file: string): RecordedMessage[] {
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  return lines.flatMap((line) => {
    const { from, text } = JSON.parse(line);
    return text === '' ? [] : [{ from, message: JSON.parse(text) }];
  });
}
