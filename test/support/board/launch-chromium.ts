import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

/**
 * The path of the installed browser, or undefined if none is installed. The headless shell comes first, because the
 * tests of the board need a quarter less processor time in this browser without a user interface.
 */
const executablePath = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
].find(existsSync);

/** True if Chromium is installed. */
export const hasChromium = executablePath !== undefined;

/** Starts the installed browser with a new profile and without requests of its own. */
export function launchChromium(): Promise<Browser> {
  if (executablePath === undefined)
    throw new Error('Chromium is not installed. On Debian, install the package chromium-headless-shell.');
  const quiet = ['--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'];
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-quic', ...quiet] });
}
