import { readFileSync, writeFileSync } from 'node:fs';
import { withSettings } from './settings-table.ts';

/** Writes the generated parts of README anew. */
const file = new URL('../../README.md', import.meta.url);
writeFileSync(file, withSettings(readFileSync(file, 'utf8')));
