import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
// biome-ignore lint/suspicious/noDeprecatedImports: its replacement is a package of its own.
import { parseAst } from 'vitest/node';
import { settings } from '../src/config/settings.ts';

/** Words that stood for something the field has a name for (`book` for a ledger, `lane` for a transport). */
const privateWords =
  /^(allowances?|asked|asking|books|cheapest|dearest|dice|eras?|exchanges?|foreign|gate|habits?|keyed|landed|lanes?|merging|passing|payers?|place|refusals?|said|shelf|shelves|shop|spenders?|standing|strangers?|told|wire)$/;
/** Names that stand for anything: say of what, as in `userRecords`, `cachedVersion`, `remainingTokens`. */
const emptyNames = /^(around|held|known|own|tells|whole)$/;
/** Phrases for which the field or everyday English has a plainer one: monotonic clock, compare-and-swap, heartbeat. */
const privateProse =
  /\b(at most about|(calls?|called) off|clocks? that (only )?goes? on|hangs? up|hung up|if nobody was faster|in vain|(is|are|was|were) (said|told)|known of so many|for want of|nobody (knows|says)|not seen any more|of which nobody|no charge tells|signs? of life|so many (ads|bytes|calls|characters|ids|items|pages|requests|tokens)|tak(es?|en|ing) apart|whoever)\b/i;
/** `evicted`, `inFlight`, `cachedAnswer` or `storedClaim`. */
const privatePhrases = /(letGo|underWay|atHand)($|[A-Z])|^kept[A-Z]|Kept($|[A-Z])/;
/** `maxTokens`, not `MAX_TOKENS`: one casing of limits. Two letters or fewer are a unit (`MB`). */
const screaming = /^[A-Z][A-Z\d_]{2,}$/;
/** `maxItems`, not `mostItems`. */
const superlative = /^(most|largest|longest)[A-Z]/;

const root = fileURLToPath(new URL('..', import.meta.url));
const filesIn = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => join(folder, file));
const parse = (file: string) =>
  parseAst(readFileSync(join(root, file), 'utf8'), { lang: file.endsWith('x') ? 'tsx' : 'ts' });
const files = ['src', 'bench', 'scripts'].flatMap(filesIn);

test('code names things in the words of the field', () => {
  const found = files.flatMap((file) => {
    const fileName = basename(file).replace(/\.tsx?$/, '');
    const names = [...nodesIn(parse(file))].flatMap(({ type, name }) => (type === 'Identifier' ? String(name) : []));
    return (
      [...new Set([...names, fileName.replace(/-(\w)/g, (_, first: string) => first.toUpperCase())])]
        // A setting is called as its variable.
        .filter((name) => !(name in settings))
        .filter(
          (name) =>
            superlative.test(name) ||
            privatePhrases.test(name) ||
            emptyNames.test(name) ||
            wordsOf(name).some((word) => privateWords.test(word)),
        )
        .map((name) => `${file}: ${name}`)
    );
  });
  expect(found).toEqual([]);
});

test('prose says things in the words of the field', () => {
  const documents = readdirSync(join(root, 'docs')).flatMap((file) =>
    file.endsWith('.md') ? [join('docs', file)] : [],
  );
  const found = [...filesIn('src'), ...documents, 'README.md', 'CONTRIBUTING.md', 'SECURITY.md'].flatMap((file) =>
    readFileSync(join(root, file), 'utf8')
      .split('\n')
      .flatMap(
        (line, at) =>
          privateProse
            .exec(line)
            ?.slice(0, 1)
            .map((phrase) => `${file}:${at + 1}: ${phrase}`) ?? [],
      ),
  );
  expect(found).toEqual([]);
});

test('limits have one casing, and what is private begins with #', () => {
  const found = [...files, ...filesIn('test')].flatMap((file) =>
    [...nodesIn(parse(file))].flatMap(({ type, id, accessibility, kind, start }) => {
      const { name = '' } = Object(id) as { name?: string };
      const isLoud = type === 'VariableDeclarator' && screaming.test(name);
      // A constructor has no name to begin with #.
      return isLoud || (accessibility === 'private' && kind !== 'constructor') ? `${file}: ${name} at ${start}` : [];
    }),
  );
  expect(found).toEqual([]);
});

/** A syntax tree and all trees in it. */
function* nodesIn(node: unknown): Generator<Record<string, unknown>> {
  if (typeof node !== 'object' || node === null) return;
  yield node as Record<string, unknown>;
  for (const child of Object.values(node)) yield* nodesIn(child);
}

const wordsOf = (name: string) => name.split(/(?=[A-Z])|_/).map((word) => word.toLowerCase());
