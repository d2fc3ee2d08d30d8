import { makeDemoCalls } from '../../test/support/demo-calls.ts';
import { startServer } from '../../test/support/server.ts';

/** The day the examples are of: demo data is the same on the same day. */
export const day = Date.UTC(2026, 0, 15, 12);

/** Every tool's call and the text it gives on demo data, as Markdown, by tool. */
export async function examples(): Promise<Map<string, string>> {
  const server = await startServer({ config: { demo: true }, now: () => day });
  const called = await makeDemoCalls(server.call);
  await server.close();
  return new Map(
    called.map(({ name, args, result }) => [name, fenced(`${name} ${JSON.stringify(args)}\n\n${result.text}`)]),
  );
}

/** Results hold text of third parties: a fence longer than any in it. */
function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}text\n${text}\n${fence}`;
}

const marked = /(<!-- example (\w+) -->\n)[\s\S]*?(<!-- \/example -->)/g;

/** Writes the example of a tool wherever its markers are: `<!-- example search_ads -->` to `<!-- /example -->`. */
export async function withExamples(page: string): Promise<string> {
  const byTool = await examples();
  return page.replace(marked, (whole, before: string, tool: string, after: string) => {
    const example = byTool.get(tool);
    return example === undefined ? whole : `${before}${example}\n${after}`;
  });
}
