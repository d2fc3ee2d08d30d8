import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { compile } from 'json-schema-to-typescript';
import type { Ad } from '../../src/api/schemas.ts';
import { type Demo, openDemo, type RawDemoData } from './demo.ts';

/**
 * The outcome of one example program, together with the correct answer. The program calls tools, and its calls are
 * checked against generated types.
 */
export interface ProgramResult {
  question: string;
  /** The error messages of the TypeScript compiler for this program. */
  typeErrors: string[];
  /** The result of the program, or the reason why it failed. */
  answer: string;
  expectedAnswer: string;
}

const createCountryFilter = (country: string) => (ad: Ad) => ad.countries?.includes(country) === true;
const toDayNumber = (date: string | null | undefined) => Date.parse(`${date}`.slice(0, 10)) / 86_400_000;
const now = Date.UTC(2026, 0, 15, 12);
const computeDaysRunning = ({ startedAt, endDate, lastSeenAt }: Ad) =>
  toDayNumber(endDate && Date.parse(endDate) <= now ? endDate : lastSeenAt) - toDayNumber(startedAt);
const isRunning = ({ endDate }: Ad) => !(endDate && Date.parse(endDate) <= now);

function computeMedian(values: number[]): number {
  const sorted = values.toSorted((left, right) => left - right);
  return ((sorted[(sorted.length - 1) >> 1] ?? 0) + (sorted[sorted.length >> 1] ?? 0)) / 2;
}

/**
 * The question that each program answers, and a function that computes the correct answer from all data of the service.
 */
const programs: Record<string, [question: string, expected: (rawData: RawDemoData) => number | Promise<number>]> = {
  'days-running': [
    'How many ads in Ireland have run for more than 90 days?',
    ({ ads }) => ads.filter((ad) => createCountryFilter('IE')(ad) && computeDaysRunning(ad) > 90).length,
  ],
  'share-of-videos': [
    'What percentage of the ads in Germany are videos?',
    ({ ads }) => {
      const germanAds = ads.filter(createCountryFilter('DE'));
      return Math.round((100 * germanAds.filter((ad) => ad.displayFormat === 'VIDEO').length) / germanAds.length);
    },
  ],
  'median-days': [
    'How many days has the median video in Germany run?',
    ({ ads }) =>
      computeMedian(
        ads.filter((ad) => createCountryFilter('DE')(ad) && ad.displayFormat === 'VIDEO').map(computeDaysRunning),
      ),
  ],
  'advertiser-size': [
    'How many ads does the largest advertiser in the US have?',
    ({ pages }) =>
      Math.max(...pages.filter((page) => page.countries?.includes('US')).map((page) => page.adsAmount ?? 0)),
  ],
  'cards-of-a-carousel': [
    'How many cards does the longest-running carousel in France have?',
    ({ ads }) => {
      const carousels = ads.filter((ad) => createCountryFilter('FR')(ad) && ad.displayFormat === 'CAROUSEL');
      return (
        carousels.toSorted((left, right) => computeDaysRunning(right) - computeDaysRunning(left))[0]?.cards?.length ?? 0
      );
    },
  ],
  'likes-of-a-page': [
    'How many likes and followers does Lichtwerft have in total?',
    ({ pages }) => {
      const { pageLikes, pageIgFollowers } = pages.find(({ pageName }) => pageName === 'Lichtwerft') ?? {};
      return (pageLikes ?? 0) + (pageIgFollowers ?? 0);
    },
  ],
  'ads-in-collections': [
    'How many ads are in all my collections together?',
    ({ collections }) => collections.reduce((sum, { adCount }) => sum + adCount, 0),
  ],
  'running-in-a-collection': [
    'How many ads in "Skincare that lasts" are still running?',
    async ({ readCollection }) => (await readCollection('Skincare that lasts')).filter(isRunning).length,
  ],
  'estimated-spend': [
    'What is the most that the ads in New Zealand can have spent, by their estimates?',
    ({ ads }) => ads.filter(createCountryFilter('NZ')).reduce((sum, { adSpendMax }) => sum + (adSpendMax ?? 0), 0),
  ],
  'labelled-ads': [
    'Label every ad in Ireland with its call to action: how many say LEARN_MORE?',
    ({ ads }) => ads.filter((ad) => createCountryFilter('IE')(ad) && ad.ctaType === 'LEARN_MORE').length,
  ],
  'watched-ads': [
    'Watch the videos in Germany: how many ads does the first check read?',
    ({ ads }) => ads.filter((ad) => createCountryFilter('DE')(ad) && ad.displayFormat === 'VIDEO').length,
  ],
  'exported-rows': [
    'How many rows does a table of all ads in Great Britain have?',
    ({ ads }) => ads.filter(createCountryFilter('GB')).length,
  ],
};

