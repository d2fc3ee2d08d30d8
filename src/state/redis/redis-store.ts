import { randomUUID } from 'node:crypto';
import type { RedisArgument } from '@redis/client';
import type { StoreDriver } from '../store/guarded-store.ts';
import type { StateLog } from '../store/state-log.ts';
import { type ItemsPart, partLimits, type Seen, type Store } from '../store/store.ts';
import { commandsOf, isNotNow, readTime, replyOf, script, unlessReply } from './redis-commands.ts';
import { openDriver, type StateAddress } from './redis-driver.ts';
import { RedisMemory } from './redis-memory.ts';

const readScript = script(`${readTime}
local version = redis.call('HGET', KEYS[1], 'version')
return { now, version, version and version ~= ARGV[1] and redis.call('HGET', KEYS[1], 'body') }`);

/** ARGV: the version it must be, the next one, its body, its lifetime. */
const swapScript = script(`${readTime}
local version = redis.call('HGET', KEYS[1], 'version')
if (version or '') ~= ARGV[1] then return { now, version, version and redis.call('HGET', KEYS[1], 'body') } end
if ARGV[3] == '' then redis.call('DEL', KEYS[1])
else
  redis.call('HSET', KEYS[1], 'version', ARGV[2], 'body', ARGV[3])
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
return { now, 1 }`);

/** KEYS: about, bodies, order. ARGV: an epoch, lifetime, bytes in all; then id, number as it was read, body of each. */
const putScript = script(`
local about, bodies, order = KEYS[1], KEYS[2], KEYS[3]
local refused = {}
if redis.call('EXISTS', about) == 0 then
  local time = redis.call('TIME')
  redis.call('HSET', about, 'epoch', ARGV[1], 'seq', time[1] .. string.format('%06d', time[2]), 'bytes', 0, 'floor', 0)
end
local bytes = tonumber(redis.call('HGET', about, 'bytes'))
for i = 4, #ARGV, 3 do
  local id, body = ARGV[i], ARGV[i + 2]
  if tonumber(redis.call('ZSCORE', order, id) or 0) ~= tonumber(ARGV[i + 1]) then refused[#refused + 1] = id
  else
    bytes = bytes + #body - redis.call('HSTRLEN', bodies, id)
    redis.call('HSET', bodies, id, body)
    redis.call('ZADD', order, redis.call('HINCRBY', about, 'seq', 1), id)
  end
end
while bytes > tonumber(ARGV[3]) do
  local id, seq = unpack(redis.call('ZPOPMIN', order))
  bytes = bytes - redis.call('HSTRLEN', bodies, id)
  redis.call('HDEL', bodies, id)
  redis.call('HSET', about, 'floor', seq)
  redis.call('HINCRBY', about, 'gone:' .. string.sub(id, 1, 1), 1)
end
redis.call('HSET', about, 'bytes', bytes)
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[2]) end
return refused`);

/** KEYS: about, bodies, order. ARGV: after which number, how many, how many bytes. */
const sinceScript = script(`
local found = redis.call('ZRANGE', KEYS[3], '(' .. ARGV[1], '+inf', 'BYSCORE', 'LIMIT', 0, ARGV[2], 'WITHSCORES')
local reply, bytes = { redis.call('HGETALL', KEYS[1]) }, 0
for i = 1, #found, 2 do
  local body = redis.call('HGET', KEYS[2], found[i])
  for _, part in ipairs({ found[i], found[i + 1], body }) do reply[#reply + 1] = part end
  bytes = bytes + #body
  if bytes >= tonumber(ARGV[3]) then break end
end
return reply`);

export const redisDriver = (address: StateAddress, log: StateLog): StoreDriver => ({
  hosts: address.hosts.map(({ host, port }) => `${host}:${port}`).join(','),
  open: (onError) => redisStore(address, onError, log),
});

const probeKey = 'ad-library:probe';
const silent: StateLog = { warn: () => {}, info: () => {} };

