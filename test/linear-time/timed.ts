import { readdirSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
// biome-ignore lint/suspicious/noDeprecatedImports: the replacement would be another dependency.
import { parseAst } from 'vitest/node';
import { respondWithError, respondWithJson, startUpstream } from '../support/faulty-upstream.ts';
import { everyFact, somePage } from '../views/sample-ads.ts';

/**
 * Runs the regular expressions in `src`, its functions or the tools on hostile texts, and prints each one that is too
 * slow.
 */

type Run = (text: string) => unknown;
/** A hostile text, which can be created in any length. */
interface HostileText {
  /** Returns a description of the text for the message about a slow run. */
  describe(): string;
  ofLength(length: number): string;
}

/**
 * A group of hostile texts. A text is created when it is measured, because a group can have many thousands of texts, and
 * most of them are skipped.
 */
interface TextGroup {
  size: number;
  createText(index: number): HostileText;
}

/** Characters that a pattern in `src` or the sanitizer treats in a special way. */
const characters = [
  ...'aZ09 _-.,:;=?!&#%/\\|*+~^$@<>()[]{}"\'`\n\t\r',
  ...['©', '®', '‼', '⁉', '↔', '↗', '↩', '↪', '❤', '👩', '🏽', '🏴', '🇩', '\ufe0f', '\ufe0e', '\u20e3', '…', 'é', 'ß'],
  ...['\u200b', '\u200c', '\u200d', '\u202e', '\u2066', '\u2028', '\xad', '\xa0', '\u2800', '\u3164', '\ufeff', '\0'],
  ...['\u0301', '\u{1d167}', '\u094d', '\u0e31', 'क', 'م', 'ก', '中', 'か', '한', '\u{e0067}', '\u{e007f}'],
  ...'\ud800 \udc00 👩\u200d ❤\ufe0f \\u0041 %25 &amp; {{ [a]( <a> svc_ svc_live_CANARY'.split(' '),
  'aaa ',
];

const repeated = (piece: string, start = '', end = 'ก\u202e!'): HostileText => ({
  describe: () => [start, `${piece} …`, end].map((part) => JSON.stringify(part)).join(' '),
  ofLength: (length) => start + piece.repeat(Math.ceil(length / piece.length)) + end,
});

/**
 * Returns groups of texts that each repeat one piece: a character, or a combination of up to `maxPieces` pieces from the
 * source code.
 */
function createTextGroups(pieces: readonly string[], maxPieces: number): TextGroup[] {
  const pieceAt = (index: number) => pieces[index % pieces.length] ?? '';
  const groups: TextGroup[] = [
    {
      size: 2 * characters.length,
      createText: (index) => repeated(characters[index >> 1] ?? '', '', index % 2 === 0 ? undefined : '"x'),
    },
    {
      size: pieces.length ** 2,
      createText(index) {
        const [first, second] = [pieceAt(Math.floor(index / pieces.length)), pieceAt(index)];
        return repeated(second, first + second);
      },
    },
  ];
  for (let count = 1; count <= maxPieces; count++) {
    groups.push({
      size: pieces.length ** count,
      createText(index) {
        let combination = '';
        for (let rest = index, length = 0; length < count; length++, rest = Math.floor(rest / pieces.length))
          combination = pieceAt(rest) + combination;
        return repeated(combination);
      },
    });
  }
  return groups.filter(({ size }) => size > 0);
}

const classes: Record<string, string> = { d: '0', w: 'a', s: ' ', n: '\n', r: '\r', t: '\t' };

/** Returns the words and characters in a pattern, and some characters that its classes match. */
function namedIn({ source }: RegExp): string[] {
  const plain = source
    .replace(/\\u\{?([\da-f]{4,6})\}?|\\x([\da-f]{2})/gi, (_, four, two) =>
      String.fromCodePoint(Number.parseInt(four ?? two, 16)),
    )
    .replace(/\\([dwsnrt])/gi, (_, name) => classes[name.toLowerCase()] ?? '');
  return [...new Set([...(plain.match(/[a-z_]{2,}|[^\\]/gisu) ?? []), ' ', '0', 'a', '.'])];
}

const root = fileURLToPath(new URL('../../src', import.meta.url));

/**
 * Parses the source files. Returns the pattern literals of each file, its number of `RegExp` calls, and its short strings
 * with special characters.
 */
const parseSources = (isIncluded: (file: string) => boolean) =>
  readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file) && isIncluded(file))
    .map((file) => {
      const source = { file, path: join(root, file), literals: [] as RegExp[], signs: [] as string[], constructed: 0 };
      // biome-ignore lint/suspicious/noExplicitAny: a node of any kind
      const look = (_: string, node: any): unknown => {
        if (node?.regex) source.literals.push(new RegExp(node.regex.pattern, node.regex.flags));
        if (node?.callee?.name === 'RegExp') source.constructed++;
        if (typeof node?.value === 'string' && /^(?=.*\W).{1,3}$/s.test(node.value)) source.signs.push(node.value);
        return typeof node === 'bigint' ? undefined : node;
      };
      JSON.stringify(parseAst(readFileSync(source.path, 'utf8'), { lang: file.endsWith('x') ? 'tsx' : 'ts' }), look);
      return source;
    });

