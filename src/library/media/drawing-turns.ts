import { setImmediate } from 'node:timers/promises';
import PQueue from 'p-queue';
import { ApiError } from '../api-error.ts';

const maxWaiting = 200;

/** Draws one picture at a time: each takes the processor and some megabytes, and other requests have their turn in between. */
export function drawingTurns() {
  const turns = new PQueue({ concurrency: 1 });
  return async <Drawn>(draw: () => Promise<Drawn>): Promise<Drawn> => {
    if (turns.size >= maxWaiting)
      throw new ApiError(503, 'busy', `${maxWaiting} pictures wait to be drawn. Ask again later.`);
    return turns.add(async () => {
      await setImmediate();
      return draw();
    });
  };
}
