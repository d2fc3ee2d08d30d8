import { describe } from 'vitest';
import { hasChromium } from './launch-chromium.ts';

/** With `AD_LIBRARY_TEST_BROWSER=required`, the tests fail if there is no Chromium. Otherwise they are skipped. */
const isSkipped = !hasChromium && process.env.AD_LIBRARY_TEST_BROWSER !== 'required';
if (isSkipped)
  process.stderr.write(
    'Chromium is not installed, so the tests of the board are skipped (Debian: apt install chromium-headless-shell).\n',
  );

/** Defines tests in a real browser. */
export const inChromium = describe.skipIf(isSkipped);
