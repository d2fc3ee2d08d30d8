import { randomUUID } from 'node:crypto';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import pg from 'pg';
import { chunkLimits, type ItemsChunk, type ReadResult, type RemoteStore, type StoreDriver } from '../storage.ts';

/**
 * The time limit, in milliseconds, for connecting to the database and for each statement. The connection is closed when
 * the time is over. `CircuitBreakerStore` stops waiting for a reply earlier. The extra time allows for replies that arrive
 * while this process is busy.
 */
const statementTimeoutMs = 5000;
const maxConnections = 10;
/**
 * The interval at which expired rows are deleted, in milliseconds, and the maximum number of rows that one statement
 * deletes. Small batches hold their locks only for a short time.
 */
const sweepIntervalMs = 60_000;
const sweepBatchRows = 1000;
/** The maximum number of documents that one SQL statement reads. */
const maxBatchReads = 100;
/** The total size of all collections, in bytes, above which the store counts as nearly full. */
const maxCollectionsBytes = 4 * 1024 ** 3;

/**
 * The version of the table format, and the SQL that creates the tables. `STORAGE EXTERNAL` turns off compression,
 * because the stored values are encrypted and cannot be compressed.
 */
const tableFormatVersion = 1;
const createTablesSql = `
  CREATE TABLE ad_library.documents (
    key text PRIMARY KEY, version text NOT NULL, body bytea NOT NULL, expires_at timestamptz NOT NULL);
  ALTER TABLE ad_library.documents ALTER body SET STORAGE EXTERNAL;
  CREATE INDEX documents_expires_at ON ad_library.documents (expires_at);
  CREATE TABLE ad_library.collections (
    name text PRIMARY KEY, generation text NOT NULL, sequence_number bigint NOT NULL, bytes bigint NOT NULL DEFAULT 0,
    evicted_through bigint NOT NULL DEFAULT 0, evicted_counts jsonb NOT NULL DEFAULT '{}', expires_at timestamptz NOT NULL);
  CREATE INDEX collections_expires_at ON ad_library.collections (expires_at);
  CREATE TABLE ad_library.items (
    name text NOT NULL REFERENCES ad_library.collections ON DELETE CASCADE, id text NOT NULL, sequence_number bigint NOT NULL,
    body bytea NOT NULL, PRIMARY KEY (name, id));
  ALTER TABLE ad_library.items ALTER body SET STORAGE EXTERNAL;
  CREATE UNIQUE INDEX items_sequence_number ON ad_library.items (name, sequence_number);

  -- Writers lock the row of the collection, so that sequence numbers become visible in ascending order.
  CREATE FUNCTION ad_library.put_items(collection text, generation text, ids text[], expected_numbers bigint[], lengths int[],
    bodies bytea, ttl_ms float8, max_bytes bigint) RETURNS text[] LANGUAGE plpgsql AS $$
  DECLARE
    about ad_library.collections;
    old record;
    refused text[] := '{}';
    start int := 1;
    kind text;
  BEGIN
    DELETE FROM ad_library.collections AS c WHERE c.name = collection AND c.expires_at <= clock_timestamp();
    INSERT INTO ad_library.collections AS c (name, generation, sequence_number, expires_at)
      VALUES (collection, put_items.generation, 0, clock_timestamp() + ttl_ms * interval '1 millisecond')
      ON CONFLICT (name) DO UPDATE SET expires_at = excluded.expires_at RETURNING c.* INTO about;
    FOR i IN 1 .. cardinality(ids) LOOP
      SELECT items.sequence_number, length(items.body) AS bytes INTO old FROM ad_library.items
        WHERE items.name = collection AND items.id = ids[i];
      IF coalesce(old.sequence_number, 0) <> expected_numbers[i] THEN
        refused := refused || ids[i];
      ELSE
        about.sequence_number := greatest(about.sequence_number + 1, extract(epoch FROM clock_timestamp()) * 1000000);
        about.bytes := about.bytes + lengths[i] - coalesce(old.bytes, 0);
        INSERT INTO ad_library.items VALUES (collection, ids[i], about.sequence_number, substr(bodies, start, lengths[i]))
          ON CONFLICT (name, id) DO UPDATE SET sequence_number = excluded.sequence_number, body = excluded.body;
      END IF;
      start := start + lengths[i];
    END LOOP;
    IF about.bytes > max_bytes THEN
      FOR old IN SELECT items.id, items.sequence_number, length(items.body) AS bytes FROM ad_library.items
        WHERE items.name = collection ORDER BY items.sequence_number LOOP
        EXIT WHEN about.bytes <= max_bytes;
        DELETE FROM ad_library.items WHERE items.name = collection AND items.id = old.id;
        kind := left(old.id, 1);
        about.bytes := about.bytes - old.bytes;
        about.evicted_through := old.sequence_number;
        about.evicted_counts := about.evicted_counts || jsonb_build_object(kind, coalesce((about.evicted_counts ->> kind)::int, 0) + 1);
      END LOOP;
    END IF;
    UPDATE ad_library.collections AS c SET sequence_number = about.sequence_number, bytes = about.bytes, evicted_through = about.evicted_through, evicted_counts = about.evicted_counts
      WHERE c.name = collection;
    RETURN refused;
  END $$;

  CREATE TABLE ad_library.format (number int PRIMARY KEY);
  INSERT INTO ad_library.format VALUES (${tableFormatVersion})`;

