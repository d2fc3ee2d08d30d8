import { readTime, script } from './redis-commands.ts';

/**
 * A claim is a hash: `owner`, until when it holds, how many wait, and for a short time how claims that have ended came
 * out: `outcome:<id>`, which begins with the time. The owner renews it; if it did not, it has died.
 */
const begin = `
local key, channel, id = KEYS[1], ARGV[1], ARGV[2]
${readTime}
local owner = redis.call('HGET', key, 'owner')
local isOver = owner and tonumber(redis.call('HGET', key, 'until')) <= now

local function finish(outcome, ms)
  redis.call('HDEL', key, 'owner', 'until', 'waiting')
  if outcome ~= '' then redis.call('HSET', key, 'outcome:' .. owner, string.format('%.0f ', now) .. outcome) end
  redis.call('PEXPIRE', key, ms)
  redis.call('PUBLISH', channel, key)
end

-- The outcome that is stated, and the claims whose owners have died.
local function withLost(outcome)
  local reply = { outcome }
  for _, field in ipairs(redis.call('HKEYS', key)) do
    local ended = string.match(field, '^outcome:(.*)$')
    if ended and string.match(redis.call('HGET', key, field), '^%d+ lost$') then reply[#reply + 1] = ended end
  end
  return reply
end
`;

const forgetMs = 15_000;
/** How long it is known that an owner has died, in milliseconds, and how long a claim is in Redis at all. */
export const lostMs = 3_600_000;

/** Who notices that an owner has died sends nothing either: the call may have been charged. */
export const claimScript = script(`${begin}
if owner == id then return withLost('granted') end
if isOver then
  finish('lost', ${lostMs})
  return withLost('lost')
end
if owner then
  redis.call('HINCRBY', key, 'waiting', 1)
  return { 'wait', owner }
end
local reply = withLost('granted')
for _, field in ipairs(redis.call('HKEYS', key)) do
  local ended = string.match(redis.call('HGET', key, field), '^%d+')
  if tonumber(ended) + ${forgetMs} <= now then redis.call('HDEL', key, field) end
end
redis.call('HSET', key, 'owner', id, 'until', now + ARGV[3], 'waiting', 0)
redis.call('PEXPIRE', key, ${lostMs})
return reply
`);

/** How the claim of another is: `wait`, `ended` with its outcome, `lost`, or `gone`. */
export const lookScript = script(`${begin}
local outcome = redis.call('HGET', key, 'outcome:' .. id)
if outcome then
  local text = string.match(outcome, '^%d+ (.*)$')
  if text == 'lost' then return { 'lost' } end
  return { 'ended', text }
end
if owner ~= id then return { 'gone' } end
if isOver then
  finish('lost', ${lostMs})
  return { 'lost' }
end
return { 'wait' }
`);

/**
 * Ends a claim. Without an outcome, only if nobody waits for one or \`ARGV[4]\` says so; returns whether it has ended. A
 * claim that was refused because others have died, which its process did not hear of, returns those.
 */
export const endScript = script(`${begin}
if owner ~= id then return withLost(1) end
local isAwaited = tonumber(redis.call('HGET', key, 'waiting')) > 0
if ARGV[3] == '' and isAwaited and ARGV[4] ~= '1' then return 0 end
finish(isAwaited and ARGV[3] or '', ${forgetMs})
return 1
`);

export const renewClaimScript = script(`${begin}
if owner == id then redis.call('HSET', key, 'until', now + ARGV[3]) end
return 1
`);
