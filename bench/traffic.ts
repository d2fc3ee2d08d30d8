import type { SeededRandom } from '../src/library/demo/market/market.ts';

/** The fields of MCP's `CallToolResult` that are checked. */
export interface ToolResult {
  isError?: boolean;
  content?: { text?: string }[];
  structuredContent?: { items?: { id?: string; pageId?: string }[]; cursor?: string | null };
}

/** A tool call, with a function that checks its result. */
export interface Question {
  tool: string;
  args: object;
  isRight(result: ToolResult): boolean;
}

/** The tool calls of one client. Later calls use values from earlier results. */
export interface Traffic {
  next(): Question;
  learn(question: Question, result: ToolResult): void;
}

/** A long text for filters. Caches limit the size of their entries, so long filters fill the caches early. */
const longWord = 'x'.repeat(7500);
/** Maximum number of ids to remember, so that the memory of this program does not grow. */
const maxIds = 200;

/**
 * Creates the tool calls that one simulated caller sends.
 * @param name the name of the caller's API key, as `whoami` returns it
 */
export function createTraffic(name: string, random: SeededRandom): Traffic {
  const ads: string[] = [];
  const pages: string[] = [];
  let collection: string | undefined;
  let paging: Question | undefined;
  let count = 0;

  /** Returns a filter that is new but matches every ad. */
  const newFilter = () => ({ duplicatesFrom: -1 - count++ / 1e6 });
  const search = (filters: object, more: object = {}) => expectSuccess('search_ads', { filters, ...more });
  const aboutAd = (more: object, adId = random.pick(ads)) =>
    expectSuccess('get_ad', { adId, ...more }, includesWord(adId));
  const aboutPage = (pageId = random.pick(pages)) => expectSuccess('get_page', { pageId }, includesWord(pageId));
  const inCollection = () => ({ collectionId: collection, itemType: 'ads' });
  const longFilter = () => ({ ctaType: ['SHOP_NOW', `${count++}${longWord}`] });
  /** Returns an id that no ad has. The ids of demo ads come from a different range. */
  const unknownAd = () => ({ adId: `ffffffff-ffff-4fff-8fff-${String(count++).padStart(12, '0')}` });

  const generalKinds: [weight: number, make: () => Question][] = [
    // Because of the random bound, the searches start at different ads, so that many ads are seen early.
    [10, () => search({ ...newFilter(), daysRunningTo: random.between(1, 300) }, { limit: random.pick([5, 50, 100]) })],
    [8, () => search({ ctaType: ['SHOP_NOW'] }, { limit: random.between(1, 8) })],
    [6, () => search({ countries: ['DE', 'US', 'FR'], ...newFilter() }, { detail: 'full' })],
    [14, () => search(longFilter(), { limit: 100 })],
    [10, () => paging ?? search({})],
    [
      5,
      () => expectSuccess('search_pages', { filters: { adsAmountFrom: -count++ / 1e6 }, limit: random.between(1, 50) }),
    ],
    [9, () => expectSuccess(random.pick(['list_collections', 'get_credits', 'get_account']), {})],
    [4, () => expectSuccess('whoami', {}, includesWord(name))],
    [3, () => expectError(...random.pick(badCalls))],
    [1, () => expectError('search_ads', { filters: { [`nothing${count++}`]: true } })],
    [1, () => expectError('get_ad', unknownAd())],
    [1, () => expectError(`no_such_tool_${count++}`, {})],
  ];
  const adKinds: typeof generalKinds = [
    [8, () => aboutAd({})],
    [8, () => aboutAd(random.pick([{ fresh: true }, { seen: true }]))],
  ];
  const pageKinds: typeof generalKinds = [[5, () => aboutPage()]];
  const collectionKinds: typeof generalKinds = [
    [3, () => expectSuccess('list_collection_items', { ...inCollection(), limit: random.between(1, 100) })],
    [3, () => expectSuccess('add_collection_item', { ...inCollection(), itemId: random.pick(ads) })],
  ];

  return {
    next() {
      const kinds = [...generalKinds];
      if (ads.length > 0) kinds.push(...adKinds);
      if (pages.length > 0) kinds.push(...pageKinds);
      if (ads.length > 0 && collection) kinds.push(...collectionKinds);
      return random.pick(kinds.flatMap(([weight, make]) => Array.from({ length: weight }, () => make)))();
    },
    learn({ tool }, { structuredContent: { items = [], cursor } = {} }) {
      if (tool === 'search_ads')
        remember(
          random,
          ads,
          items.map(({ id }) => id),
        );
      if (tool === 'search_pages')
        remember(
          random,
          pages,
          items.map(({ pageId }) => pageId),
        );
      if (tool === 'list_collections') collection ??= items[0]?.id;
      if (tool.startsWith('search_')) paging = cursor ? expectSuccess(tool, { cursor }) : undefined;
    },
  };
}

const badCalls: [tool: string, args: object][] = [
  ['search_ads', { limit: 'many' }],
  ['search_ads', { limt: 5 }],
  ['search_ads', { cursor: '@10/20.AAAAAAAA' }],
  ['get_ad', {}],
  ['get_ad', { adId: 'not an id' }],
  ['get_page', { pageId: '0' }],
  ['list_collection_items', { collectionId: 'nobody', itemType: 'ads' }],
  ['add_collection_item', { collectionId: 'nobody', itemType: 'shoes', itemId: '1' }],
];

function expectSuccess(tool: string, args: object, holds: (result: ToolResult) => boolean = () => true): Question {
  return { tool, args, isRight: (result) => !result.isError && !!result.structuredContent && holds(result) };
}

/**
 * Returns a function that checks whether a result contains a word. Results that are wrong or meant for another caller
 * do not contain the word.
 */
const includesWord = (word: string) => (result: ToolResult) => JSON.stringify(result.structuredContent).includes(word);

function expectError(tool: string, args: object): Question {
  return { tool, args, isRight: (result) => result.isError === true && (result.content?.[0]?.text ?? '') !== '' };
}

function remember(random: SeededRandom, remembered: string[], ids: (string | undefined)[]): void {
  for (const id of ids) {
    if (id === undefined || remembered.includes(id)) continue;
    if (remembered.length < maxIds) remembered.push(id);
    else remembered[random.between(0, maxIds - 1)] = id;
  }
}
