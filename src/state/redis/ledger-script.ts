import { readTime, script } from './redis-commands.ts';

/** How long a settlement that is sent once more is recognised, in milliseconds; and one that counts nothing. */
const repeatedMs = 3_600_000;
const cancelledMs = 60_000;
/** How long an account is kept that has spent nothing; and one of which nothing is known, since anybody can make it up. */
const unpaidMs = 3_600_000;
const unknownMs = 60_000;

/**
 * What every script of the ledger begins with. An account is one hash: its figures, and a field `lease:<id>` for each
 * reservation. Time is that of Redis, so that the clocks of replicas do not matter. A lease that nobody has renewed in
 * time belongs to a replica that died: what its call may have cost counts as spent, until it is settled after all.
 */
const begin = `
local key, channel, ask = KEYS[1], ARGV[1], cjson.decode(ARGV[2])
${readTime}
local day = 86400000
local spending = { 'spent', 'counted', 'returned', 'calls', 'paidAt' }
local figures, leases, changes, removed = {}, {}, {}, {}
local isChanged, settledMs = false, nil

local function text(number)
  return string.format('%.17g', math.max(-1e300, math.min(1e300, number)))
end
local function figure(name)
  return tonumber(figures[name]) or 0
end
local function set(name, value)
  if type(value) == 'number' then value = text(value) end
  if figures[name] ~= value then
    figures[name] = value
    table.insert(changes, name)
    table.insert(changes, value)
  end
end
local function add(name, number)
  set(name, figure(name) + number)
end

local stored = redis.call('HGETALL', key)
for i = 1, #stored, 2 do
  local id = string.match(stored[i], '^lease:(.*)$')
  if id then leases[id] = cjson.decode(stored[i + 1]) else figures[stored[i]] = stored[i + 1] end
end

local function put(id, lease)
  leases[id] = lease
  table.insert(changes, 'lease:' .. id)
  table.insert(changes, cjson.encode(lease))
  isChanged = true
end
local function drop(id)
  leases[id] = nil
  table.insert(removed, 'lease:' .. id)
  isChanged = true
end
-- What was counted for it is taken back.
local function release(id)
  if leases[id].booked then add('returned', leases[id].booked) end
  drop(id)
end

-- Spending ends 30 days after the last paid call, even if somebody keeps asking.
if figure('paidAt') > 0 and figure('paidAt') + 30 * day <= now and not next(leases) then
  for _, name in ipairs(spending) do set(name, 0) end
  isChanged = true
end

-- What a replica knows of spending that Redis has lost: each of these figures only grows.
local known = ask.known
if known and known.paidAt + 30 * day > now then
  for _, name in ipairs(spending) do
    if known[name] > figure(name) then
      set(name, known[name])
      isChanged = true
    end
  end
end

local function uncertain()
  return figure('counted') - figure('returned')
end
local reserved, paidUnderWay, lines
local function count()
  reserved, paidUnderWay, lines = 0, 0, {}
  for _, lease in pairs(leases) do
    if not lease.booked then
      reserved = reserved + lease.credits
      if lease.paid then paidUnderWay = paidUnderWay + 1 end
      if lease.line then lines[lease.line] = true end
    end
  end
end
for id, lease in pairs(leases) do
  if not lease.booked and lease.until_ <= now then
    lease.booked = lease.ifLost or math.max(1, lease.budget - figure('spent') - uncertain())
    add('counted', lease.booked)
    set('paidAt', now)
    put(id, lease)
  elseif lease.booked and lease.until_ + day <= now then
    drop(id)
  end
end
count()
`;

/** Answers with the outcome and the account; its prices only if the replica has others. */
const end = `
local function pricesVersion()
  return figures.prices and figures.priceVersion or ''
end
local arePricesKnown = pricesVersion() == ask.prices

-- Lua takes no more arguments at once.
local function inSlices(command, list)
  for i = 1, #list, 1000 do redis.call(command, key, unpack(list, i, math.min(i + 999, #list))) end
end

-- Versions are never used twice, not even after an earlier copy has come back.
local function setPrices()
  set('prices', ARGV[3])
  set('dearest', ask.dearest)
  set('priceVersion', ask.newVersion)
end

local function finish(outcome)
  count()
  if isChanged then set('version', ask.newVersion) end
  if #stored > 0 or isChanged then
    inSlices('HSET', changes)
    inSlices('HDEL', removed)
    if settledMs then redis.call('SET', KEYS[2], '', 'PX', settledMs) end
    local isKnown = figures.prices or figures.balance or figures.remaining
    local last = now + (isKnown and ${unpaidMs} or ${unknownMs})
    if figure('paidAt') > 0 then last = math.max(last, figure('paidAt') + 30 * day) end
    for _, lease in pairs(leases) do last = math.max(last, lease.until_ + day) end
    redis.call('PEXPIREAT', key, text(last))
  end
  if isChanged then redis.call('PUBLISH', channel, key) end
  local account = {
    version = figures.version or '', prices = pricesVersion(),
    spent = text(figure('spent')), counted = text(figure('counted')), returned = text(figure('returned')), calls = text(figure('calls')),
    paidAt = text(figure('paidAt')), savedCalls = text(figure('savedCalls')), savedCredits = text(figure('savedCredits')),
    remaining = figures.remaining, reserved = text(reserved), paidUnderWay = text(paidUnderWay),
  }
  local prices = account.prices ~= ask.prices and figures.prices or false
  return { outcome, cjson.encode(account), prices }
end`;

