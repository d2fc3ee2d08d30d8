import { readFileSync, writeFileSync } from 'node:fs';
import { withExamples } from './examples.ts';
import { withHosts } from './hosts-table.ts';
import { withInstallLinks } from './install-links.ts';
import { withCatalog } from './manifest.ts';
import { replaceMarked } from './marked.ts';
import { badges, withLabels, withManifestPublisher, withRegistryPublisher } from './publisher.ts';
import { withQuestions } from './questions.ts';
import { withPackage } from './registry-file.ts';
import { withResults } from './results.ts';
import { withSessions } from './sessions.ts';
import { withPassedSettings, withSettings } from './settings-table.ts';
import { withTools, withToolsInFull } from './tools-table.ts';
import { withTypes } from './types.ts';

/** Writes the generated parts of README, docs, the desktop manifest, the registry file and the Dockerfile anew. */
const root = new URL('../../', import.meta.url);
const publisher = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
const rewrite = async (file: string, written: (text: string) => string | Promise<string>) => {
  const path = new URL(file, root);
  writeFileSync(path, await written(readFileSync(path, 'utf8')));
};
const json = (written: (value: object) => object) => (text: string) =>
  `${JSON.stringify(written(JSON.parse(text)), null, 2)}\n`;

await rewrite('README.md', (readme) => {
  const facts = replaceMarked(readme, 'badges', badges(publisher, publisher.engines));
  return withQuestions(withInstallLinks(withTools(facts)));
});
await rewrite('docs/tools.md', (page) => withExamples(withToolsInFull(page)));
await rewrite('docs/results.md', withResults);
await rewrite('docs/sessions.md', withSessions);
await rewrite('docs/settings.md', withSettings);
await rewrite('compose.yaml', withPassedSettings);
await rewrite('docs/host-evidence.md', withHosts);
await rewrite('docs/programs.md', withTypes);
await rewrite(
  'manifest.json',
  json((manifest) => withManifestPublisher(withCatalog(manifest), publisher)),
);
await rewrite(
  'server.json',
  json((file) => withRegistryPublisher(withPackage(file), publisher)),
);
await rewrite('Dockerfile', (dockerfile) => withLabels(dockerfile, publisher));
