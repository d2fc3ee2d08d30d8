import { makeDemoCalls } from '../../test/support/demo-calls.ts';
import { startServer } from '../../test/support/server.ts';
import { replaceMarked } from './marked.ts';

/** The day the examples are of: demo data is the same on the same day. */
export const day = Date.UTC(2026, 0, 15, 12);

/** Every tool's call and the text it gives on demo data, as Markdown, by tool. */
async function examples(): Promise<Map<string, string>> {
  const server = await startServer({ config: { demo: true }, now: () => day });
  const called = await makeDemoCalls(server.call);
  await server.close();
  return new Map(
    called.map(({ name, args, result }) => [name, fenced(`${name} ${JSON.stringify(args)}\n\n${result.text}`)]),
  );
}

/** Results hold text of third parties: a fence longer than any in it. */
export function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}text\n${text}\n${fence}`;
}

/** Every example, each under the name of its tool, which opens it. */
export async function withExamples(page: string): Promise<string> {
  const parts = [...(await examples())].map(
    ([name, example]) =>
      `<details><summary><code>${name}</code></summary>\n\n<!-- example ${name} -->\n${example}\n\n</details>`,
  );
  return replaceMarked(page, 'examples', `\n${parts.join('\n\n')}\n`);
}
