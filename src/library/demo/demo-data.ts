import type { DemoData } from './built-demo-data.ts';

let demoDataPromise: Promise<DemoData> | undefined;

/**
 * Returns the demo data. The first call generates the data, which takes several seconds. The build therefore generates
 * it in advance, and replaces this module with `built-demo-data.ts`, which reads the generated files.
 */
export function readDemoData(): Promise<DemoData> {
  demoDataPromise ??= import('./make-demo-data.ts').then(({ makeDemoData }) => makeDemoData());
  return demoDataPromise;
}
