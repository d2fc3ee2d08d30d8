import type { Page } from '../api/schemas.ts';
import { timeOf } from '../present/dates.ts';
import { flag, missing, type RecordType, textsIn } from './record-type.ts';

const parts: Pick<RecordType<Page>, 'tags' | 'measures'> = {
  tags: [
    { key: 'pageId', about: 'page id', single: true, opaque: true, of: (page) => [page.pageId] },
    { key: 'countries', about: 'countries, ISO 3166 codes', example: ['KR'], of: (page) => page.countries ?? [] },
    { key: 'languages', about: 'languages, ISO 639 codes', example: ['ko'], of: (page) => page.languages ?? [] },
    {
      key: 'technologySlugs',
      about: 'technologies of the website',
      example: ['live-chat'],
      of: (page) => page.technologySlugs ?? [],
    },
    {
      key: 'detailsEstimated',
      about: 'whether the details are estimates',
      boolean: true,
      single: true,
      of: (page) => flag(page.detailsEstimated),
    },
  ],
  measures: [
    { key: 'adsAmount', about: 'number of ads', value: (page) => page.adsAmount },
    { key: 'adsTotalDuplicates', about: 'copies over all ads', value: (page) => page.adsTotalDuplicates },
    { key: 'averageDuplicates', about: 'copies per ad', value: (page) => page.averageDuplicates },
    { key: 'audienceReach', about: 'people reached', value: (page) => page.audienceReach },
    { key: 'pageLikes', about: 'likes of the page', value: (page) => page.pageLikes },
    { key: 'pageIgFollowers', about: 'Instagram followers', value: (page) => page.pageIgFollowers },
    { key: 'trend', about: 'trend score', value: (page) => page.trend },
    { key: 'performance', about: 'performance score', value: (page) => page.performance },
    { key: 'pageCreatedAt', about: 'when the page was made', date: true, value: (page) => timeOf(page.pageCreatedAt) },
  ],
};

/** Who paid for its ads, as the report of the public archive names them. */
const bylinesOf = ({ disclaimers }: Page) =>
  (Array.isArray(disclaimers) ? disclaimers : []).flatMap((one) => textsIn(one?.bylines));

export const pageType: RecordType<Page> = {
  name: 'pages',
  texts: { copy: (page) => [page.pageName], advertiser: (page) => [page.pageName], bylines: bylinesOf },
  textFilters: [
    {
      key: 'query',
      about: 'the page name or bylines',
      columns: ['copy', 'advertiser', 'bylines'],
      fields: ['pageName', 'bylines'],
      example: 'summer sale -shoes',
    },
    { key: 'bylines', about: 'the lines that say who paid for its ads', columns: ['bylines'] },
  ],
  ...parts,
  tags: [...parts.tags, missing(parts)],
};
