import { Readable } from 'node:stream';
import { expect } from 'vitest';
import { deriveUuid } from '../support/derive-uuid.ts';
import { freshServiceTest } from '../support/fixtures.ts';

/** Ids that differ only in case or in characters that an index could use to encode case. */
const ids = ['search', 'pAbC', 'p1!_.~-', 'pÉé%', 'p%41', 'p%%a', 'p_%Zz'].flatMap((id) => [
  ...new Set([id, id.toLowerCase(), id.toUpperCase(), id.replace(/%/g, '%25'), `${id}A`, `${id}%a`, `${id}%%a`]),
]);

freshServiceTest()(
  'two pages whose ids differ only in letter case are different pages in filters, lists and SQL',
  async ({ service, server }) => {
    const pages = ids.map((pageId, at) => ({ pageId, pageName: `Name ${at}`, pageLikes: at }));
    const ads = ids.map((pageId, at) => ({ id: deriveUuid(`${at}`), pageId, headline: `Of ${at}` }));
    await service.library.import(Readable.from([...pages, ...ads].map((record) => `${JSON.stringify(record)}\n`)));
    for (const [at, pageId] of ids.entries()) {
      const foundAds = (await server.call('search_ads', { filters: { pageId: [pageId] } })).data;
      expect(foundAds.items.map(({ headline }) => headline)).toEqual([`Of ${at}`]);
      const foundPages = (await server.call('search_pages', { filters: { pageId } })).data;
      expect(foundPages.items.map(({ pageName }) => pageName)).toEqual([`Name ${at}`]);
      expect((await server.call('get_page', { pageId })).data.page).toMatchObject({ pageId, pageName: `Name ${at}` });
    }
    const sql = 'SELECT headline, pages.pageName, pageLikes FROM ads JOIN pages USING (pageId) ORDER BY pageLikes';
    const { rows } = (await server.call('query_ads', { sql })).data;
    expect(rows).toEqual(ids.map((_, at) => [`Of ${at}`, `Name ${at}`, at]));
  },
);
