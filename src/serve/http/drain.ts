import type { MiddlewareHandler } from 'hono';
import { refuse } from './guards.ts';

/** Knows the requests under way, and lets no more in once it is shut. */
export interface Gate {
  pass: MiddlewareHandler;
  isShut(): boolean;
  /** Resolves when everyone who was in is out. */
  shut(): Promise<void>;
}

export function createGate(): Gate {
  let inside = 0;
  let isShut = false;
  let emptied = () => {};
  return {
    pass: async (context, next) => {
      if (isShut) {
        context.header('Connection', 'close');
        context.header('Retry-After', '1');
        return refuse(context, 503, 'This server is shutting down.');
      }
      inside++;
      try {
        await next();
      } finally {
        inside--;
        if (inside === 0) emptied();
      }
      if (isShut) context.header('Connection', 'close');
    },
    isShut: () => isShut,
    shut: () =>
      new Promise((resolve) => {
        isShut = true;
        emptied = resolve;
        if (inside === 0) resolve();
      }),
  };
}
