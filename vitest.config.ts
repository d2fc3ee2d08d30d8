import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const startBundledWorker = fileURLToPath(new URL('test/support/start-bundled-worker.ts', import.meta.url));

/** The slowest test files, which mostly wait. They start first, so that other files run while they wait. */
const slowestFiles = [
  'replicas/lost',
  'store/state',
  'replicas/any',
  'gather-faults',
  'http/reads',
  'replicas/store-away',
  'replicas/killed',
  'code-blocks',
];

/** Test files that measure the memory or count the objects of their process. Each of them runs in its own process. */
const memoryMeasuringFiles = [
  'storage/json-memory',
  'api/faults',
  'dataset/sql/attacks',
  'transports/stdio/session',
].map((name) => `test/${name}.test.ts`);

/** Sorts the slowest files to the front and keeps Vitest's order for all other files. */
class SlowestFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId }: TestSpecification) => {
      const rank = slowestFiles.findIndex((name) => moduleId.includes(name));
      return rank === -1 ? slowestFiles.length : rank;
    };
    return (await super.sort(files)).sort((left, right) => rankOf(left) - rankOf(right));
  }
}

export default defineConfig({
  resolve: { alias: [{ find: /^\.\/start-worker\.ts$/, replacement: startBundledWorker }] },
  test: {
    globalSetup: ['test/support/bundle-workers.ts'],
    projects: [
      // Files of this project share their process and its loaded modules: loading the modules takes longer than most files run.
      {
        extends: true,
        test: { name: 'shared process', include: ['test/**/*.test.ts'], exclude: memoryMeasuringFiles, isolate: false },
      },
      { extends: true, test: { name: 'own process', include: memoryMeasuringFiles } },
    ],
    setupFiles: ['test/support/seed.ts'],
    // Compiled sources stay in node_modules until they change, which makes the run of one test file a third faster.
    experimental: { fsModuleCache: true },
    // One worker more than a machine with two cores has, because test files often wait for the processes that they start.
    // With four workers, calls miss their deadlines.
    maxWorkers: 3,
    sequence: { sequencer: SlowestFilesFirst },
    // These limits only end a test that hangs. A wait for an event has a shorter limit (test/support/deadline.ts), so that
    // a failure names the event.
    testTimeout: 90_000,
    hookTimeout: 90_000,
    // There is no `retry`: a retry would hide a race between the code and its test.
    expect: { poll: { timeout: 15_000 } },
    coverage: {
      provider: 'v8',
      include: ['src/**/*.ts'],
      // Tests run these files too, but in other processes, in threads and in a browser, where coverage is not measured.
      exclude: [
        ...['main', 'cli/run', 'cli/replica-state', 'dataset/sql/engine', 'dataset/sql/worker', 'pictures/worker'].map(
          (name) => `src/${name}.ts`,
        ),
        'src/board/view/**',
      ],
      reporter: ['text', 'json-summary'],
      reportOnFailure: true,
      thresholds: { statements: 95, lines: 95, branches: 92 },
    },
  },
});
