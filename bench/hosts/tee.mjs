/**
 * Replaces `dist/main.js` in the folder from which a host starts the server. Runs the real server (`server.js`) and
 * records the messages of both directions in `messages.jsonl`, one message per line.
 */
import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const resolvePath = (name) => fileURLToPath(new URL(name, import.meta.url));
const child = spawn(process.execPath, [resolvePath('server.js'), ...process.argv.slice(2)], {
  stdio: ['pipe', 'pipe', 'inherit'],
});
const record = (from, text) => appendFileSync(resolvePath('messages.jsonl'), `${JSON.stringify({ from, text })}\n`);
for (const [from, source, target] of [
  ['host', process.stdin, child.stdin],
  ['server', child.stdout, process.stdout],
]) {
  source.pipe(target);
  createInterface({ input: source }).on('line', (line) => record(from, line));
}
child.on('exit', (code) => process.exit(code ?? 1));
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => child.kill(signal));
