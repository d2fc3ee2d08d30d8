/** Lists what the publisher has still to fill in. Runs before `npm publish`, and refuses to publish until then. */
import { readFileSync } from 'node:fs';
import { placeholders } from './docs/published.ts';

const read = (file: string) => readFileSync(new URL(`../${file}`, import.meta.url), 'utf8');
const open = placeholders(JSON.parse(read('package.json'))).map((name) => `${name} in package.json`);
if (read('README.md').includes('git clone https://…')) open.push('the address after git clone in README.md');
if (open.length > 0) {
  process.stderr.write(
    `publish: fill in ${open.join(', ')}, then run "npm run docs". See CONTRIBUTING.md, Releasing.\n`,
  );
  process.exit(1);
}
