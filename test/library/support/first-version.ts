import { createRequire } from 'node:module';

const { Database } = createRequire(import.meta.url)('node-sqlite3-wasm');

/** Turns a database into one of the first version. */
export function makeFirstVersion(database: string) {
  const file = new Database(database);
  file.exec('PRAGMA locking_mode = EXCLUSIVE');
  for (const name of ['ads', 'pages'])
    file.exec(`DROP TABLE ${name}_text; CREATE VIRTUAL TABLE ${name}_text USING fts5 (copy, advertiser, tags,
      content = '', contentless_delete = 1, tokenize = "ascii tokenchars '-_.!~*()%'")`);
  for (const key of ['impressions', 'audienceSize'])
    file.exec(`DROP INDEX "ads_${key}"; ALTER TABLE ads DROP COLUMN "${key}"; ALTER TABLE ads DROP COLUMN "${key}Low"`);
  file.exec('ALTER TABLE keys DROP COLUMN unmetered');
  file.exec('PRAGMA user_version = 1');
  file.close();
}
