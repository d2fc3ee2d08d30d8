import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const folder = createTemporaryFolder();
const program = fileURLToPath(new URL('../../scripts/check-image.ts', import.meta.url));
const works = 'exit 0';

// The stand-ins for container engines are shell scripts.
test.skipIf(process.platform === 'win32').each([
  ['there is no container engine', {}, 'no container engine is installed; install podman'],
  ['only buildah is installed', { buildah: works }, 'buildah can build the image but cannot run this check'],
  ['the daemon of docker is stopped', { docker: '[ "$1" = --version ]' }, 'docker is installed but does not work'],
  ['the build fails', { podman: '[ "$1" = info ] || exit 3' }, '"podman build'],
])(
  'the command "npm run image:check" prints a reason and exits with code 1 if %s',
  (name, engines: Record<string, string>, reason) => {
    const binFolder = join(folder, name.replaceAll(' ', '-'));
    mkdirSync(binFolder);
    for (const [engine, script] of Object.entries(engines)) {
      writeFileSync(join(binFolder, engine), `#!/bin/sh\n${script}\n`);
      chmodSync(join(binFolder, engine), 0o755);
    }
    const { status, stderr } = spawnSync(process.execPath, ['--import', 'tsx', program], {
      env: { ...process.env, PATH: binFolder },
      encoding: 'utf8',
    });
    expect([status, stderr]).toEqual([1, expect.stringMatching(/^image:check: [^\n]+\n$/)]);
    expect(stderr).toContain(reason);
  },
);
