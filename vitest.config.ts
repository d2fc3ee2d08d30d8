import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const startBundledWorker = fileURLToPath(new URL('test/support/start-bundled-worker.ts', import.meta.url));
const demoDataModule = fileURLToPath(new URL('test/support/demo-data.ts', import.meta.url));

/**
 * The slowest test files, which spend most of their time waiting. They start first, so that other test files run during
 * this time.
 */
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

/**
 * Test files that measure the memory of their process or count its objects. Each file therefore runs in a separate
 * process.
 */
const memoryMeasuringFiles = [
  'library/import-limits',
  'storage/json-memory',
  'api/faults',
  'dataset/sql/attacks',
  'transports/stdio/session',
].map((name) => `test/${name}.test.ts`);

const ownProcessProject = 'own process';

/**
 * Sorts the files that need a process of their own to the front, followed by the slowest test files. All other files
 * keep the order that Vitest chose. When the next file needs its own process, Vitest ends a shared process. A later file
 * would then have to load all modules again.
 */
class TestFileSequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const getStartRank = ({ moduleId, project }: TestSpecification) => {
      if (project.name === ownProcessProject) return -1;
      const rank = slowestFiles.findIndex((name) => moduleId.includes(name));
      return rank === -1 ? slowestFiles.length : rank;
    };
    return (await super.sort(files)).sort((left, right) => getStartRank(left) - getStartRank(right));
  }
}

export default defineConfig({
  resolve: {
    alias: [
      { find: /^\.\/start-worker\.ts$/, replacement: startBundledWorker },
      // Tests use the demo data of the build, because generating it takes several seconds.
      { find: /^\.\/demo-data\.ts$/, replacement: demoDataModule },
    ],
  },
  test: {
    globalSetup: ['test/support/bundle-workers.ts'],
    projects: [
      // The test files in this Vitest project share one process and its loaded modules, because loading the modules
      // takes longer than running most test files.
      {
        extends: true,
        test: { name: 'shared process', include: ['test/**/*.test.ts'], exclude: memoryMeasuringFiles, isolate: false },
      },
      { extends: true, test: { name: ownProcessProject, include: memoryMeasuringFiles } },
    ],
    setupFiles: ['test/support/seed.ts'],
    // Keep compiled sources in `node_modules` until the sources change. A run of a single test file is then a third
    // faster.
    experimental: { fsModuleCache: true },
    // Use one worker more than the two processor cores of a typical machine, because test files often wait for
    // processes that they start. With four workers, calls miss their deadlines.
    maxWorkers: 3,
    sequence: { sequencer: TestFileSequencer },
    // These limits only end a test that hangs. A wait for a single event has a shorter limit (see
    // `test/support/deadline.ts`), so that the error message names the event.
    testTimeout: 90_000,
    hookTimeout: 90_000,
    // Do not set `retry`, because a retry would hide a race condition between the code and its test.
    expect: { poll: { timeout: 15_000 } },
    coverage: {
      provider: 'v8',
      include: ['src/**/*.ts'],
      // Exclude files that tests run in other processes, in threads or in a browser, where Vitest does not measure
      // coverage.
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