/** The store in Redis or Valkey. Keys and names have a hash tag, so that one script may use all keys of a collection. */
export function redisStore(address: StateAddress, onError: (error: Error) => void, log: StateLog = silent): Store {
  const driver = openDriver(address, onError);
  const ask = (key: string | undefined, args: readonly RedisArgument[]) =>
    driver.send(key, args).catch((error) => {
      memory.refused(replyOf(error) ?? '');
      throw error;
    });
  const memory = new RedisMemory({
    info: () => driver.send(undefined, ['INFO', 'memory']),
    write: () => driver.send(probeKey, ['SET', probeKey, '', 'PX', '1']),
    log,
  });
  const { send, run } = commandsOf(ask);
  const keysOf = (name: string): [string, string, string] => [`${name}:about`, `${name}:bodies`, `${name}:order`];
  let connected: Promise<unknown> | undefined;
  return {
    // If that takes longer, it goes on trying by itself.
    connect: async () => {
      connected ??= driver.connect();
      await connected;
      // While it loads its data, or follows another server, Redis answers some commands and refuses to write.
      await driver.send(probeKey, ['DEL', probeKey]).catch(unlessReply);
      await memory.check();
    },
    read: async (key, known = '') => seenIn(await run(readScript, [key], [known])),
    swap: async (key, expected, { version, body, ttlMs }) => {
      const args = [expected, version, body ?? '', String(Math.ceil(ttlMs))];
      const reply = (await run(swapScript, [key], args)) as [number, ...unknown[]];
      return reply[1] === 1 ? { now: reply[0], isDone: true } : { ...seenIn(reply), isDone: false };
    },
    items: async (name, ids) => {
      if (ids.length === 0) return new Map();
      const [, bodies, order] = keysOf(name);
      // In one script, so that each number is that of its body.
      const reply = await run(itemsScript, [bodies, order], [...ids]);
      const [found, seqs] = reply as [(Buffer | null)[], (Buffer | null)[]];
      return new Map(
        ids.flatMap((id, at) => (found[at] ? [[id, { seq: Number(seqs[at]), body: found[at] }] as const] : [])),
      );
    },
    putItems: async (name, changes, { ttlMs, maxBytes }) => {
      const args: RedisArgument[] = [randomUUID(), String(Math.ceil(ttlMs)), String(maxBytes)];
      for (const { id, seq, body } of changes) args.push(id, String(seq), body);
      return new Set(((await run(putScript, keysOf(name), args)) as Buffer[]).map(String));
    },
    itemsSince: async (name, after) => {
      const limits = [after, partLimits.items, partLimits.bytes].map(String);
      const [about, ...found] = (await run(sinceScript, keysOf(name), limits)) as [Buffer[], ...Buffer[]];
      return about.length === 0 ? undefined : partOf(pairs(about), found);
    },
    removeItems: async (name) => void (await send(name, ['UNLINK', ...keysOf(name)])),
    isTight: () => memory.isTight(),
    refuses: (error) => {
      const reply = replyOf(error);
      return reply !== undefined && !isNotNow(reply);
    },
    close: async () => {
      memory.close();
      driver.destroy();
    },
  };
}

const itemsScript = script(
  `return { redis.call('HMGET', KEYS[1], unpack(ARGV)), redis.call('ZMSCORE', KEYS[2], unpack(ARGV)) }`,
);

function seenIn(reply: unknown): Seen {
  const [now, version, body] = reply as [number, Buffer | null, Buffer | null];
  return version ? { now, found: { version: String(version), body: body ?? undefined } } : { now };
}

function partOf(about: Map<string, string>, found: readonly Buffer[]): ItemsPart {
  const items: ItemsPart['items'] = [];
  for (let at = 0; at < found.length; at += 3)
    items.push({ id: String(found[at]), seq: Number(found[at + 1]), body: found[at + 2] as Buffer });
  const gone = [...about].flatMap(([key, count]) => (key.startsWith('gone:') ? [[key.slice(5), Number(count)]] : []));
  const seq = Number(about.get('seq'));
  return {
    epoch: about.get('epoch') ?? '',
    items,
    floor: Number(about.get('floor')),
    gone: Object.fromEntries(gone),
    isLast: (items.at(-1)?.seq ?? seq) === seq,
  };
}

function pairs(list: readonly Buffer[]): Map<string, string> {
  const found = new Map<string, string>();
  for (let at = 0; at < list.length; at += 2) found.set(String(list[at]), String(list[at + 1]));
  return found;
}
