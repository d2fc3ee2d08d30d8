import type { SeededRandom } from '../src/library/demo/market/market.ts';

/** MCP's CallToolResult, in the part that is judged here. */
export interface ToolResult {
  isError?: boolean;
  content?: { text?: string }[];
  structuredContent?: { items?: { id?: string; pageId?: string }[]; cursor?: string | null };
}

/** One tool call, and whether an answer to it is right. */
export interface Question {
  tool: string;
  args: object;
  right(result: ToolResult): boolean;
}

/** A caller's calls, each made of what earlier answers told. */
export interface Traffic {
  next(): Question;
  learn(question: Question, result: ToolResult): void;
}

/** Questions and answers are kept by how long they are; these are long, so that what is bounded is full early. */
const longWord = 'x'.repeat(7500);
/** Ids are remembered to ask about, and this program must not grow either. */
const maxIds = 200;

/** @param name what `whoami` says of the caller's key */
export function trafficOf(name: string, random: SeededRandom): Traffic {
  const ads: string[] = [];
  const pages: string[] = [];
  let collection: string | undefined;
  let paging: Question | undefined;
  let count = 0;

  /** A filter that lets everything through and was never asked for before. */
  const newFilter = () => ({ duplicatesFrom: -1 - count++ / 1e6 });
  const search = (filters: object, more: object = {}) => fine('search_ads', { filters, ...more });
  const aboutAd = (more: object, adId = random.pick(ads)) => fine('get_ad', { adId, ...more }, says(adId));
  const aboutPage = (pageId = random.pick(pages)) => fine('get_page', { pageId }, says(pageId));
  const inCollection = () => ({ collectionId: collection, itemType: 'ads' });
  const longFilter = () => ({ ctaType: ['SHOP_NOW', `${count++}${longWord}`] });
  /** None of the demo's ads, whose ids are drawn by the same generator. */
  const unknownAd = () => ({ adId: `ffffffff-ffff-4fff-8fff-${String(count++).padStart(12, '0')}` });

  const always: [weight: number, make: () => Question][] = [
    // Begins anywhere among the ads, so that many different ones are seen early.
    [10, () => search({ ...newFilter(), daysRunningTo: random.between(1, 300) }, { limit: random.pick([5, 50, 100]) })],
    [8, () => search({ ctaType: ['SHOP_NOW'] }, { limit: random.between(1, 8) })],
    [6, () => search({ countries: ['DE', 'US', 'FR'], ...newFilter() }, { detail: 'full' })],
    [14, () => search(longFilter(), { limit: 100 })],
    [10, () => paging ?? search({})],
    [5, () => fine('search_pages', { filters: { adsAmountFrom: -count++ / 1e6 }, limit: random.between(1, 50) })],
    [9, () => fine(random.pick(['list_collections', 'get_credits', 'get_account']), {})],
    [4, () => fine('whoami', {}, says(name))],
    [3, () => bad(...random.pick(badCalls))],
    [1, () => bad('search_ads', { filters: { [`nothing${count++}`]: true } })],
    [1, () => bad('get_ad', unknownAd())],
    [1, () => bad(`no_such_tool_${count++}`, {})],
  ];
  const onceAdsAreKnown: typeof always = [
    [8, () => aboutAd({})],
    [8, () => aboutAd(random.pick([{ fresh: true }, { seen: true }]))],
  ];
  const oncePagesAreKnown: typeof always = [[5, () => aboutPage()]];
  const onceACollectionIsKnown: typeof always = [
    [3, () => fine('list_collection_items', { ...inCollection(), limit: random.between(1, 100) })],
    [3, () => fine('add_collection_item', { ...inCollection(), itemId: random.pick(ads) })],
  ];

  return {
    next() {
      const kinds = [...always];
      if (ads.length > 0) kinds.push(...onceAdsAreKnown);
      if (pages.length > 0) kinds.push(...oncePagesAreKnown);
      if (ads.length > 0 && collection) kinds.push(...onceACollectionIsKnown);
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
      if (tool.startsWith('search_')) paging = cursor ? fine(tool, { cursor }) : undefined;
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

function fine(tool: string, args: object, holds: (result: ToolResult) => boolean = () => true): Question {
  return { tool, args, right: (result) => !result.isError && !!result.structuredContent && holds(result) };
}

/** An answer to another question, or to another caller, would not. */
const says = (word: string) => (result: ToolResult) => JSON.stringify(result.structuredContent).includes(word);

function bad(tool: string, args: object): Question {
  return { tool, args, right: (result) => result.isError === true && (result.content?.[0]?.text ?? '') !== '' };
}

function remember(random: SeededRandom, remembered: string[], ids: (string | undefined)[]): void {
  for (const id of ids) {
    if (id === undefined || remembered.includes(id)) continue;
    if (remembered.length < maxIds) remembered.push(id);
    else remembered[random.between(0, maxIds - 1)] = id;
  }
}
