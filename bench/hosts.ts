/**
 * Runs real MCP hosts with a scripted model (a local server that sends fixed replies), and checks which parts of tool
 * results and instructions the model receives. `npm run hosts` runs all hosts, and `npm run hosts -- claude gemini`
 * runs only some. The newest version of each host is installed outside the repository: into the `HOSTS_CACHE` folder
 * or, by default, into `ad-library-hosts` in the user's cache folder. All hosts together take 2.2 GB.
 *
 * With `-- --write`, the results are written to `bench/hosts/results.json`, and the version and date of each host to
 * `src/mcp/hosts.json`. `npm run docs` copies both into docs/host-evidence.md.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type HostUnderTest, hostsUnderTest } from './hosts/catalog.ts';
import type { HostMeasurement } from './hosts/measure.ts';
import { formatResults, type HostResult } from './hosts/results.ts';

const cacheFolder = process.env.HOSTS_CACHE ?? join(homedir(), '.cache', 'ad-library-hosts');
const resultsFile = new URL('hosts/results.json', import.meta.url);
const runHostFile = fileURLToPath(new URL('hosts/run-host.ts', import.meta.url));
const hostsFile = new URL('../src/mcp/hosts.json', import.meta.url);
const hostRows: { title: string; output: string; testedVersion?: string; evidenceDay: string }[] = JSON.parse(
  readFileSync(hostsFile, 'utf8'),
);

/**
 * Limits in tokens: the maximum length of a list of ten ads, and the maximum length that a host may add to this list.
 */
const maxListTokens = 2200;
const maxAddedTokens = 250;

const commandArguments = process.argv.slice(2);
const chosenIds = commandArguments.filter((arg) => !arg.startsWith('-'));
const ids = chosenIds.length > 0 ? chosenIds : Object.keys(hostsUnderTest);
const unknownIds = ids.filter((id) => !Object.hasOwn(hostsUnderTest, id));
if (unknownIds.length > 0) {
  process.stderr.write(
    `hosts: there is no ${unknownIds.join(', ')}. Known hosts: ${Object.keys(hostsUnderTest).join(', ')}\n`,
  );
  process.exit(2);
}

const nodePath = installNode();
const isolationCommand = findIsolationCommand();
if (isolationCommand.length === 0)
  process.stderr.write('hosts: this system has no network namespaces, so hosts may use the network\n');
const storedResults: Record<string, HostResult> = existsSync(resultsFile)
  ? JSON.parse(readFileSync(resultsFile, 'utf8'))
  : {};
const newResults: Record<string, HostResult> = {};
for (const id of ids) {
  const host = hostsUnderTest[id] as HostUnderTest;
  process.stderr.write(`hosts: ${host.title} …\n`);
  newResults[id] = testHost(id, host);
}
process.stdout.write(`${formatResults(newResults)}\n`);
const failedResults = Object.values(newResults).filter(({ problems }) => problems.length > 0);
for (const { title, problems } of failedResults)
  for (const problem of problems) process.stdout.write(`${title}: ${problem}\n`);
if (commandArguments.includes('--write')) writeResults();
process.exitCode = failedResults.length > 0 ? 1 : 0;

/**
 * Writes the results of the hosts that ran to `results.json`, and updates the version and the date of these hosts in
 * `hosts.json`.
 */
function writeResults(): void {
  const completedRuns = Object.entries(newResults).filter(([, { measured }]) => measured !== undefined);
  writeFileSync(
    resultsFile,
    `${JSON.stringify({ ...storedResults, ...Object.fromEntries(completedRuns) }, null, 2)}\n`,
  );
  for (const [, { title, version, day }] of completedRuns) {
    const row = hostRows.find((candidate) => candidate.title === title);
    if (row) Object.assign(row, { testedVersion: version, evidenceDay: day });
  }
  writeFileSync(hostsFile, `${JSON.stringify(hostRows, null, 2)}\n`);
  execFileSync('npx', [
    'biome',
    'format',
    '--write',
    '--log-level=error',
    fileURLToPath(hostsFile),
    fileURLToPath(resultsFile),
  ]);
}

/**
 * Returns the path of the Node executable that runs the hosts. Most hosts need a newer Node than the server, so a newer
 * version is installed if necessary.
 */
function installNode(): string {
  if (Number(process.versions.node.split('.')[0]) >= 22) return process.execPath;
  const platform = process.platform === 'win32' ? 'win' : process.platform;
  const nodePackageName = `node-${platform}-${process.arch}`;
  installPackage('node', `${nodePackageName}@24`, process.execPath);
  return join(
    cacheFolder,
    'node',
    'node_modules',
    nodePackageName,
    'bin',
    process.platform === 'win32' ? 'node.exe' : 'node',
  );
}

/**
 * Installs an npm package of a host into a separate folder of the cache. Without a version in `packageName`, npm
 * installs the newest version.
 */
function installPackage(hostId: string, packageName: string, nodePath: string): string {
  const folder = join(cacheFolder, hostId);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  const npm = realpathSync(execFileSync('which', ['npm'], { encoding: 'utf8' }).trim());
  const environment = { ...process.env, PATH: `${dirname(nodePath)}:${process.env.PATH}` };
  const { status, stderr } = spawnSync(nodePath, [npm, 'install', '--no-audit', '--no-fund', packageName], {
    cwd: folder,
    env: environment,
    encoding: 'utf8',
  });
  if (status !== 0)
    throw new Error(/^npm error (?!code|path|command|npm error).*/m.exec(stderr)?.[0] ?? stderr.slice(0, 200));
  return folder;
}

