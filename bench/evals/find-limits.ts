import { type Demo, openDemo } from './demo.ts';

/**
 * The result for a question that the data cannot answer completely, e.g. because most ads have no country. A correct
 * answer must mention this limit of the data.
 */
export interface DataLimitResult {
  question: string;
  /** The answer from the query results alone. It does not mention that the data is incomplete. */
  answerWithoutLimit: string;
  /** The sentence in the results that says how the data is incomplete. Undefined if no result says so. */
  limitSentence: string | undefined;
  toolNames: string[];
  callCount: number;
  tokenCount: number;
}

type CallTool = Demo['call'];
type Rows = unknown[][];

interface Coverage {
  partial?: { note: string }[];
  notes?: string[];
}

/**
 * The functions that a question calls to find its answer. `query` runs an SQL statement and returns its rows as text.
 */
interface Session {
  call: CallTool;
  query(sql: string): Promise<string>;
}

interface LimitedQuestion {
  question: string;
  /** Matches the sentence in the results that says how the data is incomplete. */
  limitPattern: RegExp;
  ask(session: Session): Promise<string>;
}

const [advertiserSeenOnce, advertiserWithPlaceholders, advertiserWithFewCountries] = [
  'Trà Sen Sớm',
  'บ้านใบบุญ',
  'Langkah Rimba',
];
const selectAdsOf = (advertiser: string | undefined) => `FROM ads WHERE pageName = '${advertiser}'`;

const gatherAds = async ({ call }: Session, advertiserExact: string | undefined) => {
  const { summary } = await call('gather_ads', { filters: { advertiserExact }, maxCredits: 20 });
  return String(summary);
};
const findLine = (text: string, start: string) => text.split('\n').find((line) => line.startsWith(start)) ?? '';

/**
 * Returns a pattern for the sentence of a result that lists the fields that only some ads of an advertiser have, e.g.
 * `Known for some of the 40 ads of "Acme" only: spend (12)`.
 */
const createGapPattern = (advertiser: string | undefined, field: string) =>
  new RegExp(`^Known for some of the \\d+ ads of "${advertiser}" only: .*\\b${field} \\(\\d+\\)`);

const questions: readonly LimitedQuestion[] = [
  {
    question: `How many of ${advertiserSeenOnce}'s ads are still running?`,
    // This sentence says that the service last saw all of these ads on one day. Nobody can therefore know whether they
    // still run.
    limitPattern: /^Last seen on one day: (\d+) of \1 ads of .* on \d{4}-\d\d-\d\d\. /,
    ask: async (session) => (await gatherAds(session, advertiserSeenOnce)).split('\n')[0] ?? '',
  },
  {
    question: `How long does ${advertiserSeenOnce} usually run an ad?`,
    limitPattern: /^Last seen on one day: .* Their days running are their age on that day\./,
    ask: ({ query }) => query(`SELECT median(daysRunning) ${selectAdsOf(advertiserSeenOnce)}`),
  },
  {
    question: `In which month did ${advertiserSeenOnce} start the most ads?`,
    limitPattern: /^Last seen on one day: .* counts by start count survivors\./,
    ask: ({ query }) =>
      query(`SELECT startedMonth, count(*) ${selectAdsOf(advertiserSeenOnce)} GROUP BY 1 ORDER BY 2 DESC LIMIT 1`),
  },
  {
    question: `Which product does ${advertiserWithPlaceholders} name in most headlines?`,
    limitPattern: /^Ads whose texts have placeholders/,
    ask: async (session) => findLine(await gatherAds(session, advertiserWithPlaceholders), 'First lines'),
  },
  {
    question: `In which language does ${advertiserWithPlaceholders} advertise?`,
    limitPattern: createGapPattern(advertiserWithPlaceholders, 'language'),
    ask: ({ query }) =>
      query(`SELECT language, count(*) ${selectAdsOf(advertiserWithPlaceholders)} GROUP BY 1 ORDER BY 2 DESC LIMIT 1`),
  },
  {
    question: `Where does ${advertiserWithFewCountries} advertise?`,
    limitPattern: createGapPattern(advertiserWithFewCountries, 'country'),
    ask: async (session) => {
      await gatherAds(session, advertiserWithFewCountries);
      return session.query(
        `SELECT country, count(*) FROM ad_countries JOIN ads USING (id) WHERE pageName = '${advertiserWithFewCountries}' GROUP BY 1`,
      );
    },
  },
  {
    question: `Which picture does ${advertiserWithFewCountries} use most often?`,
    limitPattern: createGapPattern(advertiserWithFewCountries, 'pictureGroup'),
    ask: ({ query }) => query(`SELECT count(DISTINCT pictureGroup) ${selectAdsOf(advertiserWithFewCountries)}`),
  },
  {
    question: 'What share of the ads in the US are videos?',
    limitPattern:
      /^Read 50 of \d+ ads, newest first: .* The missing ads are from .* or earlier, or have no date\. Reading the rest costs /,
    ask: async ({ call, query }) => {
      await call('gather_ads', { filters: { countries: ['US'] }, maxAds: 50, maxCredits: 20 });
      return query(
        "SELECT round(100.0 * sum(displayFormat = 'VIDEO') / count(*)) FROM ads JOIN ad_countries USING (id) WHERE country = 'US'",
      );
    },
  },
  {
    question: 'Which ad in the US has run longest?',
    limitPattern: /^Read 50 of \d+ ads, newest first: .* The missing ads are from .* or earlier, or have no date\./,
    ask: ({ query }) =>
      query("SELECT max(daysRunning) FROM ads JOIN ad_countries USING (id) WHERE country = 'US' AND active = 1"),
  },
  {
    question: 'Does any advertiser in the US offer a lifetime guarantee?',
    limitPattern: /^Read 50 of \d+ ads, newest first: .* The missing ads are from .* or earlier, or have no date\./,
    ask: ({ query }) => query("SELECT count(*) FROM ads WHERE text LIKE '%lifetime guarantee%'"),
  },
];

/**
 * Answers all questions in one session. For each question, finds the sentence in the results that says how the data is
 * incomplete.
 */
export async function findLimits(): Promise<DataLimitResult[]> {
  const demo = await openDemo();
  const answers: DataLimitResult[] = [];
  for (const { question, limitPattern, ask } of questions) {
    const [toolNames, sentences]: [string[], string[]] = [[], []];
    const call: CallTool = async (tool, args) => {
      const data = await demo.call(tool, args);
      toolNames.push(tool);
      const { partial = [], notes = [] } = (data.coverage ?? {}) as Coverage;
      sentences.push(...partial.map(({ note }) => note), ...notes, ...String(data.summary ?? '').split('\n'));
      return data;
    };
    const query = async (sql: string) => {
      const rows = (await call('query_ads', { sql })).rows as Rows;
      return rows.map((row) => row.join(' ')).join(', ');
    };
    const answerWithoutLimit = await ask({ call, query });
    const { callCount, tokenCount } = demo.takeCosts();
    const limitSentence = sentences.find((sentence) => limitPattern.test(sentence));
    answers.push({
      question,
      answerWithoutLimit,
      limitSentence,
      toolNames: [...new Set(toolNames)],
      callCount,
      tokenCount,
    });
  }
  await demo.close();
  return answers;
}
