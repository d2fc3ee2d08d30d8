import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build, transform } from 'esbuild';

const view = new URL('../src/board/view/', import.meta.url);
const read = (file: string) => readFileSync(new URL(file, view), 'utf8');

/** The board as one page that needs nothing else: its markup with its script and its styles. */
export async function boardPage(): Promise<string> {
  const bundled = await build({
    entryPoints: [fileURLToPath(new URL('main.ts', view))],
    bundle: true,
    write: false,
    format: 'esm',
    target: 'es2022',
    minify: true,
    charset: 'utf8',
    legalComments: 'none',
  });
  const script = bundled.outputFiles[0]?.text.trim() ?? '';
  const styles = await transform(read('board.css'), { loader: 'css', minify: true, legalComments: 'none' });
  return read('board.html')
    .replace(/\n\s*/g, '\n')
    .replace('/* styles */', () => styles.code.trim())
    .replace('/* script */', () => script);
}
