import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ItemType } from '../../api/schemas.ts';
import { findResultPage } from '../search/search.ts';
import { recordTypes } from '../search/searchable-records.ts';
import type { ServiceContext } from '../service/context.ts';
import { openLibrary } from '../service/service.ts';
import type { AdvertiserSource, DemoData } from './built-demo-data.ts';
import { demoKey } from './demo-key.ts';
import { createDeterministicRandom } from './deterministic-random.ts';
import { advertisers, createSeededRandom, makeAdvertiser } from './market/market.ts';

/**
 * Generates the demo data from the JSON tables in the `market` folder. All dates are relative to 1 January 1970. The
 * demo library adds the current day to these dates later.
 */
export async function makeDemoData(): Promise<DemoData> {
  const folder = await mkdtemp(join(tmpdir(), 'ad-library-demo-'));
  try {
    const path = join(folder, 'demo.db');
    const advertiserSources = await generateDatabase(path);
    const database = await readFile(path);
    return { writeDatabase: (copyPath) => writeFile(copyPath, database), advertisers: advertiserSources };
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function generateDatabase(path: string): Promise<AdvertiserSource[]> {
  const { context, keys, close } = await openLibrary({
    database: path,
    now: () => 0,
    random: createDeterministicRandom('library'),
  });
  const { database, recordStore } = context;
  const random = createSeededRandom(1);
  const advertiserSources: AdvertiserSource[] = [];
  let firstAdRowNumber = 1;
  database.transaction(() => {
    for (const advertiser of advertisers) {
      const seed = random.getSeed();
      const { page, ads, campaignStarts } = makeAdvertiser(advertiser, random, 0);
      advertiserSources.push({ seed, firstAdRowNumber, adCount: ads.length, page, campaignStarts });
      recordStore.putPage(page);
      for (const ad of ads) recordStore.putAd(ad);
      firstAdRowNumber += ads.length;
    }
    const { key, userId } = keys.create({ name: 'Demo key' });
    if (key !== demoKey) throw new Error('The key of the demo has changed.');
    createDemoCollections(context, userId);
    database.run('UPDATE ads SET id = number');
    for (const table of ['ads_json', 'pages_json']) database.run(`DELETE FROM ${table}`);
    // Merge the segments of both full-text indexes, so that the database file becomes smaller.
    for (const table of ['ads_text', 'pages_text']) database.run(`INSERT INTO ${table} (${table}) VALUES ('optimize')`);
    // Drop the indexes, because searches of so few records are fast without them and the file becomes smaller.
    const selectIndexesSql = "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL";
    for (const { name } of database.all<{ name: string }>(selectIndexesSql)) database.run(`DROP INDEX "${name}"`);
  });
  database.runScript('VACUUM; PRAGMA journal_mode = DELETE');
  close();
  return advertiserSources;
}

/** Creates the collections of the demo user and of a colleague. Both users can see all collections. */
function createDemoCollections({ database, collections }: ServiceContext, userId: string): void {
  const colleagueId = `c0${userId.slice(2)}`;
  const findItems = (itemType: ItemType, filters: Record<string, string>, limit: number) =>
    findResultPage(database, { recordType: recordTypes[itemType], filters, searchTimeMs: 0 }, limit).rowNumbers;
  const createCollection = (
    ownerId: string,
    name: string,
    type: string,
    items: Partial<Record<ItemType, number[]>>,
  ) => {
    const owner = { userId: ownerId, billingUserId: userId };
    const collectionNumber = collections.createCollection(owner, { name, type, defaultType: null });
    for (const itemType of ['ads', 'pages'] as const)
      for (const rowNumber of items[itemType] ?? []) collections.addItem(collectionNumber, itemType, rowNumber);
  };
  database.run("UPDATE accounts SET name = 'Demo Person', emailAddress = 'person@demo.example' WHERE userId = ?", [
    userId,
  ]);
  const insertColleague = `INSERT INTO accounts (userId, billingUserId, name, emailAddress, isTeamMember)
    VALUES (?, ?, 'Demo Colleague', 'colleague@demo.example', 1)`;
  database.run(insertColleague, [colleagueId, userId]);
  const serumAds = findItems('ads', { query: 'serum', sort: 'daysRunning' }, 12);
  createCollection(userId, 'Skincare that lasts', 'personal', { ads: serumAds });
  createCollection(userId, 'Advertisers to watch', 'personal', { pages: findItems('pages', { sort: 'trend' }, 8) });
  const bestAds = findItems('ads', { sort: 'performancePublic' }, 60);
  createCollection(colleagueId, 'Team swipe file', 'team', { ads: bestAds, pages: findItems('pages', {}, 3) });
}