const ledgerScript = (work: string) => script(`${begin}${end}${work}`);

export const readScript = ledgerScript(`
return finish('read')
`);

/**
 * The rule of `admission.ts`. The credits were quoted by prices that must still be those of the account. A reservation
 * that was given up before it arrived is settled already: the second key exists.
 */
export const reserveScript = ledgerScript(`
if redis.call('EXISTS', KEYS[2]) == 1 then return finish('refused') end
if not arePricesKnown then return finish('stale') end
if leases[ask.id] then return finish('granted') end
if ask.line and lines[ask.line] then return finish('wait') end
local left = ask.budget - figure('spent') - uncertain() - reserved
if (ask.credits > 0 or ask.paid) and ask.credits > left + 1e-6 then return finish('refused') end
local maxPaid = 1
if 4 * figure('dearest') <= left + 1e-6 then maxPaid = 4 end
if ask.paid and paidUnderWay >= maxPaid then return finish('wait') end
add('leases', 1)
put(ask.id, {
  credits = ask.credits, paid = ask.paid, line = ask.line, ifLost = ask.ifLost, budget = ask.budget,
  number = figure('leases'), until_ = now + ask.leaseMs,
})
return finish('granted')
`);

/**
 * Settles once, however often it is sent: the second key exists once the settlement has arrived. What was counted for
 * a replica that seemed dead is taken back.
 */
export const settleScript = ledgerScript(`
if redis.call('EXISTS', KEYS[2]) == 1 then return finish('settled') end
if ask.learned and not arePricesKnown then return finish('stale') end
local lease = leases[ask.id]
if lease then release(ask.id) end
add('spent', ask.charged)
add('counted', ask.uncertain)
if ask.isPaidAnswer then add('calls', 1) end
if ask.isPaidAnswer or ask.charged + ask.uncertain > 0 then set('paidAt', now) end
if ask.remaining then set('remaining', ask.remaining) end
if ask.learned then setPrices() end
local number = lease and lease.number or 0
if figures.balance and number > 0 then
  local balance = cjson.decode(figures.balance)
  if number > balance.lease then balance.explained = balance.explained + ask.charged end
  set('balance', cjson.encode(balance))
end
isChanged = true
settledMs = (ask.isPaidAnswer or ask.charged + ask.uncertain > 0) and ${repeatedMs} or ${cancelledMs}
return finish('settled')
`);

export const savedScript = ledgerScript(`
if #stored > 0 then
  add('savedCalls', 1)
  add('savedCredits', ask.credits)
end
return finish('saved')
`);

/** A reading older than ten minutes compares to nothing: others may have spent too much of the same balance. */
export const balanceScript = ledgerScript(`
local before = figures.balance and cjson.decode(figures.balance)
if before and now - before.at >= 600000 then before = nil end
if ask.credits then
  set('balance', cjson.encode({ credits = ask.credits, explained = 0, lease = figure('leases'), at = now }))
  isChanged = true
elseif figures.balance then
  table.insert(removed, 'balance')
end
return finish(before and cjson.encode(before) or '')
`);

/**
 * Renews the leases of calls in progress, and brings back those that Redis has lost. A further key for each of them
 * exists if it was settled in the meantime. Removes settled leases, which are in an earlier copy of Redis.
 */
export const renewScript = ledgerScript(`
for _, id in ipairs(ask.settled) do
  if leases[id] then release(id) end
end
for i, lease in ipairs(ask.open) do
  local id = lease.id
  if not leases[id] and redis.call('EXISTS', KEYS[i + 1]) == 0 then
    lease.number = 0
    leases[id] = lease
  end
  if leases[id] and not leases[id].booked then
    leases[id].until_ = now + ask.leaseMs
    put(id, leases[id])
  end
end
if ask.learned and not figures.prices then setPrices() end
return finish('renewed')
`);
