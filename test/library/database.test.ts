import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { listKeys } from '../../src/library/commands/commands.ts';
import { openLibrary } from '../../src/library/open.ts';
import { databaseTest as test } from './support/fixtures.ts';
import { linesOf, startOfTests, uuid } from './support/served-library.ts';

const now = () => startOfTests;
const list = (database: string) => listKeys({ database, now });

/** Makes a library, and changes its tables. */
async function changed(database: string, ...statements: string[]) {
  const { context, close } = await openLibrary({ database, now });
  for (const sql of statements) context.database.run(sql);
  close();
}

describe('a file that is no library of this version is refused and left as it was', () => {
  test.for<[name: string, statements: string[], message: RegExp]>([
    ['of another program', ['PRAGMA application_id = 7'], /ad-library\.db is a database of another program/],
    ['of a newer version', ['PRAGMA user_version = 99'], /written by a newer version .* 99.*Update ad-library-mcp/],
    [
      'that cannot be updated',
      ['DROP TABLE indexed', 'CREATE VIEW indexed AS SELECT 1 AS name'],
      /ad-library\.db could not be brought up to date \(.*view.*\)\. It was left as it was\. Please report this\.$/,
    ],
  ])('%s', async ([_, statements, message], { folder, database }) => {
    await changed(database, ...statements);
    const before = await readFile(database);
    await expect(list(database)).rejects.toThrow(message);
    expect(await readFile(database)).toEqual(before);
    expect(await readdir(folder)).toEqual(['ad-library.db']);
  });

  test('no database, or in a folder that is not there', async ({ folder, database }) => {
    await writeFile(database, 'Dear diary, '.repeat(1000));
    await expect(list(database)).rejects.toThrow(/is not a database of the ad library/);
    await expect(list(join(folder, 'nowhere', 'a.db'))).rejects.toThrow(/cannot be written: .*no such file/);
    await expect(list(join(database, 'a.db'))).rejects.toThrow(/cannot be written: .*not a directory/);
  });
});

type Answer = { totalHits?: number; collection?: { name: string }; items?: { id: string }[] };

const ads = Array.from({ length: 450 }, (_, nr) => ({
  id: uuid(nr),
  pageId: `p${nr % 3}`,
  body: 'Ein guter Tee für jeden Tag, frisch gepflückt und schnell bei dir',
  bylines: `Payer ${nr}`,
  impressionsMax: nr,
}));

async function openAndAsk(database: string, key: string, checkLock = () => {}) {
  const library = await openLibrary({ database, now, checkLock });
  const ask = async (path: string, body?: object): Promise<Answer> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const init = { headers, ...(body && { method: 'POST', body: JSON.stringify(body) }) };
    return (await library.fetch(new Request(`http://library.example/v1/${path}`, init))).json() as Promise<Answer>;
  };
  const hits = async (kind: string, filters: object) =>
    (await ask(`${kind}/search`, { limit: 1, ...filters })).totalHits;
  return { ...library, ask, hits };
}

/** A file with 450 ads of three pages and a key that has spent 7 credits, without what later versions have added. */
async function earlierVersion(database: string): Promise<{ key: string; collection: string }> {
  const { keys, close, ...library } = await openLibrary({ database, now });
  await library.import(linesOf(ads));
  const { key } = keys.create({ name: 'Old', credits: 100 });
  close();
  const { ask, close: closeAgain } = await openAndAsk(database, key);
  const { items = [] } = await ask('collections');
  const collection = items[0]?.id ?? '';
  await ask(`collections/${collection}/items`, { itemType: 'ads', itemId: uuid(4) });
  for (let read = 0; read < 7; read++) await ask(`ads/${uuid(read)}`);
  closeAgain();
  await changed(
    database,
    'ALTER TABLE keys DROP COLUMN unmetered',
    'DROP INDEX ads_impressions',
    'ALTER TABLE ads DROP COLUMN impressions',
    'ALTER TABLE ads DROP COLUMN impressionsLow',
    "UPDATE indexed SET form = 'earlier'",
    'PRAGMA user_version = 1',
  );
  return { key, collection };
}

test('a file of an earlier version is brought up to date and loses nothing, and goes on where it was broken off', async ({
  database,
}) => {
  const { key, collection: id } = await earlierVersion(database);
  let transactions = 0;
  const ends = () => {
    if (++transactions === 6) throw new Error('the process ends');
  };
  await expect(openAndAsk(database, key, ends)).rejects.toThrow('the process ends');
  let more = 0;
  const { ask, hits, keys, close } = await openAndAsk(database, key, () => void more++);
  expect(more).toBeLessThan(transactions + 6);

  expect(keys.list()).toMatchObject([{ name: 'Old', unmetered: false, revokedAt: null }]);
  expect(await ask('credits')).toMatchObject({ credits: 93, usageLimit: { hourlyCredits: 7 } });
  const { collection, items = [] } = await ask(`collections/${id}/items?itemType=ads`);
  expect([collection?.name, items.map((item) => item.id)]).toEqual(['Saved ads', [uuid(4)]]);
  for (const [filters, found] of [
    [{ query: 'tee' }, 450],
    [{ language: 'de' }, 450],
    [{ bylines: '"payer 449"' }, 1],
    [{ missing: ['headline'], impressionsTo: 9 }, 10],
  ] as const)
    expect([filters, await hits('ads', filters)]).toEqual([filters, found]);
  expect(await hits('pages', { missing: ['pageLikes'] })).toBe(3);
  expect(await ask(`ads/${uuid(449)}`)).toEqual(ads[449]);
  expect(keys.create({ unmetered: true })).toMatchObject({ unmetered: true });
  close();
});
