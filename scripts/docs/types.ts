import { readFileSync } from 'node:fs';
import { replaceMarked } from './marked.ts';

/** The types of the package, as the last build wrote them. */
export function withTypes(page: string): string {
  const types = readFileSync(new URL('../../dist/embed.d.ts', import.meta.url), 'utf8');
  const block = `\`\`\`ts\n${types.trim().replaceAll('    ', '  ')}\n\`\`\``;
  return replaceMarked(page, 'types', `<!-- not run: the types, as the build writes them -->\n${block}`);
}
