import { isGated } from '../../src/api/operations.ts';
import { tools } from '../../src/tools/catalog.ts';
import { replaceMarked } from './marked.ts';

/** Characters that README has for a tool: whole sentences, and the first one in any case. */
const maxShort = 160;

/** The tools as README shows them. */
export const withTools = (readme: string): string => replaceMarked(readme, 'tools', toolsTable(firstSentences));

/** The same with all that the description says. */
export const withToolsInFull = (page: string): string =>
  replaceMarked(
    page,
    'tools in full',
    toolsTable((text) => text),
  );

function toolsTable(shown: (description: string) => string): string {
  const rows = tools.map(
    (tool) => `| \`${tool.name}\` | ${shown(tool.description)} | ${isGated(tool) ? 'credits' : 'nothing'} |`,
  );
  return ['| tool | does | costs |', '|---|---|---|', ...rows].join('\n');
}

export function firstSentences(description: string): string {
  let short = '';
  for (const sentence of description.split(/(?<=\.) /)) {
    if (short !== '' && short.length + sentence.length >= maxShort) break;
    short = short === '' ? sentence : `${short} ${sentence}`;
  }
  return short;
}
