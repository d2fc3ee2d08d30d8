import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { withExamples, withQuestions, withSessions } from './demo-answers.ts';
import { type Publisher, withBadges, withLabels, withManifest, withRegistryFile } from './published.ts';
import {
  withHosts,
  withInstallLinks,
  withPassedSettings,
  withSettings,
  withTools,
  withToolsInFull,
  withTypes,
} from './reference.ts';
import { withResults } from './results.ts';

type Write = (text: string, publisher: Publisher) => string | Promise<string>;

const json =
  (write: (value: object, publisher: Publisher) => object): Write =>
  (text, publisher) =>
    `${JSON.stringify(write(JSON.parse(text), publisher), null, 2)}\n`;

/** Each file with generated parts, and what writes them anew into its text. */
export const generated: Record<string, Write> = {
  'README.md': (readme, publisher) => withQuestions(withInstallLinks(withTools(withBadges(readme, publisher)))),
  'docs/tools.md': (page) => withExamples(withToolsInFull(page)),
  'docs/results.md': withResults,
  'docs/sessions.md': withSessions,
  'docs/settings.md': withSettings,
  'docs/host-evidence.md': withHosts,
  'docs/programs.md': withTypes,
  'compose.yaml': withPassedSettings,
  'manifest.json': json(withManifest),
  'server.json': json(withRegistryFile),
  Dockerfile: withLabels,
};

/** `npm run docs` writes all of them. */
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = new URL('../../', import.meta.url);
  const publisher: Publisher = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
  for (const [file, write] of Object.entries(generated)) {
    const path = new URL(file, root);
    writeFileSync(path, await write(readFileSync(path, 'utf8'), publisher));
  }
}
