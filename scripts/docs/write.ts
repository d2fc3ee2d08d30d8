import { readFileSync, writeFileSync } from 'node:fs';
import { withExamples } from './examples.ts';
import { withInstallLinks } from './install-links.ts';
import { withCatalog } from './manifest.ts';
import { withQuestions } from './questions.ts';
import { withPackage } from './registry-file.ts';
import { withSettings } from './settings-table.ts';
import { withTools, withToolsInFull } from './tools-table.ts';

/** Writes the generated parts of README, docs, the desktop manifest and the registry file anew. */
const root = new URL('../../', import.meta.url);
const rewrite = async (file: string, written: (text: string) => string | Promise<string>) => {
  const path = new URL(file, root);
  writeFileSync(path, await written(readFileSync(path, 'utf8')));
};
const json = (written: (value: object) => object) => (text: string) =>
  `${JSON.stringify(written(JSON.parse(text)), null, 2)}\n`;

await rewrite('README.md', (readme) => withQuestions(withInstallLinks(withTools(readme))));
await rewrite('docs/tools.md', (page) => withExamples(withToolsInFull(page)));
await rewrite('docs/settings.md', withSettings);
await rewrite('manifest.json', json(withCatalog));
await rewrite('server.json', json(withPackage));
