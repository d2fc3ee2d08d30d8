import type { SeededRandom } from '../src/library/demo/market/market.ts';

/** The fields of MCP's `CallToolResult` that the benchmark checks. */
export interface ToolResult {
  isError?: boolean;
  content?: { text?: string }[];
  structuredContent?: { items?: { id?: string; pageId?: string }[]; cursor?: string | null };
}

/** A tool call, with a function that checks its result. */
export interface TrafficCall {
  tool: string;
  args: object;
  isExpectedResult(result: ToolResult): boolean;
}

/** A source of tool calls for one simulated client. Later calls use values from earlier results, such as ids. */
export interface CallerTraffic {
  createNextCall(): TrafficCall;
  rememberResult(call: TrafficCall, result: ToolResult): void;
}

/** A long text for filters. Caches limit the total size of their entries, so long filters fill the caches early. */
const longWord = 'x'.repeat(7500);
/** The maximum number of remembered ids. The limit keeps the memory of this program from growing. */
const maxRememberedIds = 200;

/**
 * Creates a source of tool calls for one simulated caller.
 * @param callerName the name of the caller's API key, as `whoami` returns it
 */
export function createTraffic(callerName: string, random: SeededRandom): CallerTraffic {
  const adIds: string[] = [];
  const pageIds: string[] = [];
  let collectionId: string | undefined;
  let nextPageCall: TrafficCall | undefined;
  let usedNumberCount = 0;

  /**
   * Returns a filter that was not used before and matches every ad, so that no cached response can answer the search.
   */
  const buildNewFilter = () => ({ duplicatesFrom: -1 - usedNumberCount++ / 1e6 });
  const createSearchCall = (filters: object, otherArguments: object = {}) =>
    expectSuccess('search_ads', { filters, ...otherArguments });
  const createAdCall = (otherArguments: object, adId = random.pick(adIds)) =>
    expectSuccess('get_ad', { adId, ...otherArguments }, includesWord(adId));
  const createPageCall = (pageId = random.pick(pageIds)) => expectSuccess('get_page', { pageId }, includesWord(pageId));
  const buildCollectionArguments = () => ({ collectionId, itemType: 'ads' });
  const buildLongFilter = () => ({ ctaType: ['SHOP_NOW', `${usedNumberCount++}${longWord}`] });
  /** Returns arguments with an id that no ad has. The ids of demo ads come from a different range. */
  const buildUnknownAdArguments = () => ({
    adId: `ffffffff-ffff-4fff-8fff-${String(usedNumberCount++).padStart(12, '0')}`,
  });

  const generalCallKinds: [weight: number, createCall: () => TrafficCall][] = [
    // The random upper bound of `daysRunningTo` makes each search start at a different ad. The callers therefore
    // receive many different ads early in the run.
    [
      10,
      () =>
        createSearchCall(
          { ...buildNewFilter(), daysRunningTo: random.between(1, 300) },
          { limit: random.pick([5, 50, 100]) },
        ),
    ],
    [8, () => createSearchCall({ ctaType: ['SHOP_NOW'] }, { limit: random.between(1, 8) })],
    [6, () => createSearchCall({ countries: ['DE', 'US', 'FR'], ...buildNewFilter() }, { detail: 'full' })],
    [14, () => createSearchCall(buildLongFilter(), { limit: 100 })],
    [10, () => nextPageCall ?? createSearchCall({})],
    [
      5,
      () =>
        expectSuccess('search_pages', {
          filters: { adsAmountFrom: -usedNumberCount++ / 1e6 },
          limit: random.between(1, 50),
        }),
    ],
    [9, () => expectSuccess(random.pick(['list_collections', 'get_credits', 'get_account']), {})],
    [4, () => expectSuccess('whoami', {}, includesWord(callerName))],
    [3, () => expectError(...random.pick(invalidCalls))],
    [1, () => expectError('search_ads', { filters: { [`nothing${usedNumberCount++}`]: true } })],
    [1, () => expectError('get_ad', buildUnknownAdArguments())],
    [1, () => expectError(`no_such_tool_${usedNumberCount++}`, {})],
  ];
  const adCallKinds: typeof generalCallKinds = [
    [8, () => createAdCall({})],
    [8, () => createAdCall(random.pick([{ fresh: true }, { seen: true }]))],
  ];
  const pageCallKinds: typeof generalCallKinds = [[5, () => createPageCall()]];
  const collectionCallKinds: typeof generalCallKinds = [
    [3, () => expectSuccess('list_collection_items', { ...buildCollectionArguments(), limit: random.between(1, 100) })],
    [3, () => expectSuccess('add_collection_item', { ...buildCollectionArguments(), itemId: random.pick(adIds) })],
  ];

  return {
    createNextCall() {
      const callKinds = [...generalCallKinds];
      if (adIds.length > 0) callKinds.push(...adCallKinds);
      if (pageIds.length > 0) callKinds.push(...pageCallKinds);
      if (adIds.length > 0 && collectionId) callKinds.push(...collectionCallKinds);
      return random.pick(
        callKinds.flatMap(([weight, createCall]) => Array.from({ length: weight }, () => createCall)),
      )();
    },
    rememberResult({ tool }, { structuredContent: { items = [], cursor } = {} }) {
      if (tool === 'search_ads')
        rememberIds(
          random,
          adIds,
          items.map(({ id }) => id),
        );
      if (tool === 'search_pages')
        rememberIds(
          random,
          pageIds,
          items.map(({ pageId }) => pageId),
        );
      if (tool === 'list_collections') collectionId ??= items[0]?.id;
      if (tool.startsWith('search_')) nextPageCall = cursor ? expectSuccess(tool, { cursor }) : undefined;
    },
  };
}

const invalidCalls: [tool: string, args: object][] = [
  ['search_ads', { limit: 'many' }],
  ['search_ads', { limt: 5 }],
  ['search_ads', { cursor: '@10/20.AAAAAAAA' }],
  ['get_ad', {}],
  ['get_ad', { adId: 'not an id' }],
  ['get_page', { pageId: '0' }],
  ['list_collection_items', { collectionId: 'nobody', itemType: 'ads' }],
  ['add_collection_item', { collectionId: 'nobody', itemType: 'shoes', itemId: '1' }],
];

function expectSuccess(
  tool: string,
  args: object,
  isExpectedData: (result: ToolResult) => boolean = () => true,
): TrafficCall {
  return {
    tool,
    args,
    isExpectedResult: (result) => !result.isError && !!result.structuredContent && isExpectedData(result),
  };
}

/**
 * Returns a function that checks whether a result contains `word`. A wrong result, or a result for another caller,
 * would not contain the word.
 */
const includesWord = (word: string) => (result: ToolResult) => JSON.stringify(result.structuredContent).includes(word);

function expectError(tool: string, args: object): TrafficCall {
  return {
    tool,
    args,
    isExpectedResult: (result) => result.isError === true && (result.content?.[0]?.text ?? '') !== '',
  };
}

function rememberIds(random: SeededRandom, rememberedIds: string[], ids: (string | undefined)[]): void {
  for (const id of ids) {
    if (id === undefined || rememberedIds.includes(id)) continue;
    if (rememberedIds.length < maxRememberedIds) rememberedIds.push(id);
    else rememberedIds[random.between(0, maxRememberedIds - 1)] = id;
  }
}