const root = new URL('../../', import.meta.url);
const programFolder = new URL('node_modules/.cache/evals/', root);

/**
 * Generates TypeScript types for all tools from the tool list, and writes the types to a file. Hosts with a code mode
 * give such types to their model, which then writes a program instead of calling tools.
 */
async function writeTypes(client: Client): Promise<void> {
  const { tools } = await client.listTools();
  const compileOptions = { bannerComment: '', format: false };
  const typeDeclarations: string[] = [];
  const methods: string[] = [];
  for (const { name, inputSchema, outputSchema } of tools) {
    const type = name.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
    typeDeclarations.push(await compile(inputSchema as object, `${type}Input`, compileOptions));
    typeDeclarations.push(await compile((outputSchema ?? {}) as object, `${type}Output`, compileOptions));
    const optionalMark = (inputSchema.required ?? []).length === 0 ? '?' : '';
    methods.push(`  ${name}(input${optionalMark}: ${type}Input): Promise<${type}Output>;`);
  }
  writeFileSync(
    new URL('tools.ts', programFolder),
    `${typeDeclarations.join('\n')}\nexport interface Tools {\n${methods.join('\n')}\n}\n`,
  );
}

/** Type-checks all programs. Returns the error messages of the TypeScript compiler, keyed by program name. */
function findTypeErrors(): Map<string, string[]> {
  const programFiles = readdirSync(programFolder).filter((file) => file.endsWith('.ts'));
  const compilerPath = createRequire(import.meta.url)
    .resolve('typescript/package.json')
    .replace('package.json', 'bin/tsc');
  const strictOptions = ['--strict', '--noUncheckedIndexedAccess', '--noEmit', '--allowImportingTsExtensions'];
  const targetOptions = ['--target', 'es2022', '--module', 'nodenext', '--ignoreConfig', '--pretty', 'false'];
  const args = [compilerPath, ...strictOptions, ...targetOptions, ...programFiles];
  const { stdout } = spawnSync(process.execPath, args, { cwd: fileURLToPath(programFolder), encoding: 'utf8' });
  const typeErrors = new Map<string, string[]>();
  for (const [line, file = ''] of stdout.matchAll(/^(.*?)\.ts\(\d.*$/gm))
    typeErrors.set(file, [...(typeErrors.get(file) ?? []), line]);
  if (typeErrors.size === 0 && stdout.trim() !== '') throw new Error(stdout);
  return typeErrors;
}

/** Type-checks all programs, and runs each program with a new demo server. */
export async function runPrograms(client: Client, rawData: RawDemoData): Promise<ProgramResult[]> {
  rmSync(programFolder, { recursive: true, force: true });
  mkdirSync(programFolder, { recursive: true });
  cpSync(new URL('programs/', import.meta.url), programFolder, { recursive: true });
  await writeTypes(client);
  const typeErrors = findTypeErrors();
  const results: ProgramResult[] = [];
  for (const [name, [question, computeExpected]] of Object.entries(programs)) {
    const { answer } = await import(new URL(`${name}.ts`, pathToFileURL(`${fileURLToPath(programFolder)}/`)).href);
    const demo: Demo = await openDemo();
    const tools = new Proxy({}, { get: (_, tool: string) => (input?: object) => demo.call(tool, input) });
    const programAnswer = await answer(tools).catch((error: Error) => `failed: ${error.message}`);
    await demo.close();
    const expectedAnswer = String(await computeExpected(rawData));
    results.push({
      question,
      typeErrors: typeErrors.get(name) ?? [],
      answer: String(programAnswer),
      expectedAnswer,
    });
  }
  return results;
}
