import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { BoardAdsResult, BoardData, BoardPicturesResult } from '../../src/board/payload.ts';
import {
  type BoardService,
  createAdId,
  createAds,
  now,
  readPageToken,
  startBoardService,
} from '../support/board/board-service.ts';
import { startPictureHost } from '../support/picture-host.ts';
import { startServer, type TestServer } from '../support/server.ts';

const outputs = ['both', 'text', 'structured'] as const;
let service: BoardService;
const servers = {} as Record<(typeof outputs)[number], TestServer>;
let server: TestServer;
let page: string;
const readTestPageToken = async ({ client }: Pick<TestServer, 'client'>) => {
  const { contents } = await client.readResource({ uri: 'ui://ad-library/board' });
  return readPageToken((contents[0] as { text: string }).text);
};
beforeAll(async () => {
  service = await startBoardService(createAds(30));
  for (const output of outputs) servers[output] = await service.start({ output });
  server = servers.both;
  page = await readTestPageToken(server);
});
afterAll(() => service.close());

const meta = <Data>({ raw }: { raw: { _meta?: Record<string, unknown> | undefined } }) =>
  raw._meta?.['ad-library/board'] as Data;
const callBoardTool = async <Data>(name: string, args: object, client: Pick<TestServer, 'call'> = server) => {
  const result = await client.call(name, { page, ...args });
  expect(result.text.split('\n')).toHaveLength(1);
  return meta<Data>(result);
};

describe.each(outputs)('The tools of the ad board with the output setting %s', (output) => {
  test('a tool result contains the ads, the total and the price that the ad board needs', async () => {
    const server = servers[output];
    const searchResult = await server.call('search_ads', { limit: 7 });
    expect(meta<BoardData>(searchResult)).toMatchObject({
      tool: 'search_ads',
      totalHits: 30,
      nextCredits: { atLeast: 1, atMost: 1 },
    });
    const { ids = [], cursor } = meta<BoardData>(searchResult);
    expect(ids).toHaveLength(7);
    expect(cursor).toEqual(expect.any(String));
    const gathered = await server.call('gather_ads', { maxAds: 30, maxCredits: 30 });
    expect(meta<BoardData>(gathered).gathering).toMatch(/^g/);
    const viewed = await server.call('view_ads', { adIds: ids.slice(0, 2) });
    expect(meta<BoardData>(viewed).ids).toEqual(ids.slice(0, 2));

    const boardResult = await server.call('board_ads', { ids, page });
    expect(meta<BoardAdsResult>(boardResult).ads.map(({ id }) => id)).toEqual(ids);
    expect(boardResult.text).toBe('7 ads for the board, 0 more to come.');
    expect(Object.keys(boardResult.data)).toEqual(output === 'text' ? [] : ['receipt']);
    const { pictures } = await callBoardTool<BoardPicturesResult>('board_pictures', { ids: ids.slice(0, 1) }, server);
    expect(pictures).toEqual([{ id: ids[0], src: expect.stringMatching(/^data:image\/jpeg;base64,\/9j/) }]);
  });

  test('the tools for the ad board return no data to a caller without the token of the board page', async () => {
    const server = servers[output];
    const { ids } = meta<BoardData>(await server.call('search_ads', { limit: 5 }));
    const { gathering } = meta<BoardData>(await server.call('gather_ads', { maxAds: 30, maxCredits: 30 }));
    const before = service.requests.length + service.pictures.length;
    for (const word of [{}, { page: '' }, { page: 'x' }, { page: page.slice(1) }])
      for (const [name, args] of [
        ['board_ads', { ids }],
        ['board_ads', { gathering }],
        ['board_ads', {}],
        ['board_pictures', { ids }],
      ] as const) {
        const { raw, text } = await server.call(name, { ...args, ...word });
        expect(text).toBe('This tool answers only the board, which shows ads to the person.');
        expect(raw._meta).toEqual({ 'ad-library/board': {} });
        expect(JSON.stringify(raw).length).toBeLessThan(300);
      }
    expect(service.requests.length + service.pictures.length).toBe(before);
  });

  test('the data that other tools send to the ad board contains no text written by advertisers', async () => {
    const server = servers[output];
    const { ids = [] } = meta<BoardData>(await server.call('search_ads', { limit: 30, detail: 'full' }));
    const collectionId = meta<BoardData>(await server.call('list_collections')).collections?.[0]?.id;
    await server.call('add_collection_item', { collectionId, itemType: 'ads', itemId: ids[0] });
    for (const [name, args] of [
      ['search_ads', { limit: 30, detail: 'full' }],
      ['gather_ads', { maxAds: 30, maxCredits: 0 }],
      ['gather_ads', { maxAds: 30, maxCredits: 30 }],
      ['view_ads', { adIds: ids.slice(0, 3) }],
      ['list_collection_items', { collectionId, itemType: 'ads' }],
      ['list_collection_items', { collectionId, itemType: 'pages' }],
      ['get_ad', { adId: ids[0] }],
      ['query_ads', { sql: 'SELECT * FROM ads' }],
    ] as const) {
      const { raw } = await server.call(name, { ...args });
      expect(raw.isError).not.toBe(true);
      const boardData = JSON.stringify(raw._meta ?? {});
      expect(boardData).not.toMatch(/offer|line|card|heron|stridemoor|copperquill|shop/i);
      expect(boardData.length).toBeLessThan(400 + 40 * ids.length);
    }
  });
});