/**
 * Returns the processor time of a run in milliseconds, which does not include other processes. A run that throws counts
 * as well.
 */
async function timeOf(run: Run, text: string): Promise<number> {
  const start = process.cpuUsage();
  await new Promise((resolve) => resolve(run(text))).catch(() => {});
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}

/**
 * The first measurement of a text. A run that takes less time than `ms` for `length` characters is not measured further,
 * because a run in quadratic time takes longer.
 */
const glance = { length: 2000, ms: 0.4 };

/**
 * Returns the elapsed time of a run in milliseconds. Reading the clock takes less time than reading the processor time,
 * which would take longer than most runs. A run that was interrupted by another process is measured further.
 */
async function glanceAt(run: Run, text: HostileText): Promise<number> {
  const textOfLength = text.ofLength(glance.length);
  const start = performance.now();
  await new Promise((resolve) => resolve(run(textOfLength))).catch(() => {});
  return performance.now() - start;
}

/** Returns true if a text of four times the length takes clearly more than four times as long. */
async function growsTooFast(run: Run, text: HostileText): Promise<boolean> {
  if ((await glanceAt(run, text)) < glance.ms) return false;
  const first = await timeOf(run, text.ofLength(glance.length));
  if (first < glance.ms || first < 7 * (await timeOf(run, text.ofLength(glance.length / 4)))) return false;
  return (await isSlowInAllRounds(run, text, 4000)) && (await isSlowInAllRounds(run, text, 8000));
}

/**
 * Compares the least times for a length and for four times the length, again after each of 30 rounds. In quadratic time,
 * the longer text takes 16 times as long in every round. On a busy host, all runs within a few milliseconds can take
 * several times as long, but one undisturbed round is enough to return false.
 */
async function isSlowInAllRounds(run: Run, { ofLength }: HostileText, length: number): Promise<boolean> {
  let [short, long] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let round = 0; round < 30; round++) {
    short = Math.min(short, await timeOf(run, ofLength(length)));
    long = Math.min(long, await timeOf(run, ofLength(4 * length)));
    if (long < 10 * short + 2) return false;
  }
  return true;
}

/** Measures a run with each group of texts and prints its name if it is too slow. Logs the name first, in case it hangs. */
async function time(name: string, run: Run, groups: readonly TextGroup[], maxGroupMs = 1): Promise<void> {
  writeSync(2, `${name}\n`);
  for (const { size, createText } of groups) {
    const samples: number[] = [];
    // Take at least two samples, because the first one may include initialization. More samples of a slow run, such as a
    // tool call, would take too long.
    while (samples.length < Math.min(size, 5) && (samples.length < 2 || Math.min(...samples) < maxGroupMs))
      samples.push(await glanceAt(run, createText(samples.length)));
    // Skip some texts if measuring all of them would take longer than `maxGroupMs`.
    const median = samples.toSorted((left, right) => left - right)[(samples.length - 1) >> 1] ?? 0;
    const step = Math.max(1, Math.ceil((median * size) / maxGroupMs));
    for (let index = 0; index < size; index += step) {
      const text = createText(index);
      if (await growsTooFast(run, text)) return void writeSync(1, `${name} takes too long: ${text.describe()}\n`);
    }
  }
}

async function timePatterns(): Promise<void> {
  const constructedPatterns: { pattern: RegExp; stack: string }[] = [];
  globalThis.RegExp = new Proxy(RegExp, {
    construct(target, args, newTarget) {
      const pattern = Reflect.construct(target, args, newTarget) as RegExp;
      constructedPatterns.push({ pattern, stack: new Error().stack ?? '' });
      return pattern;
    },
  });
  // Skip main.ts, which starts a server on import, and the demo, whose patterns read only its own texts.
  const measuredPatterns = new Set<string>();
  for (const { file, path, literals, constructed } of parseSources(
    (file) => !/^(?:main\.ts|library\/demo\/)/.test(file),
  )) {
    if (constructed > 0) await import(path);
    const constants = constructedPatterns.filter(({ stack }) => stack.includes(path)).map(({ pattern }) => pattern);
    if (constants.length < constructed)
      writeSync(1, `${file} constructs a pattern in a function: make it a constant\n`);
    for (const pattern of [...literals, ...constants]) {
      if (measuredPatterns.has(String(pattern))) continue;
      measuredPatterns.add(String(pattern));
      // With the `g` flag, the pattern is tried at every character.
      const everywhere = new RegExp(pattern, [...new Set(`${pattern.flags}g`)].join(''));
      const run: Run = (text) => text.replace(everywhere, '');
      await time(`${file} ${pattern}`, run, createTextGroups(namedIn(pattern).slice(0, 40), 3));
    }
  }
}

