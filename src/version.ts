import { createRequire } from 'node:module';

/** The package's own version: `package.json` is its only author. */
export const { version } = createRequire(import.meta.url)('../package.json') as { version: string };
