import { makeDemoCalls } from '../../test/support/demo-calls.ts';
import { startServer, type TestServer } from '../../test/support/server.ts';
import { replaceMarkedSection } from './marked.ts';

/**
 * The date of all examples in the documentation. The demo data depends only on the date, so the examples do not change
 * when the documentation is generated again.
 */
const exampleTime = Date.UTC(2026, 0, 15, 12);

/**
 * Formats a text as a fenced code block in Markdown. Results contain texts of advertisers, which may themselves contain
 * backticks. The fence is therefore longer than any sequence of backticks in the text.
 */
function formatCodeBlock(text: string): string {
  const longestFence = Math.max(2, ...[...text.matchAll(/`+/g)].map(([backticks]) => backticks.length));
  const fence = '`'.repeat(longestFence + 1);
  return `${fence}text\n${text}\n${fence}`;
}

/** Formats a tool call and its result as a collapsed section. The summary line shows the name of the tool. */
function formatCollapsedCall(tool: string, args: object, resultText: string): string {
  const callBlock = formatCodeBlock(`${tool} ${JSON.stringify(args)}\n\n${resultText}`);
  return `<details><summary><code>${tool}</code></summary>\n\n<!-- example ${tool} -->\n${callBlock}\n\n</details>`;
}

/** Inserts an example call of every tool, with its result on demo data, into a documentation page. */
export async function insertExamples(page: string): Promise<string> {
  const server = await startServer({ config: { demo: true }, now: () => exampleTime });
  const demoCalls = await makeDemoCalls(server.call);
  await server.close();
  const formattedCalls = demoCalls.map(({ name, args, result }) => formatCollapsedCall(name, args, result.text));
  return replaceMarkedSection(page, 'examples', `\n${formattedCalls.join('\n\n')}\n`);
}

/** The fields of tool results that the example questions and sessions use. */
interface ToolData {
  items: (Record<'id' | 'name' | 'pageId' | 'pageName' | 'headline', string> &
    Record<'daysRunning' | 'duplicates' | 'adCount', number>)[];
  total: number;
  counts: { filters: { displayFormat?: string[] }; total: number }[];
  estimate: { ads: number; pages: number; credits: number | null; atLeast: number; atMost?: number };
  read: number;
  rows: (string | number)[][];
  uri: string;
  methods: string;
  sections: { heading: string }[];
  receipt: { charged: number };
}

type AskTool = (tool: string, args: Record<string, unknown>) => Promise<ToolData>;

const inGermany = { countries: ['DE'] };

/**
 * The example questions in the README, in order. The last question costs nothing, because the server has already read
 * the ads for the previous question.
 */
const questions: { question: string; toolNames: string; findAnswer(ask: AskTool): Promise<string> }[] = [
  {
    question: 'Which ads that promise free shipping have run longest in the US and are still running?',
    toolNames: '`search_ads`',
    async findAnswer(ask) {
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
    toolNames: '`gather_ads`, `query_ads`',
    async findAnswer(ask) {
      const { read } = await ask('gather_ads', { filters: inGermany, maxCredits: 30 });
      const sql = `SELECT displayFormat = 'VIDEO', count(*), median(daysRunning)
        FROM ads JOIN ad_countries USING (id) WHERE country = 'DE' GROUP BY 1 ORDER BY 1`;
      const [others = [], videos = []] = (await ask('query_ads', { sql })).rows;
      const share = Math.round((100 * Number(videos[1])) / read);
      const longer = Number(videos[2]) > Number(others[2]) ? 'They do run longer' : 'They do not run longer';
      return `${videos[1]} of the ${read} ads are videos (${share}%). ${longer}: half of the videos have run for ${videos[2]} days or longer, and half of the other ads for ${others[2]} days or longer. All ${read} ads were read, so this is not a sample.`;
    },
  },
  {
    question: 'Which of these advertisers tests the most messages, and which message does it repeat most often?',
    toolNames: '`query_ads`',
    async findAnswer(ask) {
      const fromGermanAds = "FROM current_ads JOIN ad_countries USING (id) WHERE country = 'DE'";
      const topPageSql = `SELECT pageName, count(*), count(DISTINCT variant), sum(active = 1) ${fromGermanAds}
        GROUP BY 1 ORDER BY 3 DESC, 2 DESC LIMIT 1`;
      const [[pageName = '', ads, messages, running] = []] = (await ask('query_ads', { sql: topPageSql })).rows;
      const topMessageSql = `SELECT min(firstLine), count(*), max(daysRunning) ${fromGermanAds}
        AND variant IS NOT NULL AND pageName = '${String(pageName).replaceAll("'", "''")}'
        GROUP BY variant ORDER BY 2 DESC, 3 DESC LIMIT 1`;
      const [[message, copies, days] = []] = (await ask('query_ads', { sql: topMessageSql })).rows;
      return `${pageName} has ${messages} different messages in ${ads} ads, and ${running} of these ads are still running. Its most repeated message is “${message}”. The message appears in ${copies} ads, and the longest-running of these ads ran for ${days} days.`;
    },
  },
];

/** Inserts the questions with their answers on demo data into the README. */
export async function insertQuestions(readme: string): Promise<string> {
  const server = await startServer({ config: { demo: true }, now: () => exampleTime });
  const sections: string[] = [];
  for (const { question, toolNames, findAnswer } of questions) {
    let credits = 0;
    const text = await findAnswer(async (tool, args) => {
      const { data } = await server.call(tool, args);
      credits += data.receipt.charged;
      return data as unknown as ToolData;
    });
    const cost = credits === 0 ? 'free' : `${credits} credit${credits === 1 ? '' : 's'}`;
    sections.push(`> **${question}**\n>\n> ${text}\n>\n> <sub>${toolNames} · ${cost}</sub>`);
  }
  await server.close();
  return replaceMarkedSection(readme, 'questions', sections.join('\n\n'));
}

/** A conversation between a user and an assistant, as Markdown with every tool call and its result. */
class Session {
  readonly #lines: string[] = [];
  readonly #server: TestServer;

  constructor(server: TestServer) {
    this.#server = server;
  }

  addUserText(text: string): void {
    this.#lines.push(`> **You:** ${text}`);
  }

  addAssistantText(text: string): void {
    this.#lines.push(`> **Assistant:** ${text}`);
  }

  addText(text: string): void {
    this.#lines.push(text);
  }

  async call(name: string, args: Record<string, unknown>): Promise<ToolData> {
    const { text, data, isError } = await this.#server.call(name, args);
    if (isError) throw new Error(text);
    this.#lines.push(formatCollapsedCall(name, args, text));
    return data as unknown as ToolData;
  }

  /** Adds the first lines of an exported file to the text of the session. */
  async addFile(uri: string, maxLines: number): Promise<void> {
    const [content] = (await this.#server.client.readResource({ uri })).contents;
    const fileText = content && 'text' in content ? content.text.replace('\uFEFF', '').replaceAll('\r', '') : '';
    const allLines = fileText.trimEnd().split('\n');
    const shownText = allLines.slice(0, maxLines).join('\n');
    const omittedLines = allLines.length > maxLines ? `\n… ${allLines.length - maxLines} more lines` : '';
    this.#lines.push(`<!-- example file -->\n${formatCodeBlock(shownText + omittedLines)}`);
  }

  formatText(): string {
    return this.#lines.join('\n\n');
  }
}

const sessionsByName: Record<string, (session: Session) => Promise<void>> = {
  competitor: playCompetitorSession,
  share: playShareSession,
  shortlist: playShortlistSession,
};

async function playCompetitorSession(session: Session): Promise<void> {
  session.addUserText(
    'What does Lichtwerft advertise, and which message does it repeat? I need a report for my colleagues.',
  );
  const pageSearch = await session.call('search_pages', { filters: { query: 'Lichtwerft' }, limit: 1 });
  const page = pageSearch.items[0];
  const filters = { pageId: page?.pageId };
  const { total, counts } = await session.call('count_ads', { filters, by: 'displayFormat' });
  const { estimate } = await session.call('gather_ads', { filters, maxCredits: 0 });
  const { credits, atLeast, atMost } = estimate;
  const price = credits === null ? `between ${atLeast} and ${atMost} credits` : `${credits} credits`;
  const formats = counts.map((part) => `${part.total} ${part.filters.displayFormat?.[0]}`).join(', ');
  session.addAssistantText(
    `${page?.pageName} has ${total} ads: ${formats}. Reading all of them costs ${price}. Do you want me to read them?`,
  );
  session.addUserText('Yes.');
  const { receipt } = await session.call('gather_ads', { filters, maxCredits: credits ?? atMost });
  const sql = `SELECT min(firstLine) AS message, count(*) AS ads, max(daysRunning) AS longest, sum(active = 1) AS running FROM current_ads WHERE pageId = '${page?.pageId}' AND variant IS NOT NULL GROUP BY variant ORDER BY ads DESC, longest DESC`;
  const { rows } = await session.call('query_ads', { sql, limit: 5 });
  const [message, ads, longest] = rows[0] ?? [];
  const startsSql = `SELECT startedMonth, count(*) AS ads FROM ads WHERE pageId = '${page?.pageId}' GROUP BY 1 ORDER BY 1`;
  const report = await session.call('write_report', {
    title: `What ${page?.pageName} advertises`,
    sections: [
      {
        heading: 'The message it repeats',
        text: `“${message}” is in ${ads} ads. The longest-running of them ran for ${longest} days.`,
        sql,
      },
      { heading: 'When its ads started', sql: startsSql, chart: 'bar' },
      {
        heading: 'The ads',
        adIds: (
          await session.call('query_ads', {
            sql: `SELECT id FROM ads WHERE pageId = '${page?.pageId}' ORDER BY daysRunning DESC`,
            limit: 3,
          })
        ).rows.map(([id]) => id),
      },
    ],
  });
  session.addAssistantText(
    `Reading the ads cost ${receipt.charged} credits. ${page?.pageName} repeats the message “${message}” most often. The message appears in ${ads} ads, and the longest-running of these ads ran for ${longest} days. The report has ${report.sections.length} sections: ${report.sections.map(({ heading }) => `“${heading}”`).join(', ')}.`,
  );
  session.addText('The report is one HTML file. See an [example report](pictures/report.html).');
}

async function playShareSession(session: Session): Promise<void> {
  const filters = { countries: ['DE'] };
  session.addUserText(
    'What share of the ads in Germany are videos, and do they run longer? I want to cite the figures.',
  );
  const { total } = await session.call('count_ads', { filters, split: [{ displayFormat: ['VIDEO'] }] });
  await session.call('gather_ads', { filters, maxAds: 1000, maxCredits: 40 });
  const sql = `SELECT displayFormat = 'VIDEO' AS isVideo, count(*) AS ads, median(daysRunning) AS medianDays FROM ads JOIN ad_countries USING (id) WHERE country = 'DE' GROUP BY 1 ORDER BY 1`;
  const [others = [], videos = []] = (await session.call('query_ads', { sql })).rows;
  const percent = Math.round((100 * Number(videos[1])) / total);
  session.addAssistantText(
    `${videos[1]} of the ${total} ads are videos (${percent}%). Half of the videos have run for ${videos[2]} days or longer, and half of the other ads for ${others[2]} days or longer. All matching ads were read, so this is not a sample.`,
  );
  session.addUserText('Give me the table, and a note on how the ads were gathered.');
  const tableSql = `SELECT id, pageName, displayFormat, startedAt, daysRunning FROM ads JOIN ad_countries USING (id) WHERE country = 'DE' ORDER BY daysRunning DESC`;
  const { uri, methods } = await session.call('export_ads', { sql: tableSql, name: 'ads-in-germany' });
  session.addText('The exported table begins like this:');
  await session.addFile(uri, 4);
  session.addText('The note that comes with the table says:');
  await session.addFile(methods, 60);
}

async function playShortlistSession(session: Session): Promise<void> {
  session.addUserText(
    'Which ads that promise free shipping have run longest in the US and are still running? Show them to me.',
  );
  const filters = { query: '"free shipping"', countries: ['US'], active: true, sort: 'daysRunning' };
  const { items } = await session.call('search_ads', { filters, limit: 3 });
  const adIds = items.map(({ id }) => id);
  await session.call('view_ads', { adIds });
  const ads = items.map(({ pageName, headline, daysRunning }) => `${pageName}, “${headline}” (${daysRunning} days)`);
  session.addAssistantText(`${ads.join('; ')}. If your AI app can show the board, the ads appear there.`);
  session.addUserText('Label each ad with its hook. Then save the first one, and give me all three as an Excel sheet.');
  const hooks = ['a new way to sleep', 'what everyone talks about', 'a product that is here at last'];
  await session.call('label_ads', {
    labels: adIds.map((adId, index) => ({ adId, label: 'hook', value: hooks[index] })),
  });
  const { items: collections } = await session.call('list_collections', {});
  const collection = collections.find(({ name }) => name === 'Saved ads');
  await session.call('add_collection_item', { collectionId: collection?.id, itemType: 'ads', itemId: adIds[0] });
  const ids = adIds.map((id) => `'${id}'`).join(', ');
  const sql = `SELECT pageName, headline, value AS hook, daysRunning, landingDomain FROM ads JOIN labels ON adId = id WHERE id IN (${ids}) AND label = 'hook' ORDER BY daysRunning DESC`;
  await session.call('export_ads', { sql, format: 'xlsx', name: 'free-shipping' });
  session.addAssistantText(
    `I saved the first ad to “${collection?.name}”. The Excel sheet has ${items.length} rows, one for each ad.`,
  );
}

/** Inserts every session with its results on demo data into a documentation page. */
export async function insertSessions(page: string): Promise<string> {
  let updatedPage = page;
  for (const [name, playSession] of Object.entries(sessionsByName)) {
    const server = await startServer({ config: { demo: true }, now: () => exampleTime });
    const session = new Session(server);
    await playSession(session);
    await server.close();
    updatedPage = replaceMarkedSection(updatedPage, `session ${name}`, `\n${session.formatText()}\n`);
  }
  return updatedPage;
}
