import fc from 'fast-check';

/**
 * Property tests take the same inputs every time, so that a change is to blame when one fails. To look for new ones:
 * `FAST_CHECK_SEED=random npm test`; a failure names the seed to repeat it with.
 */
const given = process.env.FAST_CHECK_SEED ?? '1';
if (given !== 'random') fc.configureGlobal({ seed: Number(given) });
