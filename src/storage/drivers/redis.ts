import { createHash, randomInt, randomUUID } from 'node:crypto';
import { createClient, ErrorReply, RESP_TYPES, type RedisArgument } from '@redis/client';
import {
  chunkLimits,
  type ItemsChunk,
  type ReadResult,
  type RemoteStore,
  type StorageLogger,
  type StoreDriver,
} from '../storage.ts';
import { explainTlsMismatch } from './tls-mismatch.ts';

/** The host and the credentials of a Redis or Valkey server. */
export interface RedisConnection {
  tls: boolean;
  host: string;
  port: number;
  username?: string | undefined;
  password?: string | undefined;
  database?: number | undefined;
}

/** Creates the driver that opens a store in Redis or Valkey. */
export const createRedisDriver = (connection: RedisConnection, log: StorageLogger): StoreDriver => ({
  hostAndPort: `${connection.host}:${connection.port}`,
  open: (onError) => openRedisStore(connection, onError, log),
  explainFailure: () => explainTlsMismatch(connection),
});

/**
 * Opens a store in Redis or Valkey. All keys of a collection contain the same hash tag, so that a cluster stores them
 * on one node and a single script can access them.
 */
export function openRedisStore(
  connection: RedisConnection,
  onError: (error: Error) => void,
  log: StorageLogger,
): RemoteStore {
  const client = createRedisClient(connection).on('error', onError);
  const memoryWatcher = watchMemory(() => client.sendCommand(['INFO']), log);
  const runScript = async (
    { text, sha }: Script,
    keys: readonly string[],
    args: readonly RedisArgument[],
  ): Promise<unknown> => {
    const scriptArgs = [String(keys.length), ...keys, ...args];
    try {
      return await client.sendCommand(['EVALSHA', sha, ...scriptArgs]);
    } catch (error) {
      if (!getErrorReply(error)?.startsWith('NOSCRIPT')) throw error;
      return client.sendCommand(['EVAL', text, ...scriptArgs]);
    }
  };
  const getCollectionKeys = (name: string): [string, string, string] => [
    `${name}:about`,
    `${name}:bodies`,
    `${name}:order`,
  ];
  let pendingConnection: Promise<unknown> | undefined;
  return {
    // Call `client.connect` only once. If the first attempt fails, the client retries automatically.
    connect: async () => {
      pendingConnection ??= client.connect();
      await pendingConnection;
      await memoryWatcher.updateMemoryUsage();
    },
    readDocument: async (key, cachedVersion = '') =>
      parseReply(await runScript(readDocumentScript, [key], [cachedVersion])),
    swapDocument: async (key, expectedVersion, { version, body, ttlMs }) => {
      const args = [expectedVersion, version, body ?? '', String(Math.ceil(ttlMs))];
      const reply = (await runScript(swapDocumentScript, [key], args)) as [number, ...unknown[]];
      return reply[1] === 1 ? { now: reply[0], isDone: true } : { ...parseReply(reply), isDone: false };
    },
    readItems: async (name, ids) => {
      if (ids.length === 0) return new Map();
      const [, bodiesKey, orderKey] = getCollectionKeys(name);
      const reply = await runScript(readItemsScript, [bodiesKey, orderKey], [...ids]);
      const [bodies, sequenceNumbers] = reply as [(Buffer | null)[], (Buffer | null)[]];
      return new Map(
        ids.flatMap((id, index) =>
          bodies[index] ? [[id, { sequenceNumber: Number(sequenceNumbers[index]), body: bodies[index] }] as const] : [],
        ),
      );
    },
    putItems: async (name, changes, { ttlMs, maxBytes }) => {
      const args: RedisArgument[] = [randomUUID(), String(Math.ceil(ttlMs)), String(maxBytes)];
      for (const { id, expectedSequenceNumber, body } of changes) args.push(id, String(expectedSequenceNumber), body);
      return new Set(((await runScript(putItemsScript, getCollectionKeys(name), args)) as Buffer[]).map(String));
    },
    readItemsSince: async (name, afterSequenceNumber) => {
      const limits = [afterSequenceNumber, chunkLimits.maxItems, chunkLimits.maxBytes].map(String);
      const [metadataJson, ...fields] = (await runScript(readItemsSinceScript, getCollectionKeys(name), limits)) as [
        Buffer,
        ...Buffer[],
      ];
      return parseChunk(JSON.parse(String(metadataJson)), fields);
    },
    isNearlyFull: () => memoryWatcher.isNearlyFull(),
    isRefusal: (error) => {
      const reply = getErrorReply(error);
      return reply !== undefined && !isTemporaryRefusal(reply);
    },
    close: async () => client.destroy(),
  };
}