test('board_ads marks the ads that the latest check of a watch (a saved search) found to be new', async () => {
  const service = await startBoardService(createAds(30));
  const server = await service.start({ cacheSeconds: 0 });
  await server.call('watch_ads', { name: 'w', filters: {}, maxCredits: 30 });
  const first = await server.call('check_watches', { maxCredits: 30 });
  expect(meta<BoardData>(first)).toMatchObject({ tool: 'check_watches', gathering: expect.stringMatching(/^g/) });
  const listMarkedIds = async () => {
    const { gathering = '' } = (await server.call('gather_ads', { maxCredits: 30 })).data as { gathering?: string };
    const { ads } = await callBoardTool<BoardAdsResult>(
      'board_ads',
      { gathering, page: await readTestPageToken(server) },
      server,
    );
    return ads.filter(({ isNew }) => isNew).map(({ id }) => id);
  };
  expect(await listMarkedIds()).toEqual([]);
  await service.add(createAds(32)(`${service.baseUrl}/pictures`).slice(30));
  const second = await server.call('check_watches', { maxCredits: 30 });
  expect(meta<BoardData>(second).ids?.sort()).toEqual([createAdId(30), createAdId(31)]);
  expect((await listMarkedIds()).sort()).toEqual([createAdId(30), createAdId(31)]);
  await service.close();
});

test('board_ads returns stored ads with their labels at no charge', async () => {
  await server.call('gather_ads', { maxAds: 30, maxCredits: 30 });
  const before = service.requests.length;
  const { ads, missingIds, left, offeredTools } = await callBoardTool<BoardAdsResult>('board_ads', {
    ids: [createAdId(3), 'nowhere', createAdId(2)],
  });
  expect(ads.map(({ id }) => id)).toEqual([createAdId(3), createAdId(2)]);
  expect([missingIds, left]).toEqual([['nowhere'], []]);
  expect(offeredTools).toEqual(['search_ads', 'list_collections', 'add_collection_item']);
  await server.call('label_ads', {
    labels: [
      { adId: createAdId(2), label: 'hook', value: 'question' },
      { adId: createAdId(2), label: 'new' },
    ],
  });
  const labelled = await callBoardTool<BoardAdsResult>('board_ads', {
    ids: [createAdId(3), createAdId(2)],
    detail: 'full',
  });
  const labels = [{ label: 'hook', value: 'question' }, { label: 'new' }];
  expect(labelled.ads.map((ad) => ad.labels)).toEqual([undefined, labels]);
  expect(service.requests.length).toBe(before);
  const expectedFields = {
    pageName: 'Copperquill',
    firstLine: 'First line of offer 2.',
    daysRunning: 7,
    active: true,
    creative: '3 cards',
  };
  expect(ads[1]).toMatchObject({ ...expectedFields, cards: [{ title: 'Card 1 of 2' }] });
  expect(Object.keys(ads[1] ?? {})).not.toContain('body');
  const fullResult = await callBoardTool<BoardAdsResult>('board_ads', { ids: [createAdId(2)], detail: 'full' });
  expect(fullResult.ads[0]).toMatchObject({
    ...expectedFields,
    body: 'First line of offer 2.\nIts second line.',
    landingUrl: 'https://shop.example/offer/2',
    cards: [{ title: 'Card 1 of 2', body: 'Card text 1' }, {}, {}],
  });
});

