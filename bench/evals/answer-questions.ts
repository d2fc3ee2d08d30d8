import { type CallCosts, type Demo, openDemo } from './demo.ts';

/**
 * A user's question with its answer, the names of the tools that were called to find the answer, and the cost of these
 * calls.
 */
export interface AnsweredQuestion extends CallCosts {
  question: string;
  toolNames: string[];
  answer: string;
}

type CallTool = (tool: string, args?: object) => Promise<Record<string, unknown>>;
type Rows = (string | number)[][];

/**
 * The session in which a user asks all questions. It contains functions that call tools, and ids that earlier questions
 * found and later questions use.
 */
interface Session {
  call: CallTool;
  queryRows(sql: string, limit?: number): Promise<Rows>;
  advanceWeek(): void;
  /** The ids of three ads that the first question of the evaluation found. Later questions are about these ads. */
  adIds: string[];
  pageId: string;
}

const filtersInUs = { query: '"free shipping"', countries: ['US'], active: true, sort: 'daysRunning' };
const filtersInGermany = { countries: ['DE'] };
const sqlInGermany = "FROM ads JOIN ad_countries USING (id) WHERE country = 'DE'";
const formatRows = (rows: Rows) => rows.map((row) => row.join(' ')).join(', ');

/** Thirty questions that one user asks in one session, each with a function that calls tools to find the answer. */
const questions: [question: string, ask: (session: Session) => Promise<unknown>][] = [
  [
    'Which ads that promise free shipping have run longest in the US and are still running?',
    async (session) => {
      const { items } = await session.call('search_ads', { filters: filtersInUs, limit: 3 });
      const ads = items as { id: string; pageName: string; daysRunning: number }[];
      session.adIds = ads.map(({ id }) => id);
      return ads.map((ad) => `${ad.pageName} (${ad.daysRunning} days)`).join(', ');
    },
  ],
  [
    'What is the full text of the longest-running one?',
    async ({ call, adIds }) => {
      const { ad } = await call('get_ad', { adId: adIds[0] });
      return String((ad as { body: string }).body).split('\n')[0];
    },
  ],
  [
    'What do the three look like?',
    async ({ call, adIds }) => `${((await call('view_ads', { adIds })).tiles as object[]).length} ads on one sheet`,
  ],
  ['How many ads run in Germany?', async ({ call }) => (await call('count_ads', { filters: filtersInGermany })).total],
  [
    'Which formats do they have?',
    async ({ call }) => {
      const { counts } = await call('count_ads', { filters: filtersInGermany, by: 'displayFormat' });
      const parts = counts as { filters: { displayFormat: string[] }; total: number }[];
      return parts.map(({ filters, total }) => `${filters.displayFormat[0]} ${total}`).join(', ');
    },
  ],
  [
    'How many of the ads in the US, Canada and Great Britain are still running?',
    async ({ call }) => {
      const split = ['US', 'CA', 'GB'].map((country) => ({ countries: [country] }));
      const { counts } = await call('count_ads', { filters: { active: true }, split });
      return (counts as { total: number }[]).map(({ total }) => total).join(', ');
    },
  ],
  [
    'Who advertises the most in the US?',
    async ({ call }) => {
      const filters = { countries: ['US'], sort: 'adsAmount' };
      const { items } = await call('search_pages', { filters, limit: 5 });
      return (items as { pageName: string; adsAmount: number }[])
        .map((page) => `${page.pageName} ${page.adsAmount}`)
        .join(', ');
    },
  ],
  [
    'How large is Lichtwerft, and since when has it existed?',
    async (session) => {
      const pageSearch = await session.call('search_pages', { filters: { query: 'Lichtwerft' }, limit: 1 });
      session.pageId = (pageSearch.items as { pageId: string }[])[0]?.pageId ?? '';
      const page = (await session.call('get_page', { pageId: session.pageId })).page as Record<string, unknown>;
      return `${page.pageLikes} likes, ${page.adsAmount} ads, since ${String(page.pageCreatedAt).slice(0, 10)}`;
    },
  ],
  [
    'What would reading all ads in Germany cost?',
    async ({ call }) => {
      const { estimate } = await call('gather_ads', { filters: filtersInGermany, maxCredits: 0 });
      const { credits, atLeast, atMost } = estimate as Record<'credits' | 'atLeast' | 'atMost', number | null>;
      return credits ?? `between ${atLeast} and ${atMost}`;
    },
  ],
  [
    'Read them all: what stands out?',
    async ({ call }) => {
      const { read, summary } = await call('gather_ads', { filters: filtersInGermany, maxCredits: 50 });
      return `${read} ads; ${String(summary).split('\n')[0]}`;
    },
  ],
  [
    'Do videos run longer than the other ads there?',
    async ({ queryRows }) =>
      formatRows(
        await queryRows(`SELECT displayFormat = 'VIDEO' AS video, median(daysRunning) ${sqlInGermany} GROUP BY 1`),
      ),
  ],
  [
    'Which advertiser in Germany tests the most messages?',
    async ({ queryRows }) =>
      formatRows(
        await queryRows(`SELECT pageName, count(DISTINCT variant) ${sqlInGermany} GROUP BY 1 ORDER BY 2 DESC LIMIT 1`),
      ),
  ],
  [
    'Which message does Lichtwerft repeat?',
    async ({ queryRows, pageId }) =>
      formatRows(
        await queryRows(
          `SELECT min(firstLine), count(*) FROM ads WHERE pageId = '${pageId}' GROUP BY variant ORDER BY 2 DESC LIMIT 1`,
        ),
      ),
  ],
  [
    'Which calls to action are most common in Germany?',
    async ({ queryRows }) =>
      formatRows(await queryRows(`SELECT ctaType, count(*) ${sqlInGermany} GROUP BY 1 ORDER BY 2 DESC LIMIT 3`)),
  ],
  [
    'In which languages are these ads?',
    async ({ queryRows }) =>
      formatRows(await queryRows(`SELECT language, count(*) ${sqlInGermany} GROUP BY 1 ORDER BY 2 DESC LIMIT 3`)),
  ],
  [
    'Which pictures do most of them use?',
    async ({ call }) => {
      const { pictures, tiles } = await call('view_ads', { sql: `SELECT id ${sqlInGermany}` });
      const [{ ads } = {}] = tiles as { ads?: number }[];
      return `${(pictures as { groups: number }).groups} different ones, the first in ${ads} ads`;
    },
  ],
  [
    'How many messages use the first of these pictures?',
    async ({ queryRows }) =>
      formatRows(
        await queryRows(
          'SELECT count(DISTINCT variant) FROM ads WHERE pictureGroup IS NOT NULL GROUP BY pictureGroup ORDER BY count(*) DESC LIMIT 1',
        ),
      ),
  ],
  [
    'Which landing pages do they lead to most often?',
    async ({ queryRows }) =>
      formatRows(await queryRows(`SELECT landing, count(*) ${sqlInGermany} GROUP BY 1 ORDER BY 2 DESC LIMIT 3`)),
  ],
  [
    'Which campaigns do their links name?',
    async ({ queryRows }) =>
      formatRows(
        await queryRows(
          `SELECT utm ->> 'campaign', count(*) ${sqlInGermany} AND utm IS NOT NULL GROUP BY 1 ORDER BY 2 DESC LIMIT 3`,
        ),
      ),
  ],
  [
    'Which platforms do the longest-running ones use?',
    async ({ queryRows }) =>
      formatRows(
        await queryRows(
          `SELECT platform, count(*) FROM ad_platforms WHERE id IN (SELECT id ${sqlInGermany} ORDER BY daysRunning DESC LIMIT 20) GROUP BY 1 ORDER BY 2 DESC LIMIT 3`,
        ),
      ),
  ],
  [
    'Draw a chart of when the ads in Germany started.',
    async ({ call }) => {
      const sql = `SELECT startedMonth, count(*) AS ads ${sqlInGermany} GROUP BY 1 ORDER BY 1`;
      return `a line of ${(await call('query_ads', { sql, chart: 'line' })).rowCount} months`;
    },
  ],
  [
    'Give me a table of all of them for a spreadsheet.',
    async ({ call }) =>
      `${(await call('export_ads', { sql: `SELECT ads.* ${sqlInGermany}`, format: 'xlsx' })).rows} rows`,
  ],
  [
    'Note the hook of each of the three ads.',
    async ({ call, adIds }) => {
      const labels = adIds.map((adId) => ({ adId, label: 'hook', value: 'a new way to sleep' }));
      return `${(await call('label_ads', { labels })).labelled} notes`;
    },
  ],
  [
    'Write a report of this for my colleagues.',
    async ({ call, adIds }) => {
      const sections = [
        { heading: 'Formats', sql: `SELECT displayFormat, count(*) AS ads ${sqlInGermany} GROUP BY 1`, chart: 'bar' },
        { heading: 'Three ads', adIds },
      ];
      const { bytes } = await call('write_report', { title: 'Ads in Germany', sections });
      return `a file of ${Math.round(Number(bytes) / 1000)} KB`;
    },
  ],
  [
    'Tell me next week what is new.',
    async ({ call }) => {
      await call('watch_ads', { name: 'Germany', filters: filtersInGermany, maxCredits: 50 });
      return 'stored';
    },
  ],
  [
    'What is in my collections?',
    async ({ call }) => {
      const { items } = await call('list_collections');
      return (items as { name: string; adCount: number }[])
        .map((collection) => `${collection.name} ${collection.adCount}`)
        .join(', ');
    },
  ],
  [
    'Which ads in "Skincare that lasts" are still running?',
    async ({ call }) => {
      const collections = (await call('list_collections')).items as { id: string; name: string }[];
      const collectionId = collections.find(({ name }) => name === 'Skincare that lasts')?.id;
      const { items } = await call('list_collection_items', { collectionId, itemType: 'ads' });
      return `${(items as { stillRunning?: boolean }[]).filter((ad) => ad.stillRunning).length} of them`;
    },
  ],
  ['How many credits are left?', async ({ call }) => (await call('get_credits')).credits],
  ['Whose key is this?', async ({ call }) => ((await call('whoami')).user as { name: string }).name],
  [
    'What is new among the ads in Germany after a week, and what is typical?',
    async ({ call, advanceWeek }) => {
      await call('check_watches', { maxCredits: 50 });
      advanceWeek();
      const { watches } = await call('check_watches', { maxCredits: 50 });
      const [watch] = watches as { new: string[]; usual?: { least: number; most: number } }[];
      return `${watch?.new.length} new; ${watch?.usual?.least} to ${watch?.usual?.most} are usual`;
    },
  ],
];

