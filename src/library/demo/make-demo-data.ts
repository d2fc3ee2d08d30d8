import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ItemType } from '../../api/schemas.ts';
import { findPage } from '../search/search.ts';
import { recordTypes } from '../search/searchable-records.ts';
import { openLibrary, type ServiceContext } from '../service/service.ts';
import { demoKey } from './demo-key.ts';
import { createDeterministicRandom } from './deterministic-random.ts';
import { advertisers, createSeededRandom, makeAdvertiser } from './market/market.ts';
import type { DemoData } from './packed-demo-data.ts';

/** Makes the data of the demo from the tables of its market, which takes place on the first day of 1970. */
export async function makeDemoData(): Promise<DemoData> {
  const folder = await mkdtemp(join(tmpdir(), 'ad-library-demo-'));
  try {
    const path = join(folder, 'demo.db');
    const advertisers = await writeDatabase(path);
    return { database: await readFile(path), advertisers };
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function writeDatabase(path: string): Promise<DemoData['advertisers']> {
  const { context, keys, close } = await openLibrary({
    database: path,
    now: () => 0,
    random: createDeterministicRandom('library'),
  });
  const { database, records } = context;
  const random = createSeededRandom(1);
  const made: DemoData['advertisers'] = [];
  let firstAd = 1;
  database.transaction(() => {
    for (const advertiser of advertisers) {
      made.push({ seed: random.seed(), firstAdNumber: firstAd });
      const { page, ads } = makeAdvertiser(advertiser, random, 0);
      records.putPage(page);
      for (const ad of ads) records.putAd(ad);
      firstAd += ads.length;
    }
    const { key, userId } = keys.create({ name: 'Demo key' });
    if (key !== demoKey) throw new Error('The key of the demo has changed.');
    fillCollections(context, userId);
    database.run('UPDATE ads SET id = number');
    for (const table of ['ads_json', 'pages_json']) database.run(`DELETE FROM ${table}`);
    // Merges the parts of the full-text indexes, which makes them smaller.
    for (const table of ['ads_text', 'pages_text']) database.run(`INSERT INTO ${table} (${table}) VALUES ('optimize')`);
    // The demo has so few records that indexes save no time.
    const indexes = "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL";
    for (const { name } of database.all<{ name: string }>(indexes)) database.run(`DROP INDEX "${name}"`);
  });
  database.runScript('VACUUM; PRAGMA journal_mode = DELETE');
  close();
  return made;
}

function fillCollections({ database, collections }: ServiceContext, userId: string): void {
  const colleague = `c0${userId.slice(2)}`;
  const best = (kind: ItemType, filters: Record<string, string>, limit: number) =>
    findPage(database, { recordType: recordTypes[kind], filters, asOf: 0 }, limit).rowNumbers;
  const make = (owner: string, name: string, type: string, items: Partial<Record<ItemType, number[]>>) => {
    const number = collections.create({ userId: owner, billingUserId: userId }, { name, type, defaultType: null });
    for (const kind of ['ads', 'pages'] as const)
      for (const item of items[kind] ?? []) collections.addItem(number, kind, item);
  };
  const person = "UPDATE accounts SET name = 'Demo Person', emailAddress = 'person@demo.example' WHERE userId = ?";
  database.run(person, [userId]);
  const other = `INSERT INTO accounts (userId, billingUserId, name, emailAddress, isTeamMember)
    VALUES (?, ?, 'Demo Colleague', 'colleague@demo.example', 1)`;
  database.run(other, [colleague, userId]);
  make(userId, 'Skincare that lasts', 'personal', { ads: best('ads', { query: 'serum', sort: 'daysRunning' }, 12) });
  make(userId, 'Advertisers to watch', 'personal', { pages: best('pages', { sort: 'trend' }, 8) });
  const team = { ads: best('ads', { sort: 'performancePublic' }, 60), pages: best('pages', {}, 3) };
  make(colleague, 'Team swipe file', 'team', team);
}
