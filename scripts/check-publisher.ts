/**
 * Lists the publisher details in package.json that are still placeholders. Runs before `npm publish` and stops the
 * publication if a placeholder remains.
 */
import { readFileSync } from 'node:fs';
import { listPlaceholders } from './docs/published.ts';

const readProjectFile = (file: string) => readFileSync(new URL(`../${file}`, import.meta.url), 'utf8');
const missingDetails = listPlaceholders(JSON.parse(readProjectFile('package.json'))).map(
  (name) => `${name} in package.json`,
);
if (readProjectFile('README.md').includes('git clone https://…'))
  missingDetails.push('the address after git clone in README.md');
if (missingDetails.length > 0) {
  process.stderr.write(
    `publish: fill in ${missingDetails.join(', ')}, then run "npm run docs". See CONTRIBUTING.md, Releasing.\n`,
  );
  process.exit(1);
}
