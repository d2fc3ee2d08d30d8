import type { DemoData } from './packed-demo-data.ts';

let demoData: Promise<DemoData> | undefined;

/**
 * Returns the demo data and generates it on the first call. Generating takes seconds, so the build replaces this module
 * with `packed-demo-data.ts`, which reads data that the build has generated.
 */
export function readDemoData(): Promise<DemoData> {
  demoData ??= import('./make-demo-data.ts').then(({ makeDemoData }) => makeDemoData());
  return demoData;
}
