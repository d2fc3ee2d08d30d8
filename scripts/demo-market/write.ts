/**
 * `npx tsx scripts/demo-market/write.ts` writes the ads and advertisers of the demo to src/library/demo. To be run again
 * when the market or its tables change.
 */
import { writeFileSync } from 'node:fs';
import { brotliCompressSync, constants } from 'node:zlib';
import { marketText } from './market.ts';

const text = Buffer.from(marketText());
const params = { [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS };
writeFileSync(new URL('../../src/library/demo/market.jsonl.br', import.meta.url), brotliCompressSync(text, { params }));
