import { textsAgainst } from './hostile-texts.ts';
import { separatorsIn, sources } from './source.ts';
import { report, time } from './time.ts';

/** Times every pattern of `src`: those written as literals, and those put together when their file is loaded. */

/** Begins to serve when it is loaded; holds no pattern. */
const process = 'main.ts';
/** Made into ads from our own phrases. */
const ours = /^library\/demo\//;

const made: { pattern: RegExp; stack: string }[] = [];
globalThis.RegExp = new Proxy(RegExp, {
  construct(target, given, newTarget) {
    const pattern = Reflect.construct(target, given, newTarget) as RegExp;
    made.push({ pattern, stack: new Error().stack ?? '' });
    return pattern;
  },
});

for (const source of sources.filter(({ file }) => file !== process && !ours.test(file))) {
  const { literals, constructed } = separatorsIn(source);
  if (constructed > 0) {
    const { keyMasker } = (await import(source.path)) as Partial<typeof import('../../src/log/log.ts')>;
    // The one pattern that is not a constant: it looks for the spellings of a key.
    keyMasker?.('svc_live_CANARY01')('a text to look at');
  }
  const constants = made.filter(({ stack }) => stack.includes(source.path)).map(({ pattern }) => pattern);
  if (constants.length < constructed)
    report(`${source.file} puts a pattern together in a function: make it a constant`);
  for (const pattern of [...literals, ...constants]) {
    // All of its matches are looked for, so that it starts at every character.
    const everywhere = new RegExp(pattern, [...new Set(`${pattern.flags}g`)].join(''));
    await time(`${source.file} ${pattern}`, (text) => text.replace(everywhere, ''), textsAgainst(pattern));
  }
}
