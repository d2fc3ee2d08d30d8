import { createLazyGetter } from '../../lazy-getter.ts';
import type { DemoData } from './built-demo-data.ts';

/**
 * Returns the demo data. The first call generates the data, which takes several seconds. The build therefore generates
 * it in advance, and replaces this module with `built-demo-data.ts`, which reads the generated files.
 */
export const readDemoData = createLazyGetter(
  async (): Promise<DemoData> => (await import('./make-demo-data.ts')).makeDemoData(),
);
