import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);

export const hasChromium = executablePath !== undefined;

/** A browser of this machine with a new profile, which asks its maker for nothing. */
export function launchChromium(): Promise<Browser> {
  if (executablePath === undefined) throw new Error('There is no Chromium. Debian has it as the package chromium.');
  const quiet = ['--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'];
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-quic', ...quiet] });
}