test('board_ads says how many ads are missing from a gather_ads result and which fields some ads lack', async () => {
  const ownService = await startBoardService((mediaUrl) =>
    createAds(30)(mediaUrl).map((ad, index) => ({ ...ad, countries: index < 20 ? ['DE'] : [] })),
  );
  try {
    const client = await ownService.start({ output: 'both' });
    const token = await readTestPageToken(client);
    const { gathering: id } = meta<BoardData>(await client.call('gather_ads', { maxAds: 15, maxCredits: 30 }));
    const { gathering } = await callBoardTool<BoardAdsResult>('board_ads', { gathering: id, page: token }, client);
    expect(gathering?.notes[0]).toMatch(/^Read 15 of 30 ads.* Reading the rest costs /);
    await client.call('gather_ads', { maxCredits: 30 });
    const complete = await callBoardTool<BoardAdsResult>('board_ads', { gathering: id, page: token }, client);
    expect(complete.gathering?.notes).toContainEqual(
      expect.stringMatching(/^Known for some of the 30 ads only: .*country \(20\)/),
    );
  } finally {
    await ownService.close();
  }
});

test('board_ads returns the ads of a gather_ads result and rejects an unknown result id', async () => {
  const { gathering: id } = meta<BoardData>(await server.call('gather_ads', { maxAds: 30, maxCredits: 30 }));
  const { gathering, ads } = await callBoardTool<BoardAdsResult>('board_ads', { gathering: id });
  expect(gathering).toMatchObject({ id, found: 30, read: 30, complete: true });
  expect(ads).toHaveLength(30);
  const unknown = await server.call('board_ads', { gathering: 'g0', page });
  expect(unknown.isError).toBe(true);
  expect(unknown.text).toContain('gather_ads reads its ads again');
});

test('board_ads returns the time at which the ads were read', async () => {
  let time = now;
  const { baseUrl, apiKey } = service;
  const server = await startServer({ config: { baseUrl, apiKey }, now: () => time });
  const { gathering } = meta<BoardData>(await server.call('gather_ads', { maxAds: 30, maxCredits: 30 }));
  time += 70 * 86_400_000;
  for (const args of [{ gathering }, { ids: [createAdId(3), createAdId(2)] }]) {
    const { asOf, readAt } = await callBoardTool<BoardAdsResult>('board_ads', args, server);
    expect([readAt?.slice(0, 10), asOf.slice(0, 10)]).toEqual(['2026-11-20', '2027-01-29']);
  }
  expect(await callBoardTool<BoardAdsResult>('board_ads', { ids: ['nowhere'] }, server)).not.toHaveProperty('readAt');
  await server.close();
});

test('board_ads returns a large gather_ads result in several calls without duplicates', async () => {
  const ownService = await startBoardService(createAds(2100));
  const large = await ownService.start();
  const gathered = await large.call('gather_ads', { maxAds: 10_000, maxCredits: 5000 });
  const { gathering } = meta<BoardData>(gathered);
  const readIds: string[] = [];
  let request: object = { gathering };
  let { left } = { left: [''] };
  while (left.length > 0) {
    const answer = await callBoardTool<BoardAdsResult>('board_ads', request, large);
    expect(JSON.stringify(answer).length).toBeLessThan(510_000);
    expect(answer.ads.length).toBeGreaterThan(0);
    readIds.push(...answer.ads.map(({ id }) => id));
    left = [...answer.left, ...left.slice(2000)].filter((id) => id !== '');
    request = { ids: left.slice(0, 2000) };
  }
  expect(readIds).toHaveLength(2100);
  expect(readIds.toSorted()).toEqual(Array.from({ length: 2100 }, (_, index) => createAdId(index)).toSorted());
  await ownService.close();
});

