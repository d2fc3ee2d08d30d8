/** Two SIGINTs within this time, in milliseconds, are one: npm passes on what the terminal has sent already. */
const sameInterrupt = 500;

/**
 * Resolves on SIGINT or SIGTERM. After that a SIGTERM changes nothing, because supervisors repeat it and have SIGKILL
 * to insist. A SIGINT ends the process at once: whoever presses Ctrl-C again has decided not to wait.
 */
export function stopRequested(): Promise<void> {
  return new Promise((resolve) => {
    let since: number | undefined;
    process.on('SIGTERM', () => {
      since ??= performance.now();
      resolve();
    });
    process.on('SIGINT', () => {
      since ??= performance.now();
      if (performance.now() - since > sameInterrupt) process.exit(130);
      resolve();
    });
  });
}
