import type { Collections } from './collections.ts';
import type { LibraryConfig } from './config.ts';
import type { Cursors } from './cursor.ts';
import type { Database } from './database.ts';
import type { Meter } from './meter.ts';
import type { Records } from './records.ts';

/** Everything an operation may use. */
export type ServiceContext = {
  config: LibraryConfig;
  database: Database;
  records: Records;
  collections: Collections;
  cursors: Cursors;
  meter: Meter;
  now: () => number;
};
