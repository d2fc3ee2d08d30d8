import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type BuildOptions, build } from 'esbuild';

const view = new URL('../src/board/view/', import.meta.url);
const read = (file: string) => readFileSync(new URL(file, view), 'utf8');

/** The board as one page that needs nothing else: its markup with its script and its styles. */
export async function boardPage(): Promise<string> {
  const [script, styles] = await Promise.all([bundled('main.ts', { target: 'es2022' }), bundled('board.css')]);
  const page = read('board.html')
    .replace(/\n\s*/g, '\n')
    .replace('/* styles */', () => styles)
    .replace('/* script */', () => script);
  // The word by which the tools of the board know the page: the same for the same build, wherever it runs.
  return page.replace('/* word */', hash('sha256', page).slice(0, 16));
}

async function bundled(file: string, options: BuildOptions = {}): Promise<string> {
  const entryPoints = [fileURLToPath(new URL(file, view))];
  const shared = {
    bundle: true,
    write: false,
    format: 'esm',
    minify: true,
    charset: 'utf8',
    legalComments: 'none',
  } as const;
  const { outputFiles } = await build({ ...options, ...shared, entryPoints });
  return outputFiles[0]?.text.trim() ?? '';
}
