import fc from 'fast-check';
import { expect, test } from 'vitest';
import { unknownVariables } from '../../src/config/read-config.ts';
import { settings } from '../../src/config/settings.ts';

const variables = Object.values(settings).map(({ variable }) => variable);
const prefix = 'AD_LIBRARY_';

/** One slip of the hand: a letter left out, typed twice, or two in each other's place. */
const slips = [
  (name: string, at: number) => name.slice(0, at) + name.slice(at + 1),
  (name: string, at: number) => name.slice(0, at + 1) + name.slice(at),
  (name: string, at: number) => name.slice(0, at) + name.charAt(at + 1) + name.charAt(at) + name.slice(at + 2),
];

test('a variable with one slip in it is taken for the setting that was meant', () => {
  fc.assert(
    fc.property(fc.constantFrom(...variables), fc.constantFrom(...slips), fc.nat(), (variable, slip, number) => {
      const name = variable.slice(prefix.length);
      const written = prefix + slip(name, number % (name.length - 1));
      fc.pre(!variables.includes(written));
      expect(unknownVariables({ [written]: '1' })).toEqual([expect.stringMatching(`did you mean ${variable}\\?$`)]);
    }),
    { numRuns: 1000 },
  );
});
