import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { type Page, pages, root } from './pages.ts';

function listLinks({ text }: Page): string[] {
  const prose = text.replace(/^( *)(`{3,})[\s\S]*?\n\1\2$/gm, '').replace(/`[^`\n]*`/g, '');
  const links = [...prose.matchAll(/\]\(([^)\s]+)\)|\b(?:src|srcset|href)="([^"]+)"/g)].map(
    ([, link, tag]) => link ?? tag ?? '',
  );
  return links.filter((link) => !/^(https?|mailto):/.test(link));
}

/** Returns the anchors that GitHub generates for the headings of a page. */
const listAnchors = ({ text }: Page): string[] =>
  [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .replace(/<[^>]+>/g, '')
      .trim()
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );

test.each(pages)('every relative link in the page $file leads to an existing file and heading', (page) => {
  const broken = listLinks(page).filter((link) => {
    const [path = '', anchor] = link.split('#');
    const file = path === '' ? page.file : join(dirname(page.file), path);
    if (!existsSync(join(root, file))) return true;
    const target = pages.find((other) => other.file === file.replaceAll('\\', '/'));
    return anchor !== undefined && !(target && listAnchors(target).includes(anchor));
  });
  expect(broken).toEqual([]);
});

test('every page in docs can be reached from the README through links', () => {
  const linkedFiles = new Set<string>();
  const visit = (file: string): void => {
    const page = pages.find((other) => other.file === file);
    if (!page || linkedFiles.has(file)) return;
    linkedFiles.add(file);
    for (const link of listLinks(page)) visit(join(dirname(file), link.split('#')[0] ?? '').replaceAll('\\', '/'));
  };
  visit('README.md');
  expect(pages.map(({ file }) => file).filter((file) => file.startsWith('docs/') && !linkedFiles.has(file))).toEqual(
    [],
  );
});

/** Returns the repository paths in code spans, e.g. `src/app.ts`. Skips paths with placeholders such as `<name>`. */
const listPaths = ({ text }: Page): string[] =>
  [...text.matchAll(/`((?:src|test|scripts|bench|docs)\/[\w./-]+)`/g)].map(([, path = '']) => path);

test.each(pages)('every repository path that the page $file mentions exists', (page) => {
  expect(listPaths(page).filter((path) => !existsSync(join(root, path)))).toEqual([]);
});
