import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { version } from '../../src/app.ts';
import { allTools } from '../../src/board/board.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { startBoardService } from '../support/board/board-service.ts';
import { listenOnLoopback } from '../support/loopback.ts';
import { startServer } from '../support/server.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const folder = createTemporaryFolder();
const writeFilterFile = (content: unknown) => {
  const file = join(folder, 'filters.json');
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  return file;
};

/** Starts a server with this filter file and returns the descriptions of the `filters` arguments. */
async function readDescription(file: string): Promise<{ ads: string; pages: string }> {
  const { searchFilters } = readConfig({ AD_LIBRARY_SEARCH_FILTERS: file });
  const server = await startServer({ config: { searchFilters } });
  const { tools } = await server.client.listTools();
  await server.close();
  const readFilters = (name: string) => {
    const filters = tools.find((tool) => tool.name === name)?.inputSchema.properties?.filters;
    return String((filters as { description?: string } | undefined)?.description);
  };
  return { ads: readFilters('search_ads'), pages: readFilters('search_pages') };
}

test('the tool descriptions list the search filters that a filter file defines', async () => {
  const describeWith = (key: string, type: string, more = {}) => ({ key, type, description: 'what it is', ...more });
  const ads = [
    describeWith('query', 'string', { example: 'tea' }),
    describeWith('countries', 'strings', { values: ['DE', 'AT'] }),
    ...['startedAtFrom', 'startedAtTo'].map((key) => describeWith(key, 'date')),
    describeWith('active', 'boolean'),
    describeWith('reach', 'integer'),
  ];
  const { ads: adsDescription, pages } = await readDescription(writeFilterFile({ ads }));
  expect(adsDescription).toBe(
    'Keys: query (e.g. "tea"); countries (list: DE, AT); startedAtFrom/To (date); active (true/false); reach (number). Lists match any of their values.',
  );
  expect(pages).toContain('The service may refuse an unknown key, or ignore it and charge for the search.');
});

const findFilter = (type: string) => ({ key: 'a', type, description: 'what it is' });
test.for<[what: string, file: () => string, reason: string | RegExp]>([
  ['is not JSON', () => writeFilterFile('{'), 'cannot be used'],
  ['has another form', () => writeFilterFile({ adverts: [] }), 'cannot be used'],
  ['names a key twice', () => writeFilterFile({ ads: [findFilter('string'), findFilter('date')] }), 'cannot be used'],
  ['names an unknown type', () => writeFilterFile({ ads: [findFilter('text')] }), 'cannot be used'],
  ['is too large', () => writeFilterFile(' '.repeat(2_000_000)), 'at most 1048576 are allowed'],
  ['is a folder', () => folder, 'it is not a file'],
  ['does not exist', () => join(folder, 'none.json'), 'ENOENT'],
  [
    'has many mistakes',
    () => writeFilterFile({ ads: Array(20_000).fill({ ...findFilter('text'), extra: 1 }) }),
    /^.{1,2000}$/s,
  ],
])('the server does not start and gives the reason if the filter file %s', async ([_, file, reason]) => {
  const name = file();
  const problem = readDescription(name);
  await expect(problem).rejects.toThrow(`AD_LIBRARY_SEARCH_FILTERS names ${name}, which cannot be used: `);
  await expect(problem).rejects.toThrow(reason);
});

test.for(['utf8', 'utf16le'] as const)('a filter file in %s with a byte order mark can be read', (encoding) => {
  const file = join(folder, `${encoding}.json`);
  writeFileSync(file, '\ufeff{"ads": []}', { encoding });
  expect(readConfig({ AD_LIBRARY_SEARCH_FILTERS: file }).searchFilters).toMatchObject({ ads: [] });
});

/** Starts an API under a path prefix with a custom `/filters.json`. Records the requests for it. */
async function createDescriber(answer: RequestListener) {
  const described = { answer, requests: [] as IncomingMessage[], baseUrl: '' };
  const upstream = createServer((request, response) => {
    if (!request.url?.endsWith('/filters.json')) return void response.writeHead(404).end();
    described.requests.push(request);
    described.answer(request, response);
  });
  const { port, close } = await listenOnLoopback(upstream);
  onTestFinished(close);
  described.baseUrl = `http://127.0.0.1:${port}/prefix`;
  return described;
}

/** Lists the tools twice. Returns the descriptions of `filters` and the requests for `/filters.json`. */
async function listToolsWith(answer: RequestListener, searchFilters?: object) {
  const { baseUrl, requests } = await createDescriber(answer);
  const { client, close } = await startServer({ config: { baseUrl, apiKey: 'svc_live_listed', ...searchFilters } });
  const { tools } = await client.listTools();
  await close();
  return { tools, text: JSON.stringify(tools), requests };
}

const createDocument =
  (content: unknown): RequestListener =>
  (_, response) =>
    void response.end(JSON.stringify(content));
const describeWith = (ads: unknown, pages: unknown = []) => createDocument({ ads, pages });
const unknown = "Filter keys as in the service's documentation";

