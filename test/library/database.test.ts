import { copyFile, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import sqlite from 'node-sqlite3-wasm';
import { describe, expect } from 'vitest';
import { listKeys } from '../../src/library/commands/commands.ts';
import { openLibrary } from '../../src/library/open.ts';
import { databaseTest as test } from './support/fixtures.ts';
import { testStartTime } from './support/library-server.ts';

const now = () => testStartTime;
/** Opens a database by listing its API keys, which changes nothing in it. */
const openDatabase = (database: string) => listKeys({ database, now });

/** Creates a library, and then changes its database with SQL statements. */
async function createChangedLibrary(database: string, ...statements: string[]) {
  const { context, close } = await openLibrary({ database, now });
  for (const sql of statements) context.database.run(sql);
  close();
}

describe('Opening a database file', () => {
  test.for<[name: string, statements: string[], message: RegExp]>([
    ['another program', ['PRAGMA application_id = 7'], /ad-library\.db is a database of another program/],
    [
      'another version of this program',
      ['PRAGMA user_version = 1'],
      /made by another version of ad-library-mcp. Name another/,
    ],
  ])(
    'the library cannot open a database file of %s and leaves the file unchanged',
    async ([_, statements, message], { folder, database }) => {
      await createChangedLibrary(database, ...statements);
      const originalBytes = await readFile(database);
      await expect(openDatabase(database)).rejects.toThrow(message);
      expect(await readFile(database)).toEqual(originalBytes);
      expect(await readdir(folder)).toEqual(['ad-library.db']);
    },
  );

  test('the library leaves a database that another program is using unchanged', async ({ folder, database }) => {
    const connection = new sqlite.Database(database);
    connection.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; CREATE TABLE notes (note)');
    connection.exec('INSERT INTO notes VALUES (1)');
    const originalFiles = await readdir(folder);
    expect(originalFiles).toContain('ad-library.db-wal');
    await expect(openDatabase(database)).rejects.toThrow(/ad-library\.db is a database of another program/);
    expect(await readdir(folder)).toEqual(originalFiles);
    connection.close();
  });

  test('a new library can be opened after its process was killed', async ({ folder, database }) => {
    const { close } = await openLibrary({ database, now });
    const originalFiles = await readdir(folder);
    const copyPath = join(folder, 'copy.db');
    // The files of an open library are the files that a killed process leaves.
    for (const suffix of ['', '-wal']) await copyFile(`${database}${suffix}`, `${copyPath}${suffix}`);
    close();
    expect(originalFiles).not.toContain('ad-library.db-journal');
    await expect(openDatabase(copyPath)).resolves.toEqual([]);
  });

  test('the library cannot open a database in a missing folder or in a file of another program', async ({
    folder,
    database,
  }) => {
    await writeFile(database, 'Dear diary, '.repeat(1000));
    await expect(openDatabase(database)).rejects.toThrow(/is not a database of the ad library/);
    await expect(openDatabase(join(folder, 'nowhere', 'a.db'))).rejects.toThrow(/cannot be written: .*no such file/);
    await expect(openDatabase(join(database, 'a.db'))).rejects.toThrow(/cannot be written: .*not a directory/);
  });
});

test('the error of an import that fills the disk names the database file', async ({ database }) => {
  const { context, import: importSource, close } = await openLibrary({ database, now });
  context.database.runScript('PRAGMA max_page_count = 100');
  const rows = Array.from({ length: 2000 }, (_, index) => `Headline ${index},${'word '.repeat(100)}`);
  const source = Readable.from([['headline,body', ...rows].join('\n')]);
  await expect(importSource(source)).rejects.toThrow(/ad-library\.db cannot be written .*Is its disk full\?/);
  close();
});
