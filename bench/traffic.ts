import { type SeededRandom, seededRandom } from '../scripts/demo-market/market.ts';

export interface SoakCaller {
  /** What `whoami` says of its key. */
  name: string;
  key: string;
}

/** MCP's CallToolResult, in the part that is judged here. */
export interface ToolResult {
  isError?: boolean;
  content?: { text?: string }[];
  structuredContent?: { items?: { id?: string; pageId?: string }[]; cursor?: string | null; hasMore?: boolean };
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

export function trafficOf({ name }: SoakCaller, seed: number): Traffic {
  const random = seededRandom(seed);
  const ads: string[] = [];
  const pages: string[] = [];
  let collection: string | undefined;
  let going: { tool: string; cursor: string } | undefined;
  let searches = 0;

  /** A filter that lets everything through and was never asked for before. */
  const newFilter = () => ({ duplicatesFrom: -1 - searches++ / 1e6 });
  /** Begins anywhere among the ads, so that many different ones are seen early. */
  const anywhere = () => ({ sort: 'daysRunning', daysRunningTo: random.between(1, 300) });
  const goingOn = (): Question | undefined => {
    if (!going) return undefined;
    const { tool, cursor } = going;
    return fine(tool, { cursor });
  };
  const ofAd = (args: object = {}) => {
    if (!ads[0]) return undefined;
    const adId = random.pick(ads);
    return fine('get_ad', { adId, ...args }, says(adId));
  };
  const ofPage = () => {
    if (!pages[0]) return undefined;
    const pageId = random.pick(pages);
    return fine('get_page', { pageId }, says(pageId));
  };
  const ofCollection = (tool: string, args: () => object) =>
    collection && ads[0] ? fine(tool, { collectionId: collection, itemType: 'ads', ...args() }) : undefined;

  const kinds: [weight: number, make: () => Question | undefined][] = [
    [
      10,
      () => fine('search_ads', { filters: { ...newFilter(), ...anywhere() }, limit: random.pick([5, 20, 50, 100]) }),
    ],
    [8, () => fine('search_ads', { filters: { ctaType: ['SHOP_NOW'] }, limit: random.between(1, 8) })],
    [
      6,
      () =>
        fine('search_ads', {
          filters: { countries: ['DE', 'US', 'FR'], ...newFilter(), order: 'asc' },
          detail: 'full',
        }),
    ],
    [
      14,
      () =>
        fine('search_ads', {
          filters: { ctaType: ['SHOP_NOW', 'LEARN_MORE', `${searches++}${longWord}`] },
          limit: 100,
        }),
    ],
    [10, goingOn],
    [8, () => ofAd()],
    [4, () => ofAd({ fresh: true })],
    [4, () => ofAd({ seen: true })],
    [
      5,
      () => fine('search_pages', { filters: { adsAmountFrom: -1 - searches++ / 1e6 }, limit: random.between(1, 50) }),
    ],
    [5, ofPage],
    [3, () => fine('list_collections', {})],
    [3, () => ofCollection('list_collection_items', () => ({ limit: random.between(1, 100) }))],
    [3, () => ofCollection('add_collection_item', () => ({ itemId: random.pick(ads) }))],
    [3, () => fine('get_credits', {})],
    [3, () => fine('get_account', {})],
    [4, () => fine('whoami', {}, says(name))],
    [3, () => bad(...random.pick(badCalls))],
    [1, () => bad('search_ads', { filters: { [`nothing${searches++}`]: true } })],
    // None of the demo's ads, whose ids are drawn by the same generator.
    [1, () => bad('get_ad', { adId: `ffffffff-ffff-4fff-8fff-${String(searches++).padStart(12, '0')}` })],
    [1, () => bad(`no_such_tool_${searches++}`, {})],
  ];
  const drawn = kinds.flatMap(([weight, make]) => Array.from({ length: weight }, () => make));

  return {
    next() {
      return random.pick(drawn)() ?? fine('search_ads', { limit: 10 });
    },
    learn({ tool }, { structuredContent = {} }) {
      const { items = [], cursor } = structuredContent;
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
      if (tool.startsWith('search_')) going = cursor ? { tool, cursor } : undefined;
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

function remember(random: SeededRandom, known: string[], ids: (string | undefined)[]): void {
  for (const id of ids) {
    if (id === undefined || known.includes(id)) continue;
    if (known.length < maxIds) known.push(id);
    else known[random.between(0, maxIds - 1)] = id;
  }
}
