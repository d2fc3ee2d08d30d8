import { describe } from 'vitest';
import { hasChromium } from './launch-chromium.ts';

/** Where it is set to `required`, these tests fail rather than skip: `.ci/run` sets it. */
const isSkipped = !hasChromium && process.env.AD_LIBRARY_TEST_BROWSER !== 'required';
if (isSkipped) process.stderr.write('The board is not tested: there is no Chromium (Debian: apt install chromium).\n');

/** Tests in a real browser, which a machine without Chromium skips. */
export const inChromium = describe.skipIf(isSkipped);
