import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { insertExamples, insertQuestions, insertSessions } from './demo-answers.ts';
import { insertBadges, insertLabels, type Publisher, updateManifest, updateRegistryFile } from './published.ts';
import {
  insertFullTools,
  insertHosts,
  insertInstallLinks,
  insertPassedSettings,
  insertResultFormats,
  insertSettings,
  insertTools,
  insertTypes,
} from './reference.ts';
import { insertResults } from './results.ts';

type UpdateText = (text: string, publisher: Publisher) => string | Promise<string>;

/** Creates a function that parses a JSON file, updates its value, and returns the new text of the file. */
const createJsonUpdater =
  (updateValue: (value: object, publisher: Publisher) => object): UpdateText =>
  (text, publisher) =>
    `${JSON.stringify(updateValue(JSON.parse(text), publisher), null, 2)}\n`;

/** The files that contain generated sections, each with the function that updates these sections. */
export const generatedFiles: Record<string, UpdateText> = {
  'README.md': (readme, publisher) => insertQuestions(insertInstallLinks(insertTools(insertBadges(readme, publisher)))),
  'docs/tools.md': (page) => insertExamples(insertFullTools(page)),
  'docs/results.md': insertResults,
  'docs/sessions.md': insertSessions,
  'docs/settings.md': insertSettings,
  'docs/hosts.md': insertResultFormats,
  'docs/host-evidence.md': insertHosts,
  'docs/programs.md': insertTypes,
  'compose.yaml': insertPassedSettings,
  'manifest.json': createJsonUpdater(updateManifest),
  'server.json': createJsonUpdater(updateRegistryFile),
  Dockerfile: insertLabels,
};

/** The entry point of `npm run docs`, which updates all generated files. */
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = new URL('../../', import.meta.url);
  const publisher: Publisher = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
  for (const [file, updateText] of Object.entries(generatedFiles)) {
    const path = new URL(file, root);
    writeFileSync(path, await updateText(readFileSync(path, 'utf8'), publisher));
  }
}
