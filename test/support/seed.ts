import fc from 'fast-check';

/**
 * Property tests use the same inputs in every run, so that a failure points to a change of the code.
 * `FAST_CHECK_SEED=random npm test` tries new inputs. A failure prints the seed that repeats it.
 */
const given = process.env.FAST_CHECK_SEED ?? '1';
if (given !== 'random') fc.configureGlobal({ seed: Number(given) });
