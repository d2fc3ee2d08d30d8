import type { DatasetContents } from '../state/dataset.ts';
import type { AdRowReader } from './ad-row-reader.ts';
import { snapshotOf } from './snapshot.ts';
import type { SqlResult } from './sql/read-rows.ts';
import type { SqlExport, SqlPool, SqlQuery } from './sql/sql-pool.ts';

/** SQL over a tenant's dataset, as it is at one moment. */
export interface DatasetSql {
  query(contents: DatasetContents, query: SqlQuery): Promise<SqlResult>;
  /** Hands all rows of a statement to `read`, uncut and in batches. */
  export<Result>(
    contents: DatasetContents,
    query: Pick<SqlQuery, 'sql' | 'signal'>,
    read: (exported: SqlExport) => Promise<Result>,
  ): Promise<Result>;
}

/** SQL over the datasets of all tenants. The engine is loaded with the first statement. */
export class DatasetSqlEngine {
  readonly #rows: AdRowReader;
  #pool: Promise<SqlPool> | undefined;

  constructor(rows: AdRowReader) {
    this.#rows = rows;
  }

  of(tenantId: string): DatasetSql {
    const snapshot = (contents: DatasetContents) => snapshotOf(this.#rows, tenantId, contents);
    return {
      query: async (contents, query) => (await this.#open()).query(snapshot(contents), query),
      export: async (contents, query, read) => (await this.#open()).export(snapshot(contents), query, read),
    };
  }

  async close(): Promise<void> {
    await (await this.#pool)?.close();
  }

  #open(): Promise<SqlPool> {
    this.#pool ??= import('./sql/sql-pool.ts').then(({ SqlPool }) => new SqlPool());
    return this.#pool;
  }
}
