import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const startBundledWorker = fileURLToPath(new URL('test/support/start-bundled-worker.ts', import.meta.url));

export default defineConfig({
  resolve: { alias: [{ find: /^\.\/start-worker\.ts$/, replacement: startBundledWorker }] },
  test: {
    globalSetup: ['test/support/bundle-workers.ts'],
    include: ['test/**/*.test.ts'],
    // Files share what their process has loaded: to load it for each would take as long as many of them run.
    isolate: false,
    setupFiles: ['test/support/seed.ts'],
    // Most files wait for processes that they start, so that more of them than there are cores keep the cores busy.
    maxWorkers: 4,
    // A test waits for what it waits for: these are for what hangs, on a machine that is busy with three other files.
    testTimeout: 90_000,
    hookTimeout: 90_000,
    coverage: {
      provider: 'v8',
      include: ['src/**/*.ts'],
      // The process itself: its arguments, streams, signals and exit code. Tests start it as people do, in a process of
      // its own, which is not seen from here; all that it calls is.
      exclude: ['src/main.ts'],
      reporter: ['text', 'json-summary'],
      reportOnFailure: true,
      thresholds: { lines: 95, branches: 95 },
    },
  },
});
