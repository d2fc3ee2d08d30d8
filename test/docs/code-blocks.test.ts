import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cursorLink, vsCodeLink } from '../../scripts/docs/install-links.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { type CodeBlock, codeBlocks, pages, root } from './pages.ts';
import { answers, connect, runJson } from './run-json.ts';
import { type Stage, setStage } from './stage.ts';

let stage: Stage;
let demo: TestServer;
beforeAll(async () => {
  stage = await setStage();
  demo = await startServer({ config: { demo: true } });
  await demo.call('gather_ads', { filters: { countries: ['DE'] }, maxCredits: 30 });
  const [[adId]] = (await demo.call('query_ads', { sql: 'SELECT id FROM ads LIMIT 1' })).data.rows as [[string]];
  await demo.call('label_ads', { labels: [{ adId, label: 'hook', value: 'question' }] });
});
afterAll(async () => {
  await demo.close();
  await stage.close();
});

const runners: Record<string, (text: string) => Promise<void>> = {
  json: (text) => runJson(text, stage),
  sh: async (text) => {
    for (const line of text.split('\n')) await runShell(line);
  },
  sql: async (sql) => {
    const { text, isError, data } = await demo.call('query_ads', { sql });
    expect({ isError, text }).toEqual({ isError: false, text: expect.stringContaining('Coverage') });
    expect(data.rows).not.toEqual([]);
  },
  ts: async (text) => {
    const program = `${text}\nawait server.close();\nprocess.stdout.write('closed');`;
    const args = ['--input-type=module', '-e', program];
    expect((await promisify(execFile)(process.execPath, args, { cwd: root })).stdout).toBe('closed');
  },
};

/** Pages repeat blocks: each is run once. */
const runs = new Map<string, Promise<void> | undefined>();
function runOnce({ language, text }: CodeBlock): Promise<void> | undefined {
  if (!runs.has(text)) runs.set(text, runners[language]?.(text));
  return runs.get(text);
}

async function runShell(line: string): Promise<void> {
  const filled = stage.fill(line);
  // Any port, as those of the docs may be taken on this machine; a flag that comes later counts.
  const serves = /main\.js http\b|library serve\b/.test(filled);
  const { code, stderr } = await stage.run(serves ? `exec env ${filled} --port 0` : filled);
  expect({ line, code, stderr: code === 0 ? '' : stderr }).toEqual({ line, code: 0, stderr: '' });
  if (line.startsWith('claude mcp add ')) await answers(await connect(readClaude(stage.claudeArguments()), stage));
}

/** What Claude Code makes of `claude mcp add`, as its help says. */
function readClaude(words: string[]) {
  const after = (flag: string) => words.flatMap((word, index) => (words[index - 1] === flag ? [word] : []));
  const pairs = (texts: string[], separator: string) =>
    Object.fromEntries(
      texts.map((text) => [
        text.slice(0, text.indexOf(separator)),
        text.slice(text.indexOf(separator) + separator.length),
      ]),
    );
  if (words.includes('http')) {
    return { url: words.find((word) => word.startsWith('http://')) ?? '', headers: pairs(after('--header'), ': ') };
  }
  const [command = '', ...args] = words.slice(words.indexOf('--') + 1);
  return { command, args, env: pairs(after('-e'), '=') };
}

// The blocks are written for the shells of Unix.
describe.skipIf(process.platform === 'win32').each(pages)('$file', (page) => {
  const blocks = codeBlocks(page);

  test('every block is run, or says why not', () => {
    const untested = blocks.filter(({ language, notRun }) => !notRun && !(language in runners));
    expect(untested.map(({ title }) => title)).toEqual([]);
  });

  test.each(blocks.filter(({ language, notRun }) => !notRun && language in runners))(
    '$title',
    (block) => runOnce(block),
    60_000,
  );
});

test('README’s links add servers that answer', async () => {
  for (const link of [vsCodeLink(true), cursorLink(true)]) {
    expect(pages[0]?.text).toContain(link);
    const query = new URL(link).searchParams;
    const config = query.get('config');
    const server = config
      ? Buffer.from(config, 'base64').toString()
      : decodeURIComponent(query.get('url')?.replace('vscode:mcp/install?', '') ?? '');
    await runJson(server, stage);
  }
});

// Windows has no link to the built command in the stage's folder.
test.skipIf(process.platform === 'win32')('the configuration of this clone serves the demo', () =>
  runJson(readFileSync(join(root, '.mcp.json'), 'utf8'), stage),
);

test('blocks are found with the reason before them, also inside lists', () => {
  const text =
    '# x\n\n<!-- not run: needs a key -->\n```sh\na\n```\n\n1. y\n   ```sql\n   SELECT 1\n   FROM z\n   ```\n\n```\nb\n```\n';
  expect(codeBlocks({ file: 'x.md', text })).toEqual([
    { title: 'x.md:4 sh', language: 'sh', text: 'a', notRun: 'needs a key' },
    { title: 'x.md:9 sql', language: 'sql', text: 'SELECT 1\nFROM z', notRun: undefined },
    { title: 'x.md:14 ', language: '', text: 'b', notRun: undefined },
  ]);
});