function parseReply(reply: unknown): ReadResult {
  const [now, version, body] = reply as [number, Buffer | null, Buffer | null];
  return version ? { now, document: { version: String(version), body: body ?? undefined } } : { now };
}

function parseChunk(metadata: Record<string, string>, fields: readonly Buffer[]): ItemsChunk | undefined {
  const { generation, lastSequenceNumber, evictedThrough, bytes: _, ...evictedFields } = metadata;
  if (generation === undefined) return undefined;
  const items: ItemsChunk['items'] = [];
  for (let index = 0; index < fields.length; index += 3)
    items.push({
      id: String(fields[index]),
      sequenceNumber: Number(fields[index + 1]),
      body: fields[index + 2] as Buffer,
    });
  return {
    generation,
    items,
    lastEvictedSequenceNumber: Number(evictedThrough),
    evictedCounts: Object.fromEntries(
      Object.entries(evictedFields).map(([name, count]) => [name.replace('evicted:', ''), Number(count)]),
    ),
    isLastChunk: (items.at(-1)?.sequenceNumber ?? Number(lastSequenceNumber)) === Number(lastSequenceNumber),
  };
}

interface Script {
  text: string;
  sha: string;
}

const createScript = (text: string): Script => ({ text, sha: createHash('sha1').update(text).digest('hex') });

/**
 * The first lines of the Lua scripts that read or replace a document. They set `now` to the time in milliseconds by the
 * clock of Redis, because the clocks of the replicas may differ.
 */
