import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { uuid } from './served-library.ts';

const { Database } = createRequire(import.meta.url)('node-sqlite3-wasm');

const recordTables = (name: string, columns: string) => `
  CREATE TABLE ${name} (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, ${columns});
  CREATE TABLE ${name}_json (number INTEGER PRIMARY KEY, json BLOB NOT NULL);
  ${textTable(name, 'copy, advertiser, tags')}`;

const textTable = (name: string, columns: string) => `CREATE VIRTUAL TABLE ${name}_text USING fts5 (
    ${columns}, content = '', contentless_delete = 1, tokenize = "ascii tokenchars '-_.!~*()%'");`;

/** The tables as earlier versions made them, one after another; `PRAGMA user_version` is how many were taken. */
const steps = [
  `${recordTables('ads', '"startedAt", "lastSeenAt", "endDate", "daysRunning", "duplicates", "audienceReach", "adSpend", "revenue", "trendPublic", "performancePublic", "productPrice", "productCreatedAt", "adSpendLow", "revenueLow"')}
  ${recordTables('pages', '"adsAmount", "adsTotalDuplicates", "averageDuplicates", "audienceReach", "pageLikes", "pageIgFollowers", "trend", "performance", "pageCreatedAt"')}
  CREATE INDEX "ads_startedAt" ON ads ("startedAt");
  CREATE TABLE secrets (name TEXT PRIMARY KEY, value TEXT NOT NULL);
  CREATE TABLE payers (
    billingUserId TEXT PRIMARY KEY, planId TEXT, subscriptionStatus TEXT,
    creditsMax INTEGER NOT NULL, hourlyLimit INTEGER NOT NULL, dailyLimit INTEGER NOT NULL
  );
  CREATE TABLE spending (
    billingUserId TEXT NOT NULL REFERENCES payers, hour INTEGER NOT NULL, credits INTEGER NOT NULL,
    PRIMARY KEY (billingUserId, hour)
  ) WITHOUT ROWID;
  CREATE TABLE accounts (
    userId TEXT PRIMARY KEY, billingUserId TEXT NOT NULL REFERENCES payers,
    name TEXT, emailAddress TEXT, isTeamMember INTEGER NOT NULL
  );
  CREATE TABLE keys (
    id TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, keyPrefix TEXT NOT NULL, name TEXT NOT NULL, scopes TEXT NOT NULL,
    userId TEXT NOT NULL REFERENCES accounts, createdAt INTEGER NOT NULL, revokedAt INTEGER
  );
  CREATE TABLE collections (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, userId TEXT NOT NULL REFERENCES accounts,
    billingUserId TEXT NOT NULL REFERENCES payers, name TEXT NOT NULL, type TEXT NOT NULL, defaultType TEXT
  );
  CREATE INDEX collections_billingUserId ON collections (billingUserId);
  CREATE TABLE collection_items (
    number INTEGER PRIMARY KEY AUTOINCREMENT, collection INTEGER NOT NULL REFERENCES collections,
    itemType TEXT NOT NULL, item INTEGER NOT NULL, UNIQUE (collection, itemType, item)
  );
  CREATE INDEX collection_items_order ON collection_items (collection, itemType, number);`,
  'ALTER TABLE keys ADD COLUMN unmetered INTEGER NOT NULL DEFAULT 0;',
  ['ads', 'pages']
    .map((name) => `DROP TABLE ${name}_text; ${textTable(name, 'copy, advertiser, bylines, tags')}`)
    .join('') +
    ['impressions', 'audienceSize']
      .map(
        (key) => `ALTER TABLE ads ADD COLUMN "${key}"; ALTER TABLE ads ADD COLUMN "${key}Low";
        CREATE INDEX "ads_${key}" ON ads ("${key}");`,
      )
      .join(''),
  ['ads', 'pages'].map((name) => `INSERT INTO ${name}_text (${name}_text) VALUES ('delete-all');`).join(''),
];
export const versions = steps.map((_, at) => at + 1);

export const earlierAds = Array.from({ length: 450 }, (_, nr) => ({
  id: uuid(nr),
  pageId: `p${nr % 3}`,
  body: 'Ein guter Tee für jeden Tag, frisch gepflückt und schnell bei dir',
  bylines: `Payer ${nr}`,
  impressionsMax: nr,
}));
export const earlierKey = `svc_live_${'0a'.repeat(20)}`;
export const earlierCollection = uuid(9001);

/** A file as that version left it: 450 ads of three pages, a key that has spent 7 credits at `now`, a collection of one ad. */
export function writeEarlierVersion(database: string, version: number, now: number) {
  const file = new Database(database);
  file.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA application_id = 1097092201; BEGIN');
  for (const step of steps.slice(0, version)) file.exec(step);
  const put = (kind: string, number: number, id: string, record: object) => {
    file.run(`INSERT INTO ${kind} (number, id) VALUES (?, ?)`, [number, id]);
    file.run(`INSERT INTO ${kind}_json VALUES (?, ?)`, [number, Buffer.from(JSON.stringify(record))]);
    file.run(`INSERT INTO ${kind}_text (rowid, copy, tags) VALUES (?, 'earlier', '\uE000')`, [number]);
  };
  for (const [at, ad] of earlierAds.entries()) put('ads', at + 1, ad.id, ad);
  for (const nr of [0, 1, 2]) put('pages', nr + 1, `p${nr}`, { pageId: `p${nr}`, pageName: `Page ${nr}` });
  const user = uuid(9000);
  file.run("INSERT INTO payers VALUES (?, 'library', 'active', 100, 100, 100)", [user]);
  file.run('INSERT INTO accounts VALUES (?, ?, NULL, NULL, 0)', [user, user]);
  file.run('INSERT INTO spending VALUES (?, ?, 7)', [user, Math.floor(now / 3_600_000)]);
  const hash = createHash('sha256').update(earlierKey).digest('hex');
  file.run(
    `INSERT INTO keys (id, hash, keyPrefix, name, scopes, userId, createdAt) VALUES (?, ?, ?, 'Old',
      'account:read credits:read collections:read ads:read pages:read', ?, ?)`,
    [uuid(9002), hash, earlierKey.slice(0, 17), user, now],
  );
  file.run("INSERT INTO collections VALUES (1, ?, ?, ?, 'Old ads', 'personal', 'ads')", [
    earlierCollection,
    user,
    user,
  ]);
  file.run("INSERT INTO collection_items (collection, itemType, item) VALUES (1, 'ads', 5)");
  file.run("INSERT INTO secrets VALUES ('cursor', ?)", ['0b'.repeat(32)]);
  file.exec(`PRAGMA user_version = ${version}; COMMIT`);
  file.close();
}
