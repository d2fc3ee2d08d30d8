import { isGated, tools } from '../../src/tools/catalog.ts';

/** The tools as README shows them. */
export function toolsTable(): string {
  const rows = tools.map(
    (tool) => `| \`${tool.name}\` | ${tool.description} | ${isGated(tool) ? 'paid' : 'not gated'} |`,
  );
  return ['| tool | does | credits |', '|---|---|---|', ...rows].join('\n');
}

const marked = /(<!-- tools -->\n)[\s\S]*?(<!-- \/tools -->)/;

export const withTools = (readme: string): string =>
  readme.replace(marked, (_, before: string, after: string) => `${before}${toolsTable()}\n${after}`);