const readTimeLua = `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

const readDocumentScript = createScript(`${readTimeLua}
local version = redis.call('HGET', KEYS[1], 'version')
return { now, version, version and version ~= ARGV[1] and redis.call('HGET', KEYS[1], 'body') }`);

/**
 * Replaces a document if it has the expected version. The arguments (`ARGV`) are the expected version, the next
 * version, the next body and the lifetime in milliseconds. An empty body removes the document.
 */
const swapDocumentScript = createScript(`${readTimeLua}
local version = redis.call('HGET', KEYS[1], 'version')
if (version or '') ~= ARGV[1] then return { now, version, version and redis.call('HGET', KEYS[1], 'body') } end
if ARGV[3] == '' then redis.call('DEL', KEYS[1])
else
  redis.call('HSET', KEYS[1], 'version', ARGV[2], 'body', ARGV[3])
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
return { now, 1 }`);

/**
 * Writes items of a collection. The keys (`KEYS`) contain the metadata, the bodies and the order of the items. The
 * arguments (`ARGV`) are an id for a new collection, the lifetime in milliseconds and the maximum size in bytes,
 * followed by the id, expected sequence number and body of each item.
 */
const putItemsScript = createScript(`
local metadata, bodies, order = KEYS[1], KEYS[2], KEYS[3]
local refused = {}
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
redis.call('HSETNX', metadata, 'generation', ARGV[1])
redis.call('HSETNX', metadata, 'evictedThrough', 0)
local sequenceNumber, bytes = unpack(redis.call('HMGET', metadata, 'lastSequenceNumber', 'bytes'))
sequenceNumber, bytes = tonumber(sequenceNumber or 0), tonumber(bytes or 0)
for i = 4, #ARGV, 3 do
  local id, body = ARGV[i], ARGV[i + 2]
  if tonumber(redis.call('ZSCORE', order, id) or 0) ~= tonumber(ARGV[i + 1]) then refused[#refused + 1] = id
  else
    bytes = bytes + #body - redis.call('HSTRLEN', bodies, id)
    redis.call('HSET', bodies, id, body)
    sequenceNumber = math.max(sequenceNumber + 1, now)
    redis.call('ZADD', order, string.format('%d', sequenceNumber), id)
  end
end
while bytes > tonumber(ARGV[3]) do
  local id, sequenceNumber = unpack(redis.call('ZPOPMIN', order))
  bytes = bytes - redis.call('HSTRLEN', bodies, id)
  redis.call('HDEL', bodies, id)
  redis.call('HSET', metadata, 'evictedThrough', sequenceNumber)
  redis.call('HINCRBY', metadata, 'evicted:' .. string.sub(id, 1, 1), 1)
end
redis.call('HSET', metadata, 'bytes', bytes, 'lastSequenceNumber', string.format('%d', sequenceNumber))
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[2]) end
return refused`);

/**
 * Reads the bodies and sequence numbers of items with a single script, so that no write can happen between the two
 * reads. The keys (`KEYS`) contain the bodies and the order of the items. The arguments (`ARGV`) are the ids of the
 * items.
 */
const readItemsScript = createScript(
  `return { redis.call('HMGET', KEYS[1], unpack(ARGV)), redis.call('ZMSCORE', KEYS[2], unpack(ARGV)) }`,
);

/**
 * Reads the next chunk of changed items. The keys (`KEYS`) contain the metadata, the bodies and the order of the items.
 * The arguments (`ARGV`) are the sequence number after which the chunk starts, the maximum number of items and the
 * maximum number of bytes.
 */
const readItemsSinceScript = createScript(`
local found = redis.call('ZRANGE', KEYS[3], '(' .. ARGV[1], '+inf', 'BYSCORE', 'LIMIT', 0, ARGV[2], 'WITHSCORES')
local about, all, bytes = {}, redis.call('HGETALL', KEYS[1]), 0
for i = 1, #all, 2 do about[all[i]] = all[i + 1] end
local reply = { cjson.encode(about) }
for i = 1, #found, 2 do
  local body = redis.call('HGET', KEYS[2], found[i])
  for _, part in ipairs({ found[i], found[i + 1], body }) do reply[#reply + 1] = part end
  bytes = bytes + #body
  if bytes >= tonumber(ARGV[3]) then break end
end
return reply`);

const getErrorReply = (error: unknown): string | undefined => (error instanceof ErrorReply ? error.message : undefined);

/** Returns true if Redis temporarily refuses all commands, e.g. because Redis is still loading its data. */
const isTemporaryRefusal = (reply: string): boolean =>
  /^(?:LOADING|MASTERDOWN|CLUSTERDOWN|READONLY|NOAUTH) /.test(reply);

/** How long a measurement of the memory usage of Redis remains valid, in milliseconds. */
const maxInfoAgeMs = 2000;
/**
 * Two fractions of the memory limit of Redis (`maxmemory`). The store counts as nearly full when Redis uses more than
 * `nearlyFullRatio`, and until the usage falls to `noLongerFullRatio`. Without the gap between the two values, the
 * store could switch back and forth.
 */
const nearlyFullRatio = 0.8;
const noLongerFullRatio = 0.75;

/**
 * Monitors whether Redis is nearly full. Logs one warning for each Redis setting that can cause data loss, such as an
 * eviction policy.
 */
function watchMemory(readInfo: () => Promise<unknown>, log: StorageLogger) {
  const loggedWarnings = new Set<string>();
  const warnOnce = (message: string, fields?: Record<string, unknown>) => {
    if (!loggedWarnings.has(message)) log.warn(message, fields);
    loggedWarnings.add(message);
  };
  let checkedAt = Number.NEGATIVE_INFINITY;
  let isNearlyFull = false;
  const updateMemoryUsage = async () => {
    checkedAt = performance.now();
    const lines = String(await readInfo()).split('\r\n');
    const memoryInfo = new Map(lines.map((line) => line.split(':')).map(([name, value]) => [name, value]));
    const [usedBytes, maxBytes] = [
      Number(memoryInfo.get('used_memory') ?? 0),
      Number(memoryInfo.get('maxmemory') ?? 0),
    ];
    const policy = memoryInfo.get('maxmemory_policy') ?? 'noeviction';
    if (maxBytes > 0 && policy !== 'noeviction')
      warnOnce('the shared state may lose the spent credits when Redis is full: set maxmemory-policy to noeviction', {
        policy,
      });
    if (memoryInfo.get('aof_enabled') === '0')
      warnOnce('the shared state is lost if Redis restarts, and budgets close then: set appendonly to yes');
    isNearlyFull = maxBytes > 0 && usedBytes > (isNearlyFull ? noLongerFullRatio : nearlyFullRatio) * maxBytes;
  };
  return {
    updateMemoryUsage,
    isNearlyFull: () => {
      if (performance.now() - checkedAt > maxInfoAgeMs) void updateMemoryUsage().catch(() => {});
      return isNearlyFull;
    },
  };
}

/** The time limit for connecting to Redis, in milliseconds. */
const connectTimeoutMs = 1000;
/** The maximum delay between two attempts to reconnect to Redis, in milliseconds. */
const maxReconnectDelayMs = 400;
const maxQueuedCommands = 20_000;

const getReconnectDelayMs = (retryCount: number) =>
  Math.min(maxReconnectDelayMs, 50 * 2 ** Math.min(retryCount, 10)) + randomInt(50);

const createRedisClient = ({ tls, host, port, username, password, database }: RedisConnection) =>
  createClient({
    ...(username && { username }),
    ...(password && { password }),
    ...(database !== undefined && { database }),
    socket: {
      host,
      port,
      connectTimeout: connectTimeoutMs,
      reconnectStrategy: getReconnectDelayMs,
      ...(tls && { tls }),
    },
    disableOfflineQueue: true,
    commandsQueueMaxLength: maxQueuedCommands,
    commandOptions: { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } },
  });
