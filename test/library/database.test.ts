import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { listKeys } from '../../src/library/commands/commands.ts';
import { openLibrary } from '../../src/library/open.ts';
import { databaseTest as test } from './support/fixtures.ts';
import { testStartTime } from './support/served-library.ts';

const now = () => testStartTime;
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
    ['of another version', ['PRAGMA user_version = 1'], /made by another version of ad-library-mcp. Name another/],
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
