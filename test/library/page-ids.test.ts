import { Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { freshServiceTest } from '../support/fixtures.ts';
import type { TestServer } from '../support/server.ts';
import { uuidOf } from '../support/uuid-of.ts';

const test = freshServiceTest();

/** Ids that differ in nothing but case, and in what an index might take for a mark of it. */
const spellings = fc
  .tuple(fc.stringMatching(/^[a-zA-Z%!_.~É-é-]{1,8}$/), fc.integer({ min: 0, max: 1_000_000 }))
  .map(([text, number]) => {
    const id = `p${number}${text}`;
    return [...new Set([id, id.toLowerCase(), id.toUpperCase(), id.replace(/%/g, '%25'), `${id}A`, `${id}%a`])];
  });

const rowsOf = async (server: TestServer, sql: string) => (await server.call('query_ads', { sql })).data.rows;

describe('pages whose ids differ in case', () => {
  test('are pages of their own in filters, single items, lists and SQL', async ({ service, start }) => {
    let run = 0;
    await fc.assert(
      fc.asyncProperty(spellings, async (ids) => {
        run++;
        const pages = ids.map((pageId, at) => ({ pageId, pageName: `Name ${run} ${at}`, pageLikes: at }));
        const ads = ids.map((pageId, at) => ({ id: uuidOf(`${run}-${at}`), pageId, headline: `Of ${at}` }));
        const lines = [...pages, ...ads].map((record) => `${JSON.stringify(record)}\n`);
        await service.library.import(Readable.from(lines));
        const server = await start();
        for (const [at, pageId] of ids.entries()) {
          const found = (await server.call('search_ads', { filters: { pageId: [pageId] } })).data;
          expect(found.items.map(({ headline }) => headline)).toEqual([`Of ${at}`]);
          const listed = (await server.call('search_pages', { filters: { pageId } })).data;
          expect(listed.items.map(({ pageName }) => pageName)).toEqual([`Name ${run} ${at}`]);
          const one = (await server.call('get_page', { pageId })).data;
          expect(one.page).toMatchObject({ pageId, pageName: `Name ${run} ${at}` });
        }
        const sql = 'SELECT headline, pages.pageName, pageLikes FROM ads JOIN pages USING (pageId) ORDER BY pageLikes';
        expect(await rowsOf(server, sql)).toEqual(ids.map((_, at) => [`Of ${at}`, `Name ${run} ${at}`, at]));
        await server.close();
      }),
      { numRuns: 6, endOnFailure: true },
    );
  }, 120_000);
});
