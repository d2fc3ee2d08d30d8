import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';
import { describe } from 'vitest';

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);

/** Where it is set, these tests fail rather than skip: `.ci/run` sets it. */
const isRequired = process.env.AD_LIBRARY_TEST_BROWSER === 'required';
const isSkipped = executablePath === undefined && !isRequired;
if (isSkipped) process.stderr.write('The board is not tested: there is no Chromium (Debian: apt install chromium).\n');

/** Tests in a real browser, which a machine without Chromium skips. */
export const inChromium = describe.skipIf(isSkipped);

/** A browser with a new profile, which asks its maker for nothing. */
export function launchChromium(): Promise<Browser> {
  if (executablePath === undefined) throw new Error('There is no Chromium. Debian has it as the package chromium.');
  const quiet = ['--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'];
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-quic', ...quiet] });
}
