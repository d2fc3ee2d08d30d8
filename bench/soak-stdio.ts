import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { command } from '../test/support/process.ts';
import { attach, debuggerAddress, inspected } from './debugger.ts';
import { megabytes, residentMegabytes } from './memory.ts';
import type { SoakOptions } from './soak-http.ts';
import { type ToolResult, trafficOf } from './traffic.ts';

/** Calls in flight at once: hosts ask several things of one server. */
const concurrency = 4;
const samples = 10;
/** What a full cache takes differs with what is in it, and little else is left to grow. */
const share = 0.1;

interface Sample {
  calls: number;
  heap: number;
  rss: number;
}

/** Mixed calls over stdio; resolves with whether memory came to rest and every answer was right. */
export async function soakStdio({ baseUrl, callers, say }: SoakOptions, calls: number): Promise<boolean> {
  const [caller] = callers;
  if (!caller) throw new Error('Nobody to call.');
  const server = speaker(baseUrl, caller.key);
  const inside = await attach(await server.debuggerAt);
  const traffic = trafficOf(caller, calls);
  const complaints: string[] = [];
  const series: Sample[] = [];
  const ask = async () => {
    const question = traffic.next();
    const result = await server.call(question.tool, question.args);
    if (question.right(result)) traffic.learn(question, result);
    else complaints.push(`${question.tool} ${JSON.stringify(question.args).slice(0, 200)}: ${JSON.stringify(result)}`);
  };

  await server.begin();
  const each = Math.max(1, Math.ceil(calls / samples));
  for (let done = 0; done < calls; ) {
    let left = Math.min(each, calls - done);
    done += left;
    const caller = async () => {
      while (left-- > 0) await ask();
    };
    await Promise.all(Array.from({ length: concurrency }, caller));
    series.push({ calls: done, heap: await inside.heapUsed(), rss: residentMegabytes(server.pid) });
  }
  inside.close();
  const code = await server.end();

  say(`stdio: ${calls} calls, ${concurrency} at once`);
  say(`${'calls'.padStart(8)}${'heap MB'.padStart(12)}${'RSS MB'.padStart(12)}`);
  for (const { calls, heap, rss } of series) {
    say(`${String(calls).padStart(8)}${megabytes(heap).padStart(12)}${String(rss).padStart(12)}`);
  }
  const third = Math.floor(series.length / 3);
  const rested = (['heap', 'rss'] as const).map((what) => {
    const values = series.map((sample) => sample[what]);
    const growth = mean(values.slice(-third)) / mean(values.slice(-2 * third, -third)) - 1;
    say(`${what}: the last third is ${(growth * 100).toFixed(1)} % above the middle one (at most ${share * 100} %)`);
    // Where the system does not tell, there is nothing to judge.
    return !(growth > share);
  });
  for (const complaint of complaints.slice(0, 10)) say(`WRONG ${complaint.slice(0, 800)}`);
  return rested.every(Boolean) && complaints.length === 0 && code === 0;
}

const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** The built server over stdio, and a client that speaks the protocol and keeps nothing of it. */
function speaker(baseUrl: string, key: string) {
  const { command: file, args } = command();
  const env = { PATH: process.env.PATH ?? '', AD_LIBRARY_API_KEY: key, AD_LIBRARY_BASE_URL: baseUrl, ...inspected };
  const child = spawn(file, args, { env, stdio: 'pipe' });
  const waiting = new Map<number, (result: ToolResult) => void>();
  createInterface(child.stdout).on('line', (line) => {
    const { id, result, error } = JSON.parse(line) as { id: number; result?: ToolResult; error?: { message: string } };
    waiting.get(id)?.(result ?? { isError: true, content: [{ text: error?.message ?? '' }] });
    waiting.delete(id);
  });
  const debuggerAt = new Promise<string>((resolve) => {
    createInterface(child.stderr).on('line', (line) => {
      const [, address] = debuggerAddress.exec(line) ?? [];
      if (address !== undefined) resolve(address);
    });
  });
  const ended = once(child, 'close');
  const gone = ended.then(([code]) => Promise.reject(new Error(`The server ended with ${code}.`)));
  gone.catch(() => {});
  let id = 0;
  const send = (method: string, params: object) => {
    const answered = new Promise<ToolResult>((resolve) => waiting.set(++id, resolve));
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    return Promise.race([answered, gone]);
  };
  const clientInfo = { name: 'soak', version: '1' };
  return {
    pid: child.pid,
    debuggerAt,
    begin: () => send('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }),
    call: (name: string, args: object) => send('tools/call', { name, arguments: args }),
    end: async (): Promise<number | null> => {
      child.stdin.end();
      const [code] = await ended;
      return code;
    },
  };
}
