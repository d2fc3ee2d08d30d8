import { isInside } from '../../src/pictures/fetch-picture.ts';
import { hostileTexts } from './hostile-texts.ts';
import { exportedFunctions, type Source, sources } from './source.ts';
import { takesAnObject } from './takes-an-object.ts';
import { report, time } from './time.ts';

/**
 * Times every exported function whose first parameter is a text, a list of them or anything at all, with the others
 * filled in by their types; and those of `present` that take objects, with the text in each field.
 */

type Run = (text: string) => unknown;
type Call = (...given: unknown[]) => unknown;

const rooms = /^(?:present|mcp|api|tools|prompts|log|raster|charts)\//;
/** The rest of these folders opens files and databases by name, or fetches and draws. */
const single = ['library/search/tokens.ts', 'library/service/request.ts', 'library/import/public-archive.ts'];
/** Of a few sizes, or of no text. */
const exempt = new Set([
  'count',
  'copies',
  'priceText',
  'seenDays',
  'seenText',
  'framed',
  'fit',
  'runOf',
  'add',
  'groupBy',
  'createLog',
  'createStructuredLog',
]);

const fillings: [type: RegExp, fill: (text: string) => unknown][] = [
  [/^string$/, (text) => text],
  [/^unknown$/, (text) => ({ id: text, [text]: text, list: [text, { [text]: text }] })],
  [/^number$/, () => 500],
  [/^RegExp$/, () => /^x$/],
  [/^(?:readonly string\[\]|Iterable<string\b.*>|\(string \|.*\)\[\])$/, (text) => [text, text]],
  [/^$/, () => undefined],
];

/** The function with a text in each place; nothing where it takes no text first, or something that cannot be filled in. */
function fill(call: Call, types: string[]): Run | undefined {
  const fills = types.map((type) => fillings.find(([form]) => form.test(type))?.[1]);
  if (['', 'number', undefined].includes(types[0]) || fills.includes(undefined)) return;
  return (text) => call(...fills.map((given) => given?.(text)));
}

async function timeFunctionsOf(source: Source): Promise<void> {
  const { file, path } = source;
  const module: Record<string, Call> = await import(path);
  for (const { name, types } of exportedFunctions(source)) {
    const byTypes = fill(module[name] as Call, types);
    const ofText = types[0] === 'unknown' ? fill(module[name] as Call, ['string', ...types.slice(1)]) : undefined;
    const runs = [byTypes, ofText, ...(takesAnObject[name] ?? [])].filter((run) => run !== undefined);
    if (runs.length === 0 && file.startsWith('present/') && !exempt.has(name))
      report(`${file} ${name} is not timed: add it to takes-an-object.ts`);
    // An object holds the text many times.
    const texts = types[0] === 'string' ? hostileTexts : hostileTexts.filter((_, at) => at % 2 === 0);
    for (const run of runs) time(`${file} ${name}`, run, texts);
  }
}

for (const source of sources)
  if (rooms.test(source.file) || single.includes(source.file)) await timeFunctionsOf(source);
for (const file of single) if (!sources.some((source) => source.file === file)) report(`${file} is no file`);
time('pictures/fetch-picture.ts isInside', isInside, hostileTexts);