const nowColumn = `extract(epoch FROM clock_timestamp())::float8 * 1000 AS now`;
const buildExpirySql = (parameter: string) => `clock_timestamp() + ${parameter}::float8 * interval '1 millisecond'`;

/**
 * The host and the credentials of a PostgreSQL server. Host, port, user and database are required, so that environment
 * variables such as `PGHOST` have no effect.
 */
export type PostgresConnection = Required<Pick<pg.PoolConfig, 'host' | 'port' | 'user' | 'database'>> & {
  password?: string | undefined;
  ssl: false | { rejectUnauthorized: boolean };
};

/** Creates the driver that opens a store in a PostgreSQL database. */
export const createPostgresDriver = (connection: PostgresConnection): StoreDriver => ({
  hostAndPort: `${connection.host}:${connection.port}`,
  open: (onError) => openPostgresStore(connection, onError),
});

/**
 * A batch of documents that were requested in the same event-loop turn. Reading the whole batch with one SQL statement
 * saves round trips.
 */
interface ReadBatch {
  requests: { key: string; version: string }[];
  replies: Promise<ReadResult[]>;
}

/**
 * Opens a store in PostgreSQL. The store also works behind a connection pooler that assigns connections per
 * transaction, because each call is one unnamed statement that qualifies every table name with its schema.
 */
