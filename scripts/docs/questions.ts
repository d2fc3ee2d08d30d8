import { startServer } from '../../test/support/server.ts';
import { day } from './examples.ts';
import { replaceMarked } from './marked.ts';

interface Answered {
  question: string;
  answer: string;
  tools: string;
  credits: number;
}

type Ask = (tool: string, args: object) => Promise<Data>;

/** What the questions read of results. */
interface Data {
  items: { pageName: string; headline: string; daysRunning: number; duplicates: number }[];
  read: number;
  rows: (string | number)[][];
}

const inGermany = { countries: ['DE'] };

/** Asked in this order: the last one costs nothing because of the one before. */
const questions: { question: string; tools: string; answer(ask: Ask): Promise<string> }[] = [
  {
    question: 'Which ads that promise free shipping have run longest in the US, and still run?',
    tools: '`search_ads`',
    async answer(ask) {
      const filters = { query: '"free shipping"', countries: ['US'], active: true, sort: 'daysRunning' };
      const { items } = await ask('search_ads', { filters, limit: 3 });
      const ads = items.map(
        ({ pageName, headline, daysRunning, duplicates }) =>
          `${pageName}, “${headline}”: ${daysRunning} days, ${duplicates} copies`,
      );
      return `${ads.join('; ')}.`;
    },
  },
  {
    question: 'What share of the ads in Germany are videos, and do they run longer than the others?',
    tools: '`gather_ads`, `query_ads`',
    async answer(ask) {
      const { read } = await ask('gather_ads', { filters: inGermany, maxCredits: 30 });
      const sql = `SELECT displayFormat = 'VIDEO', count(*), median(daysRunning)
        FROM ads JOIN ad_countries USING (id) WHERE country = 'DE' GROUP BY 1 ORDER BY 1`;
      const [others = [], videos = []] = (await ask('query_ads', { sql })).rows;
      const share = Math.round((100 * Number(videos[1])) / read);
      const longer = Number(videos[2]) > Number(others[2]) ? 'Yes, they do' : 'No, they do not';
      return `${videos[1]} of ${read}, ${share}%. ${longer}: half of the videos have run ${videos[2]} days or longer; of the other ads, half have run ${others[2]} days or longer. All ${read} ads were read, so this is no sample.`;
    },
  },
  {
    question: 'Which of these advertisers tests the most, and which message does it repeat?',
    tools: '`query_ads`',
    async answer(ask) {
      const inDe = "FROM ads JOIN ad_countries USING (id) WHERE country = 'DE'";
      const perPage = `SELECT pageName, count(*), count(DISTINCT variant), sum(active) ${inDe}
        GROUP BY 1 ORDER BY 3 DESC, 2 DESC LIMIT 1`;
      const [[pageName = '', ads, messages, running] = []] = (await ask('query_ads', { sql: perPage })).rows;
      const perMessage = `SELECT min(firstLine), count(*), max(daysRunning) ${inDe}
        AND variant IS NOT NULL AND pageName = '${String(pageName).replaceAll("'", "''")}'
        GROUP BY variant ORDER BY 2 DESC, 3 DESC LIMIT 1`;
      const [[line, copies, days] = []] = (await ask('query_ads', { sql: perMessage })).rows;
      return `${pageName}: ${messages} different messages in ${ads} ads; ${running} of the ads still run. Its most repeated message, “${line}”, is in ${copies} ads, one of which ran ${days} days.`;
    },
  },
];

/** README's questions, with the answers that the demo gives on the day of the examples. */
export async function answeredQuestions(): Promise<Answered[]> {
  const server = await startServer({ config: { demo: true }, now: () => day });
  const answered: Answered[] = [];
  for (const { question, tools, answer } of questions) {
    let credits = 0;
    const ask: Ask = async (tool, args) => {
      const { data } = await server.call(tool, { ...args });
      credits += data.receipt.charged;
      return data as unknown as Data;
    };
    answered.push({ question, answer: await answer(ask), tools, credits });
  }
  await server.close();
  return answered;
}

export async function withQuestions(readme: string): Promise<string> {
  const parts = (await answeredQuestions()).map(
    ({ question, answer, tools, credits }) =>
      `> **${question}**\n>\n> ${answer}\n>\n> <sub>${tools} · ${credits === 0 ? 'free' : `${credits} credit${credits === 1 ? '' : 's'}`}</sub>`,
  );
  return replaceMarked(readme, 'questions', parts.join('\n\n'));
}
