import { once } from 'node:events';
import { connect } from 'node:net';
import type { RedisServer } from '../test/support/redis-server.ts';

export function usedMemory(redis: RedisServer): number {
  return Number(/used_memory:(\d+)/.exec(redis.cli('INFO', 'memory'))?.[1]);
}

/** Bytes of all keys by their kind, the most first. */
export function bytesByKind(redis: RedisServer): [kind: string, bytes: number][] {
  const sums = `local sums, answer = {}, {}
    for _, key in ipairs(redis.call('KEYS', '*')) do
      local kind = string.match(key, '^[^:]+:{[^}]+}:([^:]+)') or 'other'
      sums[kind] = (sums[kind] or 0) + redis.call('MEMORY', 'USAGE', key, 'SAMPLES', 0)
    end
    for kind, bytes in pairs(sums) do answer[#answer + 1] = kind .. ' ' .. bytes end
    return answer`;
  return redis
    .cli('EVAL', sums, '0')
    .split('\n')
    .map((line): [string, number] => [line.split(' ')[0] ?? '', Number(line.split(' ')[1])])
    .sort(([, left], [, right]) => right - left);
}

/** Milliseconds of bare round trips to it, one after the other. */
export async function roundTrips({ port }: RedisServer, count: number): Promise<number[]> {
  const socket = connect(port, '127.0.0.1').setNoDelay();
  await once(socket, 'connect');
  const times: number[] = [];
  for (let trip = 0; trip < count; trip++) {
    const began = performance.now();
    socket.write('PING\r\n');
    await once(socket, 'data');
    times.push(performance.now() - began);
  }
  socket.destroy();
  return times;
}
