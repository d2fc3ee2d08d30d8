import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The path of the repository's root folder. */
export const root = fileURLToPath(new URL('../../', import.meta.url));

/** A documentation page, with its path relative to the root. */
export interface Page {
  file: string;
  text: string;
}

const topLevelPages = 'README AGENTS CONTRIBUTING SECURITY CHANGELOG BENCHMARKS src/library/README'
  .split(' ')
  .map((name) => `${name}.md`);
const docsPages = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.md'))
  .map((file) => `docs/${file.replaceAll('\\', '/')}`);

/** All documentation pages. */
export const pages: Page[] = [...topLevelPages, ...docsPages.sort()].map((file) => ({
  file,
  text: readFileSync(join(root, file), 'utf8'),
}));

/** A fenced code block in a documentation page. */
export interface CodeBlock {
  /** The file, line and language, e.g. `README.md:44 sh`. */
  title: string;
  language: string;
  text: string;
  /** Why no test runs the block, from the comment above it. Undefined if a test runs the block. */
  notRun: string | undefined;
}

const fencePattern = /^( *)(`{3,})(\w*)\n([\s\S]*?)\n\1\2$/gm;

/** Returns the fenced code blocks of a page. The comment `<!-- not run: reason -->` above a block excludes it from tests. */
export function listCodeBlocks({ file, text }: Page): CodeBlock[] {
  return [...text.matchAll(fencePattern)].map(({ index, 1: indent = '', 3: language = '', 4: body = '' }) => {
    const lines = text.slice(0, index).trimEnd().split('\n');
    const comment = /^ *<!-- (?:not run: (.+)|example (\w+)) -->$/.exec(lines.at(-1) ?? '');
    return {
      title: `${file}:${text.slice(0, index).split('\n').length} ${language}`,
      language,
      text: body.replaceAll(`\n${indent}`, '\n').trim(),
      notRun: comment?.[1] ?? (comment?.[2] && 'npm run docs writes it'),
    };
  });
}
