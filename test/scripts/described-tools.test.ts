import { expect, test } from 'vitest';
import { describedTools } from '../../src/mcp/described-tools.ts';
import { listTools } from '../../src/mcp/list-tools.ts';
import { run } from '../support/process.ts';

const messages = [
  {
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
  },
  { id: 2, method: 'tools/list' },
];

test('the built command lists its tools as the sources describe them', async () => {
  const input = messages.map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`).join('');
  const { stdout } = await run([], { input });
  const [, list] = stdout.trim().split('\n');
  expect(JSON.parse(list ?? '').result.tools).toEqual(listTools(describedTools, { withOutput: true }));
});
