import fc from 'fast-check';

/**
 * Property tests use the same inputs in every run, so that a new failure comes from a code change.
 * `FAST_CHECK_SEED=random npm test` tries new inputs. A failure prints the seed that reproduces it.
 */
const seedText = process.env.FAST_CHECK_SEED ?? '1';
if (seedText !== 'random') fc.configureGlobal({ seed: Number(seedText) });