test('board_pictures returns the pictures of an ad in card order, with a reason for each missing picture', async () => {
  await server.call('gather_ads', { maxAds: 30, maxCredits: 30 });
  const requestedIds = [`${createAdId(2)}#3`, `${createAdId(2)}#1`, `${createAdId(2)}#9`, createAdId(99)];
  service.pictures.length = 0;
  const { pictures, left } = await callBoardTool<BoardPicturesResult>('board_pictures', { ids: requestedIds });
  expect(pictures.map(({ id }) => id)).toEqual(requestedIds);
  expect(pictures.map(({ src }) => src !== undefined)).toEqual([true, true, false, false]);
  expect(pictures[2]?.reason).toContain('only 3 cards');
  expect(pictures[3]?.reason).toContain('not in the dataset');
  expect(left).toEqual([]);
  expect(service.pictures).toEqual(['/pictures/2-3.jpg', '/pictures/2-1.jpg']);
});

test('board_pictures returns the other pictures if one picture fails to load', async () => {
  const host = await startPictureHost();
  const [quick, slow] = createAds(2)('');
  const createMedia = (url: string) => ({ media: [{ type: 'THUMB', nr: 0, url }] });
  const ownService = await startBoardService((mediaUrl) => [
    { ...quick, ...createMedia(`${mediaUrl}/quick.jpg`) },
    { ...slow, ...createMedia(host.serve(() => {})) },
  ]);
  const ownHost = { host: '127.0.0.1', port: Number(new URL(ownService.baseUrl).port) };
  const serverWithTimeout = await ownService.start({
    timeoutMs: 4000,
    mediaHosts: { allowsPublicHosts: false, listedHosts: [host.host, ownHost] },
  });
  await serverWithTimeout.call('search_ads', {});
  // Once fetched, the picture is cached, so later calls return it even on a busy machine.
  const fastPicture = () =>
    callBoardTool<BoardPicturesResult>('board_pictures', { ids: [createAdId(0)] }, serverWithTimeout);
  await expect.poll(async () => (await fastPicture()).pictures[0]?.src).toBeDefined();
  const { pictures } = await callBoardTool<BoardPicturesResult>(
    'board_pictures',
    { ids: [createAdId(0), createAdId(1)] },
    serverWithTimeout,
  );
  expect(pictures).toEqual([
    { id: createAdId(0), src: expect.stringContaining('data:image/jpeg') },
    { id: createAdId(1), reason: 'there was no time left for it', isLate: true },
  ]);
  await ownService.close();
  await host.close();
});

test('a server without support for the ad board neither lists nor mentions the board tools', async () => {
  const plain = await service.start({ tools: ['whoami', 'get_ad'] });
  await expect(plain.client.readResource({ uri: 'ui://ad-library/board' })).rejects.toThrow('no resource');
  expect((await plain.call('board_ads', { ids: [] })).text).toContain('There is no tool');
  expect((await server.call('nothing')).text).not.toContain('board_');
  expect(server.client.getInstructions()).not.toContain('board_');
});

test('the board tools reject calls with too many ids or with ids that are too long', async () => {
  const expectRefusal = async (name: string, args: object) => {
    const { isError, text } = await server.call(name, { page, ...args });
    expect([isError, text.length < 500]).toEqual([true, true]);
  };
  await expectRefusal('board_ads', { ids: Array.from({ length: 2001 }, (_, index) => `${index}`) });
  await expectRefusal('board_ads', { ids: ['x'.repeat(201)] });
  await expectRefusal('board_ads', { gathering: '__proto__' });
  await expectRefusal('board_pictures', { ids: [] });
  await expectRefusal('board_pictures', { ids: Array.from({ length: 25 }, (_, index) => `${index}`) });
  const { missingIds } = await callBoardTool<BoardAdsResult>('board_ads', {
    ids: ['__proto__', '__proto__', '', '\u0000'],
  });
  expect(missingIds).toEqual(['__proto__', '', '\u0000']);
  const { pictures } = await callBoardTool<BoardPicturesResult>('board_pictures', {
    ids: [
      '#',
      '#1',
      ...['#', '#-1', '#x', '#0', '#01', '#1x', '#1.0', '#1#2', '#10000'].map((card) => createAdId(2) + card),
    ],
  });
  expect(pictures.filter(({ src }) => src !== undefined)).toEqual([]);
  expect(pictures.at(-1)?.reason).toContain('number of a card');
});