/**
 * Answers all questions in one session, so ads that were read for an earlier question are not read again. Answers them
 * a second time only to count raw tokens, that is, the tokens in the responses of the service.
 */
export async function answerQuestions(): Promise<AnsweredQuestion[]> {
  const [answers, answersWithRawTokens] = [
    await askAllQuestions(await openDemo()),
    await askAllQuestions(await openDemo({ countsRawTokens: true })),
  ];
  return answers.map((answer, index) => ({
    ...answer,
    rawTokenCount: answersWithRawTokens[index]?.rawTokenCount ?? 0,
  }));
}

async function askAllQuestions(demo: Demo): Promise<AnsweredQuestion[]> {
  const usedTools: string[] = [];
  const call: CallTool = (tool, args) => {
    usedTools.push(tool);
    return demo.call(tool, args);
  };
  const queryRows: Session['queryRows'] = async (sql, limit = 50) =>
    (await call('query_ads', { sql, limit })).rows as Rows;
  const session: Session = { call, queryRows, advanceWeek: demo.advanceWeek, adIds: [], pageId: '' };
  const answers: AnsweredQuestion[] = [];
  for (const [question, ask] of questions) {
    const answer = String(await ask(session));
    answers.push({ question, answer, toolNames: usedTools.splice(0), ...demo.takeCosts() });
  }
  await demo.close();
  return answers;
}
