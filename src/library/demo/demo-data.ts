import type { DemoData } from './packed-demo-data.ts';

let demoData: Promise<DemoData> | undefined;

/**
 * Makes the data of the demo once, and returns the same data at each call. Making the data takes seconds, so the build
 * replaces this module by `packed-demo-data.ts`, which reads the data that the build has made.
 */
export function readDemoData(): Promise<DemoData> {
  demoData ??= import('./make-demo-data.ts').then(({ makeDemoData }) => makeDemoData());
  return demoData;
}
