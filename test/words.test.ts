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
const testFiles = filesIn('test');

test('code names things in the words of the field', () => {
  const found = files.flatMap((file) => {
    const program = parse(file);
    const names = new Set([
      basename(file)
        .replace(/\.tsx?$/, '')
        .replace(/-(\w)/g, (_, first: string) => first.toUpperCase()),
    ]);
    collectNames(program, names);
    return (
      [...names]
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
  const found = [...files, ...testFiles].flatMap((file) => {
    const names = new Set<string>();
    collectOtherHand(parse(file), names);
    return [...names].map((name) => `${file}: ${name}`);
  });
  expect(found).toEqual([]);
});

/** Constants in capitals, and members that are private by keyword; a constructor has no name to begin with #. */
function collectOtherHand(node: unknown, names: Set<string>): void {
  if (typeof node !== 'object' || node === null) return;
  const { type, id, key, kind, accessibility } = node as Record<'id' | 'key', { name?: string } | undefined> &
    Record<'type' | 'kind' | 'accessibility', unknown>;
  if (type === 'VariableDeclarator' && screaming.test(id?.name ?? '')) names.add(id?.name ?? '');
  if (accessibility === 'private' && kind !== 'constructor') names.add(`private ${key?.name}`);
  for (const child of Object.values(node)) collectOtherHand(child, names);
}

function collectNames(node: unknown, names: Set<string>): void {
  if (typeof node !== 'object' || node === null) return;
  const { type, name } = node as { type?: unknown; name?: unknown };
  if (type === 'Identifier' && typeof name === 'string') names.add(name);
  for (const child of Object.values(node)) collectNames(child, names);
}

const wordsOf = (name: string) => name.split(/(?=[A-Z])|_/).map((word) => word.toLowerCase());
