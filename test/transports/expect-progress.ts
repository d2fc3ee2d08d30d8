import { expect } from 'vitest';
import type { TestClient } from '../support/clients.ts';

/**
 * Gathers demo ads and expects a progress report for each page.
 * @param countries must be unique in a test file, because cached pages cause no progress reports
 */
export async function expectProgress(client: TestClient, countries: string[]): Promise<void> {
  const reports: { progress: number }[] = [];
  const question = { filters: { countries }, maxCredits: 100, maxAds: 250 };
  const { data } = await client.callWithProgress('gather_ads', question, {
    onprogress: (report) => reports.push(report),
  });
  expect(data).toMatchObject({ read: 250, stopped: 'maxAds' });
  expect(reports.at(-1)).toMatchObject({ progress: 250, total: 250, message: `250 ads read of ${data.found}` });
  expect(reports.map(({ progress }) => progress)).toEqual([100, 200, 250]);
}
