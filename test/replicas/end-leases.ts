import type { RedisServer } from '../support/redis-server.ts';

const script = `
local time = redis.call('TIME')
local over = time[1] * 1000 - 1
for _, key in ipairs(redis.call('KEYS', '*:claim:*')) do
  if redis.call('HEXISTS', key, 'until') == 1 then redis.call('HSET', key, 'until', over) end
end
for _, key in ipairs(redis.call('KEYS', '*:account')) do
  for _, field in ipairs(redis.call('HKEYS', key)) do
    if string.match(field, '^lease:') then
      local lease = cjson.decode(redis.call('HGET', key, field))
      lease.until_ = over
      redis.call('HSET', key, field, cjson.encode(lease))
    end
  end
end
`;

/** What eight seconds without renewal do to what a replica that died held. */
export const endLeases = (redis: RedisServer): void => void redis.cli('EVAL', script, '0');
