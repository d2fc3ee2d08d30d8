import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const startBundledWorker = fileURLToPath(new URL('test/support/start-bundled-worker.ts', import.meta.url));

/** What takes longest, mostly waiting: begun first, it ends beside the others and not after them. */
const longest = [
  'replicas/lost',
  'store/state',
  'replicas/any',
  'gather-faults',
  'http/reads',
  'replicas/store-away',
  'replicas/killed',
  'code-blocks',
];

/** What weighs the memory of its own process. */
const weighing = ['storage/memory-of', 'api/faults', 'dataset/sql/attacks'].map((name) => `test/${name}.test.ts`);

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const placeOf = ({ moduleId }: TestSpecification) => {
      const place = longest.findIndex((name) => moduleId.includes(name));
      return place === -1 ? longest.length : place;
    };
    return (await super.sort(files)).sort((left, right) => placeOf(left) - placeOf(right));
  }
}

export default defineConfig({
  resolve: { alias: [{ find: /^\.\/start-worker\.ts$/, replacement: startBundledWorker }] },
  test: {
    globalSetup: ['test/support/bundle-workers.ts'],
    projects: [
      // Files share what their process has loaded: to load it for each would take as long as many of them run.
      { extends: true, test: { name: 'sharing', include: ['test/**/*.test.ts'], exclude: weighing, isolate: false } },
      { extends: true, test: { name: 'weighing', include: weighing } },
    ],
    setupFiles: ['test/support/seed.ts'],
    // What was made of a source stays in node_modules until the source changes: a run of one file takes a third less.
    experimental: { fsModuleCache: true },
    // One more than two cores: a file often waits for the processes that it starts. With two more, calls miss their deadlines.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // A test waits for what it waits for: these are for what hangs, on a machine that is busy with two other files.
    testTimeout: 90_000,
    hookTimeout: 90_000,
    // In CI a machine may stand still for longer than a deadline lasts. What is wrong fails twice.
    retry: process.env.CI ? 1 : 0,
    // A poll that fails waits to its end: here for a person, in CI beside other machines' work.
    expect: { poll: { timeout: process.env.CI ? 60_000 : 5000 } },
    coverage: {
      provider: 'v8',
      include: ['src/**/*.ts'],
      // What runs where this process does not see it, though tests run all of it: in the command as people start it, in
      // threads, and in a browser.
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