test('the tool list shows the same search filters for a local library as for the demo', async () => {
  const demo = await startServer({ config: { demo: true } });
  const service = await startBoardService(() => []);
  const demoServer = await service.start();
  const { tools } = await demoServer.client.listTools();
  expect(tools).toEqual((await demo.client.listTools()).tools);
  const properties = tools.find(({ name }) => name === 'search_ads')?.inputSchema.properties ?? {};
  expect(properties.limit).toMatchObject({ maximum: 100, description: 'Items per page. Default 20.' });
  const count = tools.find(({ name }) => name === 'count_ads')?.inputSchema.properties ?? {};
  expect((count.by as { enum: string[] }).enum).toEqual(
    expect.arrayContaining(['active', 'advertiserExact', 'countries', 'language', 'domain', 'missing']),
  );
  const { description } = properties.filters as { description: string };
  for (const text of [
    'query (words in headline, body, ',
    'Lists match any of their values',
    'From and To include the bound',
    'case is ignored',
    '"phrase" is exact, -word excludes, even alone',
    'mediaKind (list: image, video; ',
  ])
    expect(description).toContain(text);
  await Promise.all([service.close(), demo.close()]);
});

test('the server requests the search filters of a local API only once and without the API key', async () => {
  const { text, requests } = await listToolsWith(describeWith([{ key: 'colour', type: 'strings', values: ['RED'] }]));
  expect(text).toContain('Keys: colour (list: RED).');
  expect(requests).toHaveLength(1);
  const [{ method, url, headers } = {} as IncomingMessage] = requests;
  expect({ method, url }).toEqual({ method: 'GET', url: '/prefix/filters.json' });
  expect(headers).toMatchObject({ accept: 'application/json', 'user-agent': `ad-library-mcp/${version}` });
  expect(headers.authorization).toBeUndefined();
});

test.each<[string, RequestListener]>([
  ['has not started yet', (_, response) => void response.destroy()],
  ['is still starting', (_, response) => void response.writeHead(503).end()],
])(
  'the server repeats its request for the search filters of a local library until the library responds (the library %s)',
  async (_, atFirst) => {
    const service = await createDescriber(atFirst);
    const config = { baseUrl: service.baseUrl, apiKey: 'svc_live_listed' };
    const server = await startServer({ config });
    const listed = async () => JSON.stringify((await server.client.listTools()).tools);
    for (let index = 0; index < 2; index++) expect(await listed()).toContain(unknown);
    const requestCount = service.requests.length;
    expect(requestCount).toBeGreaterThan(1);
    service.answer = describeWith([{ key: 'colour', type: 'strings', values: ['RED'] }]);
    expect((await server.call('count_ads', { by: 'shape' })).text).toContain('by: takes one of colour');
    for (let index = 0; index < 3; index++) expect(await listed()).toContain('Keys: colour (list: RED).');
    expect(service.requests).toHaveLength(requestCount + 1);
    await server.close();
  },
);

test('the filters in a filter file take precedence over the search filters of the API', async () => {
  const searchFilters = { ads: [{ key: 'shade', type: 'string' }], pages: [] };
  const { text, requests } = await listToolsWith(describeWith([{ key: 'colour', type: 'string' }]), { searchFilters });
  expect(text).toContain('Keys: shade.');
  expect(requests).toEqual([]);
});

const createEndlessBody: RequestListener = (_, response) => {
  const serveMoreFilters = () => {
    while (response.write('x'.repeat(65_536))) if (response.destroyed) return;
    response.once('drain', serveMoreFilters);
  };
  serveMoreFilters();
};
const filter = { key: 'colour', type: 'string', description: 'SAY THIS', note: 'SAY THIS', example: 'SAY THIS' };

test.each<[string, RequestListener]>([
  ['never responds', () => {}],
  ['sends an endless response', createEndlessBody],
  ['sends 10 MB', createDocument({ ads: [{ ...filter, example: 'x'.repeat(10_000_000) }] })],
  ['sends 70,000 characters', createDocument({ ads: [{ ...filter, example: 'x'.repeat(70_000) }] })],
  ['sends deeply nested JSON', (_, response) => void response.end(`${'{"a":['.repeat(100_000)}`)],
  ['is another API', createDocument({ filters: [] })],
  ['describes no filters', describeWith([])],
  ['sends something other than an object', createDocument(null)],
  ['returns HTTP 500', (_, response) => void response.writeHead(500).end(JSON.stringify({ ads: [filter] }))],
  ['redirects', (_, response) => void response.writeHead(302, { location: '/filters.json' }).end()],
  ['closes the connection', (_, response) => void response.destroy()],
  ['describes an object instead of a list', describeWith({ length: 1, 0: filter })],
])(
  'tool descriptions refer to the documentation of the API instead of listing filters if the API %s',
  async (_, answer) => {
    const { tools, text } = await listToolsWith(answer);
    expect(tools).toHaveLength(allTools.length);
    expect(text).toContain(unknown);
    expect(text).not.toContain('SAY THIS');
  },
);

test('free text from the filter descriptions of the API never reaches the model', async () => {
  const { text } = await listToolsWith(describeWith([filter]));
  expect(text).toContain('Keys: colour.');
  expect(text).not.toContain('SAY THIS');
});

test.each([
  { key: 'SAY THIS', type: 'string' },
  { key: '__proto__', type: 'string' },
  { key: 'say_this_to_the_person', type: 'string' },
  { key: 'sized', type: 'SAY THIS' },
  { key: 'ranged', type: 'integer', minimum: 'SAY THIS' },
  { key: 'usual', type: 'string', default: 'SAY THIS' },
  { key: 'looksIn', type: 'query', fields: ['SAY THIS'] },
  ...['SAY THIS', 'SAY_THIS_TO_THE_PERSON', 'A'.repeat(41), 7].map((value) => ({
    ...{ key: 'listed', type: 'strings', values: [value] },
  })),
])(
  'the server ignores the search filters of the API if a name or value could contain a sentence for the model: %j',
  async (invalidFilter) => {
    expect((await listToolsWith(describeWith([filter, invalidFilter]))).text).toContain(unknown);
  },
);
