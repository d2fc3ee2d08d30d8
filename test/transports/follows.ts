import { expect } from 'vitest';
import type { TestClient } from '../support/clients.ts';

/** Gathers ads of the demo from countries that nobody has asked for before, and expects a report of each page. */
export async function follows(client: TestClient, countries: string[]): Promise<void> {
  const reports: { progress: number }[] = [];
  const question = { filters: { countries }, maxCredits: 100, maxAds: 250 };
  const { data } = await client.callWithProgress('gather_ads', question, {
    onprogress: (report) => reports.push(report),
  });
  expect(data).toMatchObject({ read: 250, stopped: 'maxAds' });
  expect(reports.at(-1)).toMatchObject({ progress: 250, total: 250, message: `250 ads read of ${data.found}` });
  expect(reports.map(({ progress }) => progress)).toEqual([100, 200, 250]);
}
