import { openStoreState, type StoreStateOptions } from '../store/store-state.ts';
import { type PostgresAddress, postgresDriver } from './postgres-store.ts';

/** The only way to PostgreSQL: whoever does not import this file loads nothing of its client. */
export const openPostgresState = ({
  address,
  ...options
}: Omit<StoreStateOptions, 'driver'> & { address: PostgresAddress }) =>
  openStoreState({ driver: postgresDriver(address), ...options });
