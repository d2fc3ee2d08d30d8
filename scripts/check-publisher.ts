/** Runs before `npm publish`: refuses to publish under names that nobody owns. */
import { readFileSync } from 'node:fs';
import { placeholders } from './docs/published.ts';

const open = placeholders(JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')));
if (open.length > 0) {
  process.stderr.write(
    `publish: fill in ${open.join(', ')} in package.json, then run "npm run docs". See CONTRIBUTING.md, Releasing.\n`,
  );
  process.exit(1);
}