/** Files whose functions process texts. Other files open files or databases, send requests, or run in a browser. */
const ofTexts =
  /^(?:views|mcp|api|prompts|logging|drawing|charts|dataset|ui|reports|tools|watches|transports\/http)\/(?!.*worker\.ts)|^library\/(?:search\/tokens|service\/request|import\/(?:formats|values|sources)\/[\w-]+)\.ts|^board\/view\/words\.ts|fetch-picture\.ts/;

type Function = (...given: unknown[]) => unknown;

/** Returns ways to call a function with a text, a list or an object as its first argument, if it accepts them. */
function runsOf(call: Function): Run[] {
  const firsts: Run[] = [
    (text) => text,
    (text) => [text, text],
    (text) => ({ id: text, [text]: text, list: [text, { [text]: text }] }),
  ];
  const otherArgs: Run[] = [() => undefined, (text) => text, () => 500, (text) => [text], () => /^x$/];
  return firsts.flatMap((first) => {
    const runs = otherArgs.map(
      (other): Run =>
        (text) =>
          call(first(text), ...Array(3).fill(other(text))),
    );
    const taken = runs.find((run) => {
      try {
        return !(run('a text') instanceof Promise);
      } catch {
        return false;
      }
    });
    return taken ? [taken] : [];
  });
}

async function timeFunctions(): Promise<void> {
  // A function that does not accept the text may reject later, when its promise is no longer awaited.
  process.on('unhandledRejection', () => {});
  for (const { file, path, literals, signs } of parseSources((file) => ofTexts.test(file))) {
    const texts = createTextGroups([...new Set([...signs, ...literals.flatMap(namedIn)])], 2);
    for (const [name, call] of Object.entries((await import(path)) as Record<string, unknown>)) {
      if (typeof call !== 'function' || call.constructor.name !== 'Function' || `${call}`.startsWith('class')) continue;
      for (const run of runsOf(call as Function)) await time(`${file} ${name}`, run, texts);
    }
  }
}

/** Returns a copy of the model with every string replaced by the text. */
const filled = <Value>(model: Value, text: string): Value =>
  JSON.parse(JSON.stringify(model), (_, value) => (typeof value === 'string' ? text : value));

/** Measures every tool with the text in its arguments, in every response field, and in an error of the API. */
async function timeTools(): Promise<void> {
  // Import the tools here, because timePatterns must import each file first to see which patterns it constructs.
  const { tools } = await import('../../src/tools/catalog.ts');
  const { startServer } = await import('../support/server.ts');
  const { id, pageId } = { ...everyFact, ...somePage };
  const page = { id, pageId, cursor: null, hasMore: false };
  const required = { ...page, itemId: id, itemType: 'ads', added: true, authenticated: true };
  const card = { title: '', body: '', description: '', cta_type: '', link_url: '' };
  const account = { name: '', type: '', userId: '', billingUserId: '', planId: { deep: '' }, user: { name: '' } };
  const model = { ...everyFact, ...somePage, ...account, notes: [''], cards: [card, card] };
  const upstream = await startUpstream();
  const config = { baseUrl: upstream.baseUrl, apiKey: 'svc_live_CANARY01', cacheSeconds: 0 };
  const server = await startServer({ config });
  for (const { name, buildExampleArguments, inputSchema } of tools) {
    const detail = 'detail' in inputSchema.shape && { detail: 'full' };
    const args = { ...buildExampleArguments({ adIds: [id], pageId, collectionId: id }), ...detail };
    const run = async (text: string) => {
      const media = [{ type: 'THUMB', nr: 0, url: `https://${text}` }];
      const record = { ...filled(model, text), [text]: text, media, ...required };
      upstream.respondWith(respondWithJson({ ...record, collection: record, items: [record] }));
      await server.call('search_ads');
      await server.call('label_ads', { labels: [{ adId: id, label: text.slice(0, 40), value: text.slice(0, 200) }] });
      await server.call(name, args);
      await server.call(name, { ...args, ...filled(args, text), [text]: text });
      upstream.respondWith(respondWithError(422, filled({ code: '', message: '', details: { deep: [''] } }, text)));
      await server.call(name, args);
    };
    await time(name, run, createTextGroups([], 0), 75);
  }
}

const subjects = { patterns: timePatterns, functions: timeFunctions, tools: timeTools };
await subjects[process.argv[2] as keyof typeof subjects]();
process.exit();
