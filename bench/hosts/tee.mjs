/**
 * Stands in for `dist/main.js` in the folder that a host starts. Runs the real server, `server.js`, and records all
 * messages of both directions in `messages.jsonl`, one a line.
 */
import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const pathOf = (name) => fileURLToPath(new URL(name, import.meta.url));
const child = spawn(process.execPath, [pathOf('server.js'), ...process.argv.slice(2)], {
  stdio: ['pipe', 'pipe', 'inherit'],
});
const record = (from, text) => appendFileSync(pathOf('messages.jsonl'), `${JSON.stringify({ from, text })}\n`);
for (const [from, source, target] of [
  ['host', process.stdin, child.stdin],
  ['server', child.stdout, process.stdout],
]) {
  source.pipe(target);
  createInterface({ input: source }).on('line', (line) => record(from, line));
}
child.on('exit', (code) => process.exit(code ?? 1));
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => child.kill(signal));