export function openPostgresStore(
  connection: PostgresConnection,
  onError: (error: Error) => void,
  { sweepEveryMs = sweepIntervalMs, maxBytes = maxCollectionsBytes } = {},
): RemoteStore {
  const { host, port, user, password = '', database, ssl } = connection;
  const pool = new pg.Pool({
    host,
    port,
    user,
    password,
    database,
    ssl,
    max: maxConnections,
    connectionTimeoutMillis: statementTimeoutMs,
    query_timeout: statementTimeoutMs,
    application_name: 'ad-library-mcp',
    keepAlive: true,
    allowExitOnIdle: true,
  }).on('error', onError);
  const query = async (text: string, values: unknown[]) => (await pool.query(text, values)).rows;
  let isNearlyFull = false;
  const deleteExpired = async (table: string, keyColumn: string) => {
    for (let deleted: number | null = sweepBatchRows; deleted === sweepBatchRows; )
      ({ rowCount: deleted } = await pool.query(
        `DELETE FROM ad_library.${table} WHERE ${keyColumn} IN (SELECT ${keyColumn} FROM ad_library.${table}
          WHERE expires_at <= now() LIMIT $1 FOR UPDATE SKIP LOCKED)`,
        [sweepBatchRows],
      ));
  };
  const sweep = async () => {
    await deleteExpired('documents', 'key');
    await deleteExpired('collections', 'name');
    const [row] = await query('SELECT sum(bytes)::float8 > $1 AS is FROM ad_library.collections', [maxBytes]);
    isNearlyFull = row?.is === true;
  };
  let isSweeping = false;
  const sweepTimer = setInterval(async () => {
    if (isSweeping) return;
    isSweeping = true;
    await sweep().catch(() => {});
    isSweeping = false;
  }, sweepEveryMs).unref();

  let batch: ReadBatch | undefined;
  const startBatch = (): ReadBatch => {
    const requests: ReadBatch['requests'] = [];
    const readAll = async () => {
      await yieldToEventLoop();
      if (batch?.requests === requests) batch = undefined;
      const rows = await query(
        `SELECT ${nowColumn}, version, CASE WHEN version <> known THEN body END AS body
          FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS wanted (key, known, place)
          LEFT JOIN ad_library.documents AS d ON d.key = wanted.key AND expires_at > clock_timestamp() ORDER BY place`,
        [requests.map(({ key }) => key), requests.map(({ version }) => version)],
      );
      return rows.map(({ now, version, body }): ReadResult => {
        return version === null ? { now } : { now, document: { version, body: body ?? undefined } };
      });
    };
    return { requests, replies: readAll() };
  };
  const readDocument = async (key: string, version = ''): Promise<ReadResult> => {
    if (batch === undefined || batch.requests.length >= maxBatchReads) batch = startBatch();
    const { requests, replies } = batch;
    const index = requests.push({ key, version }) - 1;
    return (await replies)[index] as ReadResult;
  };

  return {
    connect: () => createTables(pool),
    readDocument,
    swapDocument: async (key, expectedVersion, { version, body, ttlMs }) => {
      const values = [key, expectedVersion, version, body, ttlMs];
      const [writtenRow] =
        body === undefined
          ? await query(`DELETE FROM ad_library.documents WHERE key = $1 AND version = $2 RETURNING ${nowColumn}`, [
              key,
              expectedVersion,
            ])
          : expectedVersion === ''
            ? await query(
                `INSERT INTO ad_library.documents AS old VALUES ($1, $2, $3, ${buildExpirySql('$4')}) ON CONFLICT (key) DO UPDATE
                  SET version = excluded.version, body = excluded.body, expires_at = excluded.expires_at
                  WHERE old.expires_at <= clock_timestamp() RETURNING ${nowColumn}`,
                [key, version, body, ttlMs],
              )
            : await query(
                `UPDATE ad_library.documents SET version = $3, body = $4, expires_at = ${buildExpirySql('$5')}
                  WHERE key = $1 AND version = $2 AND expires_at > clock_timestamp() RETURNING ${nowColumn}`,
                values,
              );
      if (writtenRow) return { now: writtenRow.now, isDone: true };
      const currentDocument = await readDocument(key);
      return {
        ...currentDocument,
        isDone: body === undefined && expectedVersion === '' && currentDocument.document === undefined,
      };
    },
    readItems: async (name, ids) => {
      const rows = await query(
        `SELECT id, items.sequence_number::float8, body FROM ad_library.items JOIN ad_library.collections USING (name)
          WHERE name = $1 AND expires_at > clock_timestamp() AND id = ANY($2::text[])`,
        [name, ids],
      );
      return new Map(rows.map(({ id, sequence_number, body }) => [id, { sequenceNumber: sequence_number, body }]));
    },
    putItems: async (name, changes, { ttlMs, maxBytes }) => {
      const [row] = await query('SELECT ad_library.put_items($1, $2, $3, $4, $5, $6, $7, $8) AS refused', [
        name,
        randomUUID(),
        changes.map(({ id }) => id),
        changes.map(({ expectedSequenceNumber }) => expectedSequenceNumber),
        changes.map(({ body }) => body.length),
        Buffer.concat(changes.map(({ body }) => body)),
        ttlMs,
        maxBytes,
      ]);
      return new Set(row.refused);
    },
    readItemsSince: async (name, afterSequenceNumber) => {
      // If no item has a higher sequence number than `afterSequenceNumber`, the query returns a single row. This row
      // describes the collection and contains no item.
      const rows = await query(
        `WITH later AS (SELECT id, sequence_number, body, sum(length(body)) OVER (ORDER BY sequence_number) - length(body) AS before
          FROM (SELECT id, sequence_number, body FROM ad_library.items WHERE name = $1 AND sequence_number > $2 ORDER BY sequence_number LIMIT $3) AS few)
        SELECT generation, evicted_through::float8, evicted_counts, about.sequence_number::float8 AS last, id, later.sequence_number::float8, body
          FROM ad_library.collections AS about LEFT JOIN later ON before < $4
          WHERE name = $1 AND expires_at > clock_timestamp() ORDER BY later.sequence_number`,
        [name, afterSequenceNumber, chunkLimits.maxItems, chunkLimits.maxBytes],
      );
      const [firstRow] = rows;
      if (firstRow === undefined) return undefined;
      const items: ItemsChunk['items'] = rows.flatMap(({ id, sequence_number, body }) =>
        id === null ? [] : [{ id, sequenceNumber: sequence_number, body }],
      );
      const { generation, evicted_through, evicted_counts, last } = firstRow;
      return {
        generation,
        items,
        lastEvictedSequenceNumber: evicted_through,
        evictedCounts: evicted_counts,
        isLastChunk: (items.at(-1)?.sequenceNumber ?? last) === last,
      };
    },
    isNearlyFull: () => isNearlyFull,
    // Do not count errors with these codes (SQLSTATE) as refusals of a single call. The codes mean that the connection
    // was lost, or that the server is unavailable or read-only.
    isRefusal: (error) => error instanceof pg.DatabaseError && !/^(?:08|25006|28|53300|57|58)/.test(error.code ?? '08'),
    close: async () => {
      clearInterval(sweepTimer);
      await pool.end();
    },
  };
}

/**
 * Creates the tables if they do not exist. Checks this first, so that a database user without the right to create
 * tables can use existing tables.
 */
async function createTables(pool: pg.Pool): Promise<void> {
  const tablesExist = `to_regclass('ad_library.format') IS NOT NULL`;
  const existenceResult = await pool.query<{ is: boolean }>(`SELECT ${tablesExist} AS is`);
  // Use a lock, so that only one replica creates the tables if several replicas start at the same time.
  if (!existenceResult.rows[0]?.is)
    await pool.query(`DO $do$ BEGIN
      PERFORM pg_advisory_xact_lock(hashtext('ad_library'));
      CREATE SCHEMA IF NOT EXISTS ad_library;
      IF NOT (${tablesExist}) THEN ${createTablesSql}; END IF;
    END $do$`);
  const { rows } = await pool.query<{ number: number }>('SELECT number FROM ad_library.format');
  if (rows[0]?.number !== tableFormatVersion)
    throw new Error('another version of this program created the schema ad_library: remove that schema');
}
