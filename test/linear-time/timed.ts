import { readdirSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
// biome-ignore lint/suspicious/noDeprecatedImports: its replacement is a package of its own.
import { parseAst } from 'vitest/node';
import { everyFact, somePage } from '../present/sample-ads.ts';
import { json, startUpstream } from '../support/faulty-upstream.ts';

/**
 * Times the patterns of `src`, its exported functions, or the tools, with hostile texts; prints a line for each of them
 * that takes more than linear time.
 */

type Run = (text: string) => unknown;
interface HostileText {
  name: string;
  ofLength(length: number): string;
}

/** Characters that some pattern of ours treats as special, or that cleaning a text removes, keeps or looks beside. */
const characters = [
  ...'aZ09 _-.,:;=?!&#%/\\|*+~^$@<>()[]{}"\'`\n\t\r',
  ...['©', '®', '‼', '⁉', '↔', '↗', '↩', '↪', '❤', '👩', '🏽', '🏴', '🇩', '\ufe0f', '\ufe0e', '\u20e3', '…', 'é', 'ß'],
  ...['\u200b', '\u200c', '\u200d', '\u202e', '\u2066', '\u2028', '\xad', '\xa0', '\u2800', '\u3164', '\ufeff', '\0'],
  ...['\u0301', '\u{1d167}', '\u094d', '\u0e31', 'क', 'م', 'ก', '中', 'か', '한', '\u{e0067}', '\u{e007f}'],
  ...'\ud800 \udc00 👩\u200d ❤\ufe0f \\u0041 %25 &amp; {{ [a]( <a> svc_ svc_live_CANARY'.split(' '),
  'aaa ',
];

const hostileText = (start: string, piece: string, end: string): HostileText => ({
  name: `${JSON.stringify(start)}, then ${JSON.stringify(piece)} over and over, then ${JSON.stringify(end)}`,
  ofLength: (length) => start + piece.repeat(Math.ceil(length / piece.length)) + end,
});

/** Each character, and what a source names, by itself, behind another and behind two, over and over: a group for each. */
function textsOf(named: readonly string[], reach: number): HostileText[][] {
  const end = 'ก\u202e!';
  const repeat = (pieces: string[]) => pieces.map((piece) => hostileText('', piece, end));
  const common = characters.flatMap((piece) => [hostileText('', piece, end), hostileText('', piece, '"x')]);
  const groups = [common, named.flatMap((first) => named.map((second) => hostileText(first + second, second, end)))];
  for (let pieces = [''], count = 0; count < reach; count++) {
    pieces = pieces.flatMap((piece) => named.map((one) => piece + one));
    groups.push(repeat(pieces));
  }
  return groups.filter((texts) => texts.length > 0);
}

const classes: Record<string, string> = { d: '0', w: 'a', s: ' ', n: '\n', r: '\r', t: '\t' };

/** The words and characters that a pattern names, and what no pattern has to name to take it. */
function namedIn({ source }: RegExp): string[] {
  const characterOf = (code: string) => String.fromCodePoint(Number.parseInt(code, 16));
  const plain = source
    .replace(/\\u\{?([\da-f]{4,6})\}?|\\x([\da-f]{2})/gi, (_, four, two) => characterOf(four ?? two))
    .replace(/\\([dwsnrt])/gi, (_, name) => classes[name.toLowerCase()] ?? '');
  return [...new Set([...(plain.match(/[a-z_]{2,}|[^\\]/gisu) ?? []), ' ', '0', 'a', '.'])];
}

const root = fileURLToPath(new URL('../../src', import.meta.url));
const isSign = /^(?=.*\W).{1,3}$/s;

/** The patterns that a file has, how many more it puts together, and short texts with a sign, at which it may cut a text. */
function read(file: string) {
  const path = join(root, file);
  const literals: RegExp[] = [];
  const signs: string[] = [];
  let constructed = 0;
  // biome-ignore lint/suspicious/noExplicitAny: a node of any kind
  const look = (_: string, node: any): unknown => {
    if (node?.regex) literals.push(new RegExp(node.regex.pattern, node.regex.flags));
    if (node?.callee?.name === 'RegExp') constructed++;
    if (typeof node?.value === 'string' && isSign.test(node.value)) signs.push(node.value);
    return typeof node === 'bigint' ? undefined : node;
  };
  JSON.stringify(parseAst(readFileSync(path, 'utf8'), { lang: file.endsWith('x') ? 'tsx' : 'ts' }), look);
  return { file, path, literals, constructed, signs };
}

const report = (problem: string): void => void writeSync(1, `${problem}\n`);

/** Of the processor, in milliseconds: what other processes take of it does not count. To refuse a text is a result, too. */
async function timeOf(run: Run, text: string): Promise<number> {
  const start = process.cpuUsage();
  await new Promise((resolve) => resolve(run(text))).catch(() => {});
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}

/** What takes less for so long a text is no burden, whatever it grows with: most runs end here. */
const glance = { length: 4000, ms: 0.8 };

/** Whether the time a run takes grows clearly faster than its text. A pause for other work of this process is not repeated. */
async function growsTooFast(run: Run, { ofLength }: HostileText): Promise<boolean> {
  const timeFor = async (length: number, times: number) => {
    const all: number[] = [];
    for (let time = 0; time < times; time++) all.push(await timeOf(run, ofLength(length)));
    return Math.min(...all);
  };
  // Four times the length takes four times as long, or 16 times where the time grows with the square.
  const first = await timeFor(glance.length, 1);
  if (first < glance.ms || first < 7 * (await timeFor(glance.length / 4, 1))) return false;
  for (const length of [4000, 8000])
    if ((await timeFor(4 * length, 3)) < 10 * (await timeFor(length, 3)) + 2) return false;
  return true;
}

/** Reports what is too slow, and on standard error what is timed next: that is the culprit when it never ends. */
async function time(name: string, run: Run, groups: readonly HostileText[][], ms = 30): Promise<void> {
  writeSync(2, `${name}\n`);
  for (const texts of groups) {
    const all: number[] = [];
    for (const text of texts.slice(0, 5)) all.push(await timeOf(run, text.ofLength(glance.length)));
    // Every so many of the group, where all would take longer than this.
    const each = Math.max(1, Math.ceil(((all.sort((one, other) => one - other)[2] ?? 0) * texts.length) / ms));
    for (const text of texts.filter((_, at) => at % each === 0))
      if (await growsTooFast(run, text)) return report(`${name} takes too long: ${text.name}`);
  }
}

const sources = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((file) => /\.tsx?$/.test(file))
  .map(read);

async function timePatterns(): Promise<void> {
  const made: { pattern: RegExp; stack: string }[] = [];
  globalThis.RegExp = new Proxy(RegExp, {
    construct(target, given, newTarget) {
      const pattern = Reflect.construct(target, given, newTarget) as RegExp;
      made.push({ pattern, stack: new Error().stack ?? '' });
      return pattern;
    },
  });
  // The first begins to serve when it is loaded, and holds no pattern; the others read our own phrases.
  for (const { file, path, literals, constructed } of sources.filter(
    ({ file }) => !/^(?:main\.ts|library\/demo\/)/.test(file),
  )) {
    if (constructed > 0) {
      const { keyMasker } = (await import(path)) as Partial<typeof import('../../src/log/log.ts')>;
      // The one pattern that is not a constant: it looks for the spellings of a key.
      keyMasker?.('svc_live_CANARY01')('a text to look at');
    }
    const constants = made.filter(({ stack }) => stack.includes(path)).map(({ pattern }) => pattern);
    if (constants.length < constructed) report(`${file} puts a pattern together in a function: make it a constant`);
    for (const pattern of [...literals, ...constants]) {
      // All of its matches are looked for, so that it starts at every character.
      const everywhere = new RegExp(pattern, [...new Set(`${pattern.flags}g`)].join(''));
      await time(
        `${file} ${pattern}`,
        (text) => text.replace(everywhere, ''),
        textsOf(namedIn(pattern).slice(0, 40), 3),
      );
    }
  }
}

/** The rest opens files and databases by name, fetches, or draws in a browser. */
const ofTexts =
  /^(?:present|mcp|api|prompts|log|raster|charts|dataset|looks|reports|tools|serve\/http)\/|^library\/(?:search\/tokens|service\/request|import\/(?:public-archive|own-ads))\.ts|^board\/view\/words\.ts|fetch-picture\.ts/;

type Call = (...given: unknown[]) => unknown;

/** A function with a text, a list of them and an object of them in its first place, and whatever it takes in the others. */
function runsOf(call: Call): Run[] {
  const firsts: Run[] = [
    (text) => text,
    (text) => [text, text],
    (text) => ({ id: text, [text]: text, list: [text, { [text]: text }] }),
  ];
  const others: Run[] = [() => undefined, (text) => text, () => 500, (text) => [text], () => /^x$/];
  return firsts.flatMap((first) => {
    const runs = others.map(
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
  // What takes no text may also fail later, as nobody waits for it.
  process.on('unhandledRejection', () => {});
  for (const { file, path, literals, signs } of sources.filter(({ file }) => ofTexts.test(file))) {
    const module: Record<string, unknown> = /worker\.ts$/.test(file) ? {} : await import(path);
    const texts = textsOf([...new Set([...signs, ...literals.flatMap(namedIn)])], 2);
    for (const [name, call] of Object.entries(module)) {
      if (typeof call !== 'function' || call.constructor.name !== 'Function' || `${call}`.startsWith('class')) continue;
      for (const run of runsOf(call as Call)) await time(`${file} ${name}`, run, texts);
    }
  }
}

/** The same with the text in place of every text. */
function filled<Value>(model: Value, text: string): Value {
  if (typeof model === 'string') return text as Value;
  if (Array.isArray(model)) return model.map((item) => filled(item, text)) as Value;
  if (typeof model !== 'object' || model === null) return model;
  return Object.fromEntries(Object.entries(model).map(([name, value]) => [name, filled(value, text)])) as Value;
}

/** Times every tool: asked with the text, in front of a service that has it in every field, and of one that refuses with it. */
async function timeTools(): Promise<void> {
  // Loaded here: who makes a pattern is seen where its file is loaded first.
  const { tools } = await import('../../src/tools/catalog.ts');
  const { startServer } = await import('../support/server.ts');
  const { id, pageId } = { ...everyFact, ...somePage };
  const whole = {
    id,
    pageId,
    itemId: id,
    itemType: 'ads',
    added: true,
    authenticated: true,
    cursor: null,
    hasMore: false,
  };
  const card = { title: '', body: '', description: '', cta_type: '', link_url: '' };
  const account = {
    name: '',
    type: '',
    userId: '',
    billingUserId: '',
    planId: { deep: '' },
    user: { name: '' },
    notes: [''],
  };
  const model = { ...everyFact, ...somePage, ...account, cards: [card, card] };
  const upstream = await startUpstream();
  const server = await startServer({
    config: { baseUrl: upstream.baseUrl, apiKey: 'svc_live_CANARY01', cacheSeconds: 0 },
  });
  for (const { name, example, input } of tools) {
    const detail = 'detail' in input.shape && { detail: 'full' };
    const args = { ...example({ adIds: [id], pageId, collectionId: id }), ...detail };
    await time(
      name,
      async (text) => {
        const record = {
          ...filled(model, text),
          [text]: text,
          media: [{ type: 'THUMB', nr: 0, url: `https://${text}` }],
          ...whole,
        };
        upstream.does(json({ ...record, collection: record, items: [record] }));
        await server.call('search_ads');
        await server.call('label_ads', { labels: [{ adId: id, label: text.slice(0, 40), value: text.slice(0, 200) }] });
        await server.call(name, args);
        await server.call(name, { ...args, ...filled(args, text), [text]: text });
        upstream.does(
          json({ error: filled({ code: '', message: '', details: { deep: [''] } }, text) }, { status: 422 }),
        );
        await server.call(name, args);
      },
      textsOf([], 0),
      300,
    );
  }
}

const work: Record<string, () => Promise<void>> = {
  patterns: timePatterns,
  functions: timeFunctions,
  tools: timeTools,
};
await work[process.argv[2] ?? '']?.();
process.exit();
