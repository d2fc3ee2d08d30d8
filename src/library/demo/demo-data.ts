import type { DemoData } from './packed-demo-data.ts';

let made: Promise<DemoData> | undefined;

/**
 * Makes the data of the demo, which takes seconds. The build replaces this module by packed-demo-data.ts, which reads
 * what the build has made.
 */
export function readDemoData(): Promise<DemoData> {
  made ??= import('./make-demo-data.ts').then(({ makeDemoData }) => makeDemoData());
  return made;
}