/**
 * Returns the command and arguments to put before another command, so that the other command can use only the loopback
 * network. On Linux, they begin with `unshare`. Returns an empty list if the system offers no such command.
 */
function findIsolationCommand(): string[] {
  const enableLoopbackAndRun = ['sh', '-c', 'ip link set lo up && exec "$@"', 'sh'];
  const isolationCommands = [
    ['unshare', '--net'],
    ['unshare', '--map-root-user', '--net'],
  ].map((unshare) => [...unshare, ...enableLoopbackAndRun]);
  return isolationCommands.find(([command = '', ...rest]) => spawnSync(command, [...rest, 'true']).status === 0) ?? [];
}

function testHost(id: string, host: HostUnderTest): HostResult {
  const day = new Date().toISOString().slice(0, 10);
  const result: HostResult = { title: host.title, version: '', day, setups: [], problems: [] };
  let folder: string;
  try {
    folder = installPackage(id, `${host.packageName}@${host.packageVersion ?? 'latest'}`, nodePath);
  } catch (error) {
    return { ...result, problems: [`cannot be installed: ${(error as Error).message}`] };
  }
  for (const setup of Object.keys(host.getSetups({ modelUrl: '', mainFile: '', getPluginFolder: () => '' }))) {
    const [command = '', ...rest] = [
      ...isolationCommand,
      process.execPath,
      '--import',
      'tsx',
      runHostFile,
      id,
      setup,
      folder,
      nodePath,
    ];
    const { stdout, stderr } = spawnSync(command, rest, { encoding: 'utf8', maxBuffer: 2 ** 28 });
    const runOutput = parseRunOutput(stdout);
    if (runOutput === undefined) {
      result.problems.push(`${setup}: the run failed: ${stderr.trim().split('\n').at(-1)}`);
      continue;
    }
    const { version, missingTools, output, ...measured } = runOutput;
    if (process.env.KEEP_RUNS === 'true') process.stderr.write(output);
    result.version = version;
    result.setups.push(setup);
    result.measured ??= measured;
    const problems = findProblems(host, measured, missingTools).map((problem) => `${setup}: ${problem}`);
    result.problems.push(...problems);
  }
  return result;
}

/** Parses the output of `run-host.ts`. Returns undefined if the run failed and its output is not JSON. */
function parseRunOutput(
  stdout: string,
): (HostMeasurement & { version: string; missingTools: string[]; output: string }) | undefined {
  try {
    return JSON.parse(stdout);
  } catch {
    return undefined;
  }
}

/**
 * Compares what a test run measured with the statements about the host in `src/mcp/hosts.json` and `catalog.ts`.
 * Returns one message for each difference.
 */
function findProblems(host: HostUnderTest, measurement: HostMeasurement, missingTools: readonly string[]): string[] {
  const hostRow = hostRows.find(({ title }) => title === host.title);
  return [
    ...missingTools.map((tool) => `the model was not offered ${tool}`),
    ...(measurement.sent === hostRow?.output
      ? []
      : [`the server sent ${measurement.sent}, and hosts.json says ${hostRow?.output}`]),
    ...(measurement.read === 'text' ? [] : [`the model read ${measurement.read} of the list, and not the text alone`]),
    ...findOutcomeProblems(host.expectedOutcome, measurement),
    ...findSizeProblems(measurement),
    ...(measurement.readsErrors ? [] : ['the model did not read the error']),
    ...(measurement.readsFileLocation ? [] : ['the model did not learn where the report is']),
  ];
}

/**
 * Compares the pictures, links, instructions and tools that the model received with the expectations in `catalog.ts`.
 * Returns one message for each difference.
 */
function findOutcomeProblems(
  expectedOutcome: HostUnderTest['expectedOutcome'],
  measurement: HostMeasurement,
): string[] {
  const { pictures, links = 'left out by the server', instructions, tools } = expectedOutcome;
  const hasExpectedTools =
    tools === 'all'
      ? measurement.receivedToolCount === measurement.listedToolCount && measurement.repeatedToolCount === 0
      : measurement.receivedToolCount < measurement.listedToolCount;
  const { receivedToolCount, listedToolCount, repeatedToolCount } = measurement;
  return [
    ...(measurement.pictures === pictures ? [] : [`a picture was ${measurement.pictures}, expected: ${pictures}`]),
    ...(measurement.links === links ? [] : [`a link was ${measurement.links}, expected: ${links}`]),
    ...(measurement.instructions === instructions
      ? []
      : [`of the instructions, the model received: ${measurement.instructions}, expected: ${instructions}`]),
    ...(hasExpectedTools
      ? []
      : [
          `the model received ${receivedToolCount} of ${listedToolCount} tools, ${repeatedToolCount} of them twice, expected: ${tools}`,
        ]),
  ];
}

function findSizeProblems({ sentTokens, listTokens }: HostMeasurement): string[] {
  return [
    ...(sentTokens <= maxListTokens ? [] : [`the server sent ten ads in ${sentTokens} tokens`]),
    ...(listTokens <= sentTokens + maxAddedTokens
      ? []
      : [`the host passed on ${sentTokens} tokens of ten ads as ${listTokens} tokens`]),
  ];
}
