import type { MiddlewareHandler } from 'hono';
import { refuse } from './refuse.ts';

/** Counts running requests, and refuses new ones once the server is shutting down. */
export interface Drain {
  middleware: MiddlewareHandler;
  hasBegun(): boolean;
  /** Resolves when every running request is answered. */
  begin(): Promise<void>;
}

export function createDrain(): Drain {
  let underWay = 0;
  let begun = false;
  let emptied = () => {};
  return {
    middleware: async (context, next) => {
      if (begun) {
        context.header('Connection', 'close');
        context.header('Retry-After', '1');
        return refuse(context, 503, 'This server is shutting down.');
      }
      underWay++;
      try {
        await next();
      } finally {
        underWay--;
        if (underWay === 0) emptied();
      }
      if (begun) context.header('Connection', 'close');
    },
    hasBegun: () => begun,
    begin: () =>
      new Promise((resolve) => {
        begun = true;
        emptied = resolve;
        if (underWay === 0) resolve();
      }),
  };
}
