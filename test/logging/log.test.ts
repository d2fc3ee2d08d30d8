import { describe, expect, test } from 'vitest';
import { createFailureWarner, createLogger } from '../../src/logging/log.ts';
import { canaryKey } from '../support/key-encodings.ts';

describe.each([
  ['for people', 'text'],
  ['in JSON', 'json'],
] as const)('The log %s', (name, format) => {
  const logged = (message: string, fields?: Record<string, unknown>): string => {
    const lines: string[] = [];
    createLogger('debug', (line) => lines.push(line), { format }).info(message, fields);
    return lines.join('');
  };

  test('the log masks API keys and every text that follows the word Bearer', () => {
    const fields = {
      requestId: canaryKey,
      error: `Error: "${canaryKey}"\n    at Bearer ${canaryKey.slice(9)}`,
      [canaryKey]: { deep: [canaryKey] },
    };
    const line = logged(`the service said: ${canaryKey}`, { ...fields, status: 422 });
    expect(line).not.toMatch(/canary/i);
    expect(line).toMatch(/status"?[=:]422/);
    if (name === 'in JSON') expect(JSON.parse(line)).toMatchObject({ status: 422 });
  });

  test('the log does not change text that contains no secrets', () => {
    const fields = { path: 'C:\\temp\\x', address: 'https://x.example/?a=b%20c&d=é', note: 'a "quoted" 100 % & more' };
    const line = logged('größer', fields);
    expect(line).toContain('größer');
    for (const value of Object.values(fields)) expect(line).toContain(JSON.stringify(value));
    expect(logged('key', { of: 'svc_live_abcdef' })).toContain('svc_live_***');
  });
});

test('if the storage of the server fails, the log says that the storage, not the API, is the cause', () => {
  const lines: string[] = [];
  const onCall = createFailureWarner(
    createLogger('warn', (line) => lines.push(line)),
    () => 0,
  );
  const call = { tool: 'query_ads', tenantId: 'one', ms: 1 };
  onCall({ ...call, kind: 'unavailable', storage: 'data' });
  expect(lines).toEqual([expect.stringContaining('the storage of this server fails')]);
  expect(lines.join()).not.toContain('AD_LIBRARY_BASE_URL');
  // Each kind of warning has its own interval of a minute, so the failing service is reported although the storage was
  // just reported.
  onCall({ ...call, kind: 'unavailable', status: 503 });
  expect(lines).toEqual([expect.anything(), expect.stringContaining('check AD_LIBRARY_BASE_URL')]);
});
