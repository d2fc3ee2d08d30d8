import { readTime, script } from './redis-commands.ts';

/**
 * A dataset in Redis is a few keys with one hash tag. `base` is a list of sealed parts: all records as they were when
 * they were last merged. `log` is a list of what came since, numbered from `first` on. `about` is a hash that says which
 * base that is (`epoch`), which ones went before it, and how large both are. Each script runs as a whole or not at all.
 *
 * An epoch is a number, which counts up, and a name: `3:<UUID>`. Whoever has read one that is not among the last
 * `maxPrevious` has read what Redis has lost, or was away for long.
 */
const maxPrevious = 20;
/** Characters of `maxPrevious` epochs. */
const previousLength = 1000;

const epochs = `
local function numberOf(epoch)
  return tonumber(string.match(epoch, '^(%d+):')) or 0
end
local function begin(epoch)
  local known = redis.call('HMGET', about, 'epoch', 'previous')
  redis.call('HSET', about, 'epoch', epoch, 'previous', string.sub(known[1] .. ' ' .. known[2], 1, ${previousLength}))
end
`;

export const epochAfter = (epoch: string, name: string): string =>
  `${Number(/^(\d+):/.exec(epoch)?.[1] ?? 0) + 1}:${name}`;

/**
 * Returns the place of what comes now: behind all that any replica has put anywhere, also if Redis has lost that, or was
 * set back.
 *
 * KEYS: order. ARGV: the highest place that the caller knows, lifetime.
 */
export const orderScript = script(`
${readTime}
local last = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), tonumber(ARGV[1]))
local order = math.max(last + 1, now)
redis.call('SET', KEYS[1], string.format('%.0f', order), 'PX', ARGV[2])
return order
`);

/**
 * Adds parts to the log. Returns the size of the dataset in bytes, and 1 if the caller should merge it: nobody else is
 * asked to for a while.
 *
 * KEYS: about, log, base. ARGV: the name of an epoch if there is none yet, lifetime, bytes and parts at which a log is
 * merged, how long a merge may take, the parts.
 */
export const appendScript = script(`
local about, log, base = KEYS[1], KEYS[2], KEYS[3]
if redis.call('HSETNX', about, 'epoch', '0:' .. ARGV[1]) == 1 then
  redis.call('HSET', about, 'previous', '', 'dropped', 0, 'first', 0, 'baseBytes', 0, 'logBytes', 0, 'letGo', '', 'merging', 0)
end
local added = 0
for i = 6, #ARGV do
  redis.call('RPUSH', log, ARGV[i])
  added = added + #ARGV[i]
end
local logBytes = redis.call('HINCRBY', about, 'logBytes', added)
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[2]) end
local baseBytes = tonumber(redis.call('HGET', about, 'baseBytes'))
local isLong = logBytes > math.max(baseBytes, tonumber(ARGV[3])) or redis.call('LLEN', log) > tonumber(ARGV[4])
${readTime}
if not isLong or tonumber(redis.call('HGET', about, 'merging')) > now then return { baseBytes + logBytes, 0 } end
redis.call('HSET', about, 'merging', now + ARGV[5])
return { baseBytes + logBytes, 1 }
`);

/**
 * Reads on from where the caller is: first the base, then the log. Whoever has read all that was merged, of which
 * nothing was removed, need not read it again. Returns nothing if there is no dataset; 'lost' if the caller has read what
 * is not there any more, because Redis was started anew, empty or from an older copy; else the epoch, 1 if the caller has
 * to start over, the next part of the base (-1 after the last), the next number of the log, 1 if nothing is left, what
 * was let go, and the parts.
 *
 * KEYS: about, log, base. ARGV: the caller's epoch, next part of the base and next number of the log, how the last part
 * that it read of the log ends, and about how many bytes to return.
 */
export const readScript = script(`
local about, log, base = KEYS[1], KEYS[2], KEYS[3]
${epochs}
local known = redis.call('HMGET', about, 'epoch', 'previous', 'dropped', 'first', 'letGo')
local epoch, first = known[1], tonumber(known[4])
if not epoch then return {} end
local part, number, again = tonumber(ARGV[2]), tonumber(ARGV[3]), 0
local isPrevious = string.find(' ' .. known[2] .. ' ', ' ' .. ARGV[1] .. ' ', 1, true)
local hasAll = isPrevious == 1 and known[3] == '0' and part == -1 and number >= first
if epoch ~= ARGV[1] and not hasAll then
  local isLost = not isPrevious and numberOf(epoch) < numberOf(ARGV[1]) + ${maxPrevious}
  if ARGV[1] ~= '' and isLost then return { 'lost' } end
  part, number, again = 0, first, 1
elseif number > first then
  local last = redis.call('LINDEX', log, number - first - 1)
  if not last or string.sub(last, -#ARGV[4]) ~= ARGV[4] then return { 'lost' } end
end
local left, parts = tonumber(ARGV[5]), {}
local function read(list, index)
  while left > 0 do
    local found = redis.call('LINDEX', list, index)
    if not found then return index, true end
    parts[#parts + 1] = found
    left = left - #found - 4096
    index = index + 1
  end
  return index, false
end
local isDone = part == -1
if not isDone then part, isDone = read(base, part) end
if isDone then
  part = -1
  number, isDone = read(log, number - first)
  number = number + first
end
return { epoch, again, part, number, isDone and 1 or 0, known[5], unpack(parts) }
`);

/**
 * Puts a new base in the place of the old one and of the log up to a number. Unless something was removed, a quarter of
 * that log stays for replicas that are a little behind, which then need not read the base. Returns the size of the
 * dataset in bytes; -1 if another one was faster, or part of the new base has expired meanwhile.
 *
 * KEYS: about, log, base, the new base. ARGV: the epoch that was merged, the new one, the first number of the log that
 * is not in the new base, 1 if anything was removed, what was let go, the bytes and the parts of the new base, how large
 * the dataset may be for something of the log to stay.
 */
export const mergeScript = script(`
local about, log, base, merged = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
${epochs}
if redis.call('HGET', about, 'epoch') ~= ARGV[1] or redis.call('LLEN', merged) ~= tonumber(ARGV[7]) then
  redis.call('DEL', merged)
  return -1
end
local first = tonumber(redis.call('HGET', about, 'first'))
local logBytes = tonumber(redis.call('HGET', about, 'logBytes'))
local function bytesOf(count)
  local bytes = 0
  for _, part in ipairs(count > 0 and redis.call('LRANGE', log, 0, count - 1) or {}) do bytes = bytes + #part end
  return bytes
end
local all = ARGV[3] - first
local count = ARGV[4] == '0' and math.ceil(all * 3 / 4) or all
local removed = bytesOf(count)
if ARGV[6] + logBytes - removed > tonumber(ARGV[8]) then count, removed = all, bytesOf(all) end
logBytes = logBytes - removed
redis.call('LTRIM', log, count, -1)
redis.call('DEL', base)
if redis.call('EXISTS', merged) == 1 then
  redis.call('RENAME', merged, base)
  redis.call('PEXPIRE', base, redis.call('PTTL', about))
end
begin(ARGV[2])
redis.call('HSET', about, 'dropped', ARGV[4], 'first', first + count, 'baseBytes', ARGV[6], 'logBytes', logBytes, 'letGo', ARGV[5], 'merging', 0)
return ARGV[6] + logBytes
`);
