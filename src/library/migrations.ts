/** "AdLi", which tells a library from the SQLite files of other programs. */
export const applicationId = 0x41644c69;

/**
 * Each record type has three tables. `ads` is narrow, so that filtering and sorting read few pages; `ads_json` holds the
 * records; `ads_text` finds rows by copy, advertiser and tags, without storing the text again. Its tokenizer only splits
 * at spaces: tokenize.ts and tag-tokens.ts make the tokens.
 */
const tablesOf = (name: string, measures: string[], lows: string[]) => `
  CREATE TABLE ${name} (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
    ${[...measures, ...lows].map((column) => `"${column}"`).join(', ')}
  );
  CREATE TABLE ${name}_json (number INTEGER PRIMARY KEY, json BLOB NOT NULL);
  CREATE VIRTUAL TABLE ${name}_text USING fts5 (
    copy, advertiser, tags, content = '', contentless_delete = 1, tokenize = "ascii tokenchars '-_.!~*()%'"
  );
  ${measures.map((column) => `CREATE INDEX "${name}_${column}" ON ${name} ("${column}");`).join('\n')}`;

const adMeasures =
  'startedAt lastSeenAt endDate daysRunning duplicates audienceReach adSpend revenue trendPublic performancePublic productPrice productCreatedAt';
const pageMeasures =
  'adsAmount adsTotalDuplicates averageDuplicates audienceReach pageLikes pageIgFollowers trend performance pageCreatedAt';

/** The full-text index of a record type with `bylines`. It is empty until reindex.ts has filled it. */
const withBylines = (name: string) => `
  DROP TABLE ${name}_text;
  CREATE VIRTUAL TABLE ${name}_text USING fts5 (
    copy, advertiser, bylines, tags,
    content = '', contentless_delete = 1, tokenize = "ascii tokenchars '-_.!~*()%'"
  );`;

const newMeasure = (key: string) => `
  ALTER TABLE ads ADD COLUMN "${key}";
  ALTER TABLE ads ADD COLUMN "${key}Low";
  CREATE INDEX "ads_${key}" ON ads ("${key}");`;

/**
 * The schema, one step per version of the file; `PRAGMA user_version` counts the steps taken. A released step never
 * changes; add a new one instead.
 */
export const migrations = [
  `${tablesOf('ads', adMeasures.split(' '), ['adSpendLow', 'revenueLow'])}
  ${tablesOf('pages', pageMeasures.split(' '), [])}
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
  `${['ads', 'pages'].map(withBylines).join('')}${['impressions', 'audienceSize'].map(newMeasure).join('')}`,
  // Domains and times are read in another way.
  ['ads', 'pages'].map((name) => `INSERT INTO ${name}_text (${name}_text) VALUES ('delete-all');`).join(''),
];
