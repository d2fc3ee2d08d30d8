import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { type HttpServer, startHttp } from '../support/http.ts';
import { command, type Ran, start } from '../support/process.ts';
import { root } from './pages.ts';

/** What the blocks of the docs take for granted: a clone, a service with a key, a server over HTTP, files to import. */
export interface Stage {
  folder: string;
  key: string;
  /** Puts what is there in place of what a reader has to fill in. */
  fill(text: string): string;
  /** Runs a line of a shell in the folder. Ends a server once it is ready. */
  run(line: string): Promise<Ran>;
  /** The arguments of the last `claude mcp add`. */
  claudeArguments(): string[];
  close(): Promise<void>;
}

const ad = '{"id":"11111111-1111-4111-8111-111111111111"}\n';
const page = '{"pageId":"p","pageName":"P"}\n';

export async function setStage(): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'docs-'));
  const library = start(['library', 'serve', '--demo', '--port', '0']);
  const [, key = ''] = await library.says(/demo key (\S+)$/m);
  const [, baseUrl = ''] = await library.says(/library on (\S+)$/m);
  const http: HttpServer = await startHttp({ baseUrl });
  const fill = (text: string) =>
    text
      .replaceAll('/path/to/ad-library-mcp/', root)
      .replaceAll('svc_live_…', key)
      .replaceAll('https://…', baseUrl)
      .replaceAll('http://127.0.0.1:3000/mcp', http.url);
  const claudeFile = join(folder, 'claude.json');
  layOut(folder, claudeFile);
  const env = { HOME: folder, AD_LIBRARY_API_KEY: key };
  return {
    folder,
    key,
    fill,
    run: (line) => runLine(line, folder, env),
    claudeArguments: () => JSON.parse(readFileSync(claudeFile, 'utf8')),
    close: async () => {
      await http.close();
      library.child.kill();
      await library.ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The folder also holds the programs that come before all others. */
function runLine(line: string, folder: string, env: Record<string, string>): Promise<Ran> {
  const child = spawn('sh', ['-c', line], {
    cwd: folder,
    env: { PATH: `${folder}${delimiter}${process.env.PATH}`, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (text) => {
    stdout += text;
  });
  child.stderr.on('data', (text) => {
    stderr += text;
    if (/(listening|library) on http/.test(stderr) && child.pid) process.kill(-child.pid, 'SIGTERM');
  });
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })));
}

function layOut(folder: string, claudeFile: string): void {
  const file = (name: string, content: string | Uint8Array) => writeFileSync(join(folder, name), content);
  const program = (name: string, script: string) => {
    file(name, script);
    chmodSync(join(folder, name), 0o755);
  };
  const { command: node, args } = command();
  symlinkSync(join(root, 'dist'), join(folder, 'dist'));
  program('ad-library-mcp', `#!/bin/sh\nexec "${node}" "${args[0]}" "$@"\n`);
  // Not Claude Code, which nobody has to install for this: it keeps the words it gets from the shell.
  program(
    'claude',
    `#!${node}\nrequire('node:fs').writeFileSync(${JSON.stringify(claudeFile)}, JSON.stringify(process.argv.slice(2)))\n`,
  );
  file('ads.jsonl', ad);
  file('pages.jsonl', page);
  file('own-ads.csv', readFileSync(join(root, 'docs/examples/own-ads.csv')));
  file('own-ads.jsonl', readFileSync(join(root, 'docs/examples/own-ads.jsonl')));
  file('page-1.json', `{"data":[${ad}]}`);
  file('page-2.json.gz', gzipSync(`{"data":[${ad}]}`));
  file('ads.csv', 'ad_archive_id,page_id,page_name\n1234567890123456,2345,P\n');
  file('report.csv', 'Page ID,Page name,Disclaimer,Amount spent (USD),Number of ads in Library\n2345,P,P,100,3\n');
}
