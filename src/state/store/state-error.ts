import { AdLibraryError } from '../../api/call.ts';

/** What a caller reads while the shared state cannot be reached: nothing was sent, and it heals by itself. */
export const stateUnavailable = (cause?: unknown): AdLibraryError =>
  new AdLibraryError(
    {
      kind: 'unavailable',
      problem: 'The state that all replicas of this server share cannot be reached at the moment.',
      sent: false,
    },
    { cause },
  );
