/**
 * Writes the plugins for agent hosts to `dist-plugins/`: a folder for each kind of host, and a ZIP archive with the
 * same files. Run it with `npm run pack:plugins`.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { zipFiles } from './bundle.ts';
import { packPlugins } from './plugins.ts';

const root = new URL('../', import.meta.url);
const targetFolder = new URL('dist-plugins/', root);
const { name, version } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));

rmSync(targetFolder, { recursive: true, force: true });
for (const { folderName, files } of packPlugins()) {
  for (const [path, content] of Object.entries(files)) {
    const file = fileURLToPath(new URL(`${folderName}/${path}`, targetFolder));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
  const archive = `${name}-${version}-${folderName}.zip`;
  const bytes = zipFiles(files);
  writeFileSync(new URL(archive, targetFolder), bytes);
  process.stdout.write(
    `dist-plugins/${folderName}/ and dist-plugins/${archive}: ${bytes.length.toLocaleString('en')} bytes\n`,
  );
}
