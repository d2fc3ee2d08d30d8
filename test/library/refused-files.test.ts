import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { listKeys } from '../../src/library/commands/commands.ts';
import { openLibrary } from '../../src/library/open.ts';
import { databaseTest as test } from './support/fixtures.ts';
import { startOfTests } from './support/served-library.ts';

const now = () => startOfTests;

const target = (database: string) => ({ database, now });
describe('a file that is no library of this version', () => {
  test('that belongs to another program is refused and left unchanged', async ({ folder, database }) => {
    const { context, close } = await openLibrary({ database, now });
    context.database.run('PRAGMA application_id = 7');
    close();
    await expect(listKeys(target(database))).rejects.toThrow(/ad-library\.db is a database of another program/);
    expect(await readdir(folder)).toEqual(['ad-library.db']);
  });

  test('of a newer version is refused', async ({ folder, database }) => {
    const { context, close } = await openLibrary({ database, now });
    context.database.run('PRAGMA user_version = 99');
    close();
    await expect(listKeys(target(database))).rejects.toThrow(/written by a newer version .* 99.*Update ad-library-mcp/);
    expect(await readdir(folder)).toEqual(['ad-library.db']);
  });

  test('that cannot be updated is left as it was, and the message says what failed', async ({ folder, database }) => {
    const { context, close } = await openLibrary({ database, now });
    context.database.run('DROP TABLE indexed');
    context.database.run('CREATE VIEW indexed AS SELECT 1 AS name');
    close();
    const before = await readFile(database);
    await expect(listKeys(target(database))).rejects.toThrow(
      /ad-library\.db could not be brought up to date \(.*view.*\)\. It was left as it was\. Please report this\.$/,
    );
    expect(await readFile(database)).toEqual(before);
    expect(await readdir(folder)).toEqual(['ad-library.db']);
  });

  test('that is no database is refused', async ({ database }) => {
    await writeFile(database, 'Dear diary, '.repeat(1000));
    await expect(listKeys(target(database))).rejects.toThrow(/is not a database of the ad library/);
  });

  test('in a missing folder is refused', async ({ folder, database }) => {
    database = join(folder, 'nowhere', 'a.db');
    await expect(listKeys(target(database))).rejects.toThrow(/cannot be written: .*no such file/);
    await writeFile(join(folder, 'file'), '');
    database = join(folder, 'file', 'a.db');
    await expect(listKeys(target(database))).rejects.toThrow(/cannot be written: .*not a directory/);
  });
});
