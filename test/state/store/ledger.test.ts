import { describe } from 'vitest';
import { describeEveryStore } from '../../support/stores.ts';
import { ledgerSuite } from '../ledger-suite.ts';
import { openTestLedger } from './open-ledger.ts';

describe('the ledger over a store', () => {
  describeEveryStore('it', (open) => {
    ledgerSuite(async () => openTestLedger(await open()));
  });
});
