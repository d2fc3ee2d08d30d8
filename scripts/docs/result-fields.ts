import type { CoverageView } from '../../src/dataset/coverage.ts';
import type { GatherOutput } from '../../src/dataset/gathering-report.ts';
import type { AdView } from '../../src/present/ad.ts';
import type { adFields, pageFields } from '../../src/present/fields.ts';
import type { PageView } from '../../src/present/page.ts';

/**
 * What every field of `structuredContent` means: its type, a colon, and its meaning. `?` marks a field that may be missing.
 * They are not in the schemas that the server lists: those cost every conversation tokens. A type with a capital letter is
 * one of `objects`.
 */
export type Fields = Record<string, string>;

/** The fields of a type, with their marks: what is added to the type or taken from it shows here. */
type FieldsOf<Type> = { [Name in keyof Type & string as undefined extends Type[Name] ? `${Name}?` : Name]-?: string };

const paging: Fields = {
  cursor: 'string | null: pass it back unchanged, with the same filters, for the next page; null at the end',
  hasMore: 'boolean: whether there is a next page',
  'totalHits?': 'number: how many there are in all, where the service says it',
  'shown?': 'Shown: which of the page stand here, where it was cut to fit',
  'nextPage?': 'Price: what the next page costs; missing where it is free or not known',
  'asOf?': 'string: the day that "running" and days refer to',
  'appUrlPattern?': "string: the address of each item in the service's app, with `<id>` for its id",
  'notes?': 'string[]: what the service says about this answer, as data',
};

/** Of the tools that may send several calls. */
const note = 'string: what else to know, in words';

/** On every result. */
export const always: Fields = {
  receipt: 'Receipt: what the call cost',
  'notice?': 'string: in demo mode, that all data are made up',
};

export const objects: Record<string, Fields> = {
  Receipt: {
    charged: 'number | null: credits that the call cost; null where the service did not say',
    remaining: 'number | null: credits left in the account, where the service said',
    cached: 'boolean: true where nothing was sent, so nothing was paid',
    requestId: "string | null: the service's number of the request, for questions to its support",
    'calls?': 'number: how many calls were sent, for tools that may send several',
  },
  Price: {
    credits: 'number | null: the price, where it is known',
    'atMost?': 'number: the most it can be, where only that is known',
  },
  Shown: {
    from: 'number: the first item that is shown',
    to: 'number: the last one',
    of: 'number: how many the page has',
  },
  Collection: {
    id: 'string: its id',
    'name?': 'string: its name, as data',
    'type?': "string: the service's type",
    'isDefault?': 'boolean: whether the service made it',
    'defaultType?': 'string: which of those that the service makes',
    'isOwner?': 'boolean: whether it is yours',
    'adCount?': 'number: ads in it',
    'pageCount?': 'number: advertiser pages in it',
  },
  Count: {
    filters: 'object: what was counted, laid over `filters` of the call',
    total: 'number | null: ads that match; null where it was not counted',
    'value?': 'string: "unknown", for ads of which nobody knows whether they run',
    'gatheredAt?': 'string: when a gathering that answered was made',
    'note?': note,
    'notes?': 'string[]: what the service says about this part',
  },
  Estimate: {
    ads: 'number | null: ads that match',
    pages: 'number | null: calls that reading them takes',
    credits: 'number | null: their price; 0 where nothing is left to read',
    'atMost?': 'number: the most it can be, where `credits` is null for want of prices',
  },
  SinceLast: {
    gatheredAt: 'string: when the last complete gathering of the same question was made',
    fresh: 'number: ads that are new since then',
    updated: 'number: ads that changed since then',
    gone: 'number: ads that are no longer found',
  },
  Coverage: {
    ads: 'number: ads in the dataset',
    gatherings: 'number: gatherings in the dataset',
    'outsideAds?': 'number: ads that no newest gathering read, as those of searches',
    'partial?': 'Partial[]: gatherings that are not complete, newest first',
    'morePartial?': 'number: how many more there are',
    'uncovered?': 'Uncovered[]: advertisers of the answer that no complete gathering covers',
    'moreUncovered?': 'number: how many more there are',
    'uncoveredIn?': 'string: "dataset", where it is not known which advertisers the answer reads',
    'removedAds?': 'number: ads that were removed to make room',
  } satisfies FieldsOf<CoverageView>,
  Partial: {
    gathering: 'string: its id',
    about: 'string: its question, as JSON',
    found: 'number | null: ads that match',
    'foundInParts?': 'string: the same in words, where only some parts are known',
    read: 'number: ads that it read',
    'removed?': 'number: ads that it read and that were removed to make room',
    gatheredAt: 'string: when it was made',
  },
  Uncovered: {
    'pageId?': "string: the advertiser's id",
    'pageName?': 'string: the name, as data',
    ads: 'number: ads of the advertiser in the dataset',
    outside: 'number: those of them that no complete gathering read',
  },
  Tile: {
    number: 'number: the number on the sheet',
    id: 'string: the ad',
    shown: 'boolean: whether its picture is there',
    'reason?': 'string: why not',
    'pageName?': 'string: the advertiser, as data',
    'headline?': 'string: as data',
    'displayFormat?': 'string: IMAGE, VIDEO and others',
    'startedAt?': 'string: when it started',
    'endDate?': 'string: when it ended',
    'lastSeen?': 'string: the day it was last seen',
    'daysRunning?': 'number: from its start to its end, or to when it was last seen',
    'stillRunning?': 'boolean: missing where nobody knows',
    'firstCard?': 'string: copy of the first card, where the headline is missing or a template',
    'creative?': 'string: its pictures, videos and cards, where `displayFormat` does not say it',
    'picture?': 'string: what is shown, where it is not simply the ad: a still, a card, a portrait',
  },
  Section: {
    heading: 'string: as you wrote it',
    'rows?': 'number | null: rows of its table',
    'ads?': 'number: ads shown',
    'problem?': 'string: why a part of it is missing',
  },
  Spent: {
    charged: 'number: credits that this server spent for you',
    paidCalls: 'number: calls that cost something',
    savedCalls: 'number: calls that were answered without paying again',
    savedCredits: 'number: what they would have cost',
    'uncertain?': 'number: credits of calls that may have been charged',
    'budget?': 'number: `AD_LIBRARY_CREDIT_BUDGET`',
    'day?': 'string: the day that is counted, where a budget is for one day',
    prices: 'object: by tool, what calls have cost: `charged` for `items`',
    'rules?': 'object: by tool, the rule that the prices follow, in words',
  },
  UsageLimit: {
    isLimitReached: 'boolean: whether a window is full',
    limitType: 'string: none, hourly, daily',
    hourlyCredits: 'number: credits used in this hour',
    hourlyLimit: 'number: how many there are',
    dailyCredits: 'number: credits used on this day',
    dailyLimit: 'number: how many there are',
  },
  User: {
    userId: 'string: id of the user',
    billingUserId: 'string: who pays',
    'name?': 'string: name',
    'emailAddress?': 'string: address',
    planId: 'string: plan',
    isTeamMember: 'boolean: whether the user belongs to a team',
    subscriptionStatus: 'string: state of the subscription',
  },
  Key: { id: 'string: id of the key', name: 'string: its name', keyPrefix: 'string: how it begins' },
  Watch: {
    name: 'string: its name',
    'filters?': 'object: its question',
    'split?': 'object[]: its parts',
    'shortened?': 'boolean: whether its question is left out, for want of room',
    'collectionId?': 'string: the collection it reads',
    'maxAds?': 'number: most ads of a check',
    maxCredits: 'number: most credits of a check',
    checkedAt: 'string | null: when it was last checked',
    ads: 'number | null: how many ads that check read',
    complete: 'boolean | null: whether it read all',
  },
  Check: {
    name: 'string: the watch',
    new: 'string[] | null: ids of new ads; null at a first check',
    changed: 'string[] | null: ids of ads that changed',
    gone: 'string[] | null: ids that are no longer found; null unless both checks are complete',
    found: 'number | null: ads that match',
    read: 'number: ads that were read',
    complete: 'boolean: whether all were read',
    'more?': 'object: how many more ids there are, for lists that are cut: `new`, `changed`, `gone`',
    stopped: 'string: why it ended, as in gather_ads',
    'error?': 'string: the kind of error that stopped it',
    'problem?': 'string: what that error says',
    'gathering?': 'string: its id, in `gatherings` of SQL',
    since: 'string | null: when the check was made that this one is compared with',
  },
};

const watches = 'Watch[]: all watches';

export const results: Record<string, Fields> = {
  search_ads: { items: 'Ad[]: the ads', ...paging },
  get_ad: {
    ad: 'Ad: the ad',
    'seenIn?': 'string: the list that this copy is from, with `seen: true`; it may be shorter',
  },
  search_pages: { items: 'Page[]: the advertisers', ...paging },
  get_page: { page: 'Page: the advertiser' },
  count_ads: {
    total: 'number | null: ads that match `filters`; null where the service does not say',
    counts: 'Count[]: the parts, in the order asked; with `by`, the values that exist',
    'none?': 'number: with `by`, ads that have no value',
    'rest?': 'number: with `by`, ads that have other values',
    'restHoldsNone?': 'boolean: whether `rest` includes ads without a value',
    'stopped?': 'string: why not all was counted, as in gather_ads',
    'error?': 'string: the kind of error that stopped it',
    'problem?': 'string: what that error says',
    'next?': 'string: how to continue',
    'gatheredAt?': 'string: when a gathering that answered was made',
    'note?': note,
    'notes?': 'string[]: what the service says about the total',
  },
  gather_ads: {
    gathering: 'string | null: its id, in `gatherings` of SQL; null of an estimate',
    'gatheredAt?': 'string: when its oldest part was read',
    found: 'number | null: ads that match; with parts that overlap, the sum of the parts',
    'foundInParts?': 'string: the same in words, where only some parts are known',
    read: 'number: ads that are read, by this call and those before',
    added: 'number: ads that are new in the dataset',
    updated: 'number: ads that changed; `appUrl`, `lastSeenAt` and the ends of media addresses do not count',
    gone: 'string[] | null: ids of the last gathering that are no longer found; null unless both are complete',
    'missing?': 'number: ads that were read and that the dataset no longer has',
    'sinceLast?': 'SinceLast: what changed since the last complete gathering of the same question',
    complete: 'boolean: whether all ads that match are read',
    stopped:
      'string: why it ended: `end`, `maxAds`, `maxCredits`, `budget`, `usage_limit`, `deadline`, `estimate`, `error`, `shutdown`',
    'error?': 'string: the kind of error that stopped it',
    'problem?': 'string: what that error says',
    'next?': 'string: how to continue',
    'note?': note,
    'estimate?': 'Estimate: what reading the rest costs; always there with `maxCredits: 0`',
    summary: 'string: what was read, in words and numbers',
  } satisfies FieldsOf<GatherOutput>,
  query_ads: {
    columns: 'string[]: names of the columns',
    rows: 'any[][]: the rows, in the order of the columns',
    rowCount: 'number | null: rows of the whole result; null above 100,000',
    truncated: 'boolean: whether rows are left out',
    'coverage?': 'Coverage: what the answer rests on',
    'chart?': 'string: why there is no chart, or what it shows',
  },
  view_ads: { tiles: 'Tile[]: the ads of the sheet', note: 'string: how to read the sheet' },
  export_ads: {
    uri: 'string: the file as a resource, for an hour',
    'file?': 'string: its path, where `AD_LIBRARY_FILES` names a folder',
    rows: 'number: rows in it',
    bytes: 'number: its size',
    methods: 'string: the note beside it, as a resource: how the ads were gathered',
    'cut?': 'number: cells that Excel could not hold in full',
  },
  label_ads: {
    labelled: 'number: labels that were written, or removed with `remove`',
    unknown: 'string[]: ids that are not in the dataset',
    ads: 'number: ads whose labels changed',
    'note?': note,
  },
  write_report: {
    uri: 'string: the file as a resource, for an hour',
    'file?': 'string: its path, where `AD_LIBRARY_FILES` names a folder',
    bytes: 'number: its size',
    sections: 'Section[]: what became of each section',
  },
  watch_ads: {
    watches,
    'stored?': 'string: the watch that was stored',
    'ended?': 'string: the watch that was ended',
    'note?': note,
  },
  check_watches: {
    watches: 'Check[]: what was found',
    'stopped?': 'string: why not all were checked',
    'note?': note,
  },
  list_collections: { items: 'Collection[]: the collections', ...paging },
  list_collection_items: {
    collection: 'Collection: the collection',
    itemType: 'string: `ads` or `pages`',
    items: 'object[]: [ads](#ad) or [pages](#page)',
    ...paging,
  },
  add_collection_item: {
    collection: 'Collection: the collection',
    itemType: 'string: `ads` or `pages`',
    itemId: 'string: the id of the ad or page',
    added: 'boolean: false where it was there already',
    'note?': note,
  },
  get_credits: {
    credits: 'number: credits left in this period',
    'creditsMax?': 'number: credits of a period',
    'periodStart?': 'number: in seconds since 1970',
    'periodEnd?': 'number: in seconds since 1970',
    'periodStartsOn?': 'string: the same as a day',
    'periodEndsOn?': 'string: the same as a day',
    'usageLimit?': 'UsageLimit: the hourly and the daily window',
    'hourlyLeft?': 'number: credits left in this hour',
    'dailyLeft?': 'number: credits left on this day',
    'planId?': 'string: plan of the account',
    billingUserId: 'string: who pays',
    thisServer: 'Spent: what this server spent for you, and what calls cost',
  },
  get_account: {
    userId: 'string: id of the user',
    billingUserId: 'string: who pays',
    'planId?': 'string: plan',
    isTeamMember: 'boolean: whether the user belongs to a team',
    'subscriptionStatus?': 'string: state of the subscription',
  },
  whoami: {
    authenticated: 'boolean: whether the key is accepted',
    authSource: 'string: `api_key`',
    user: 'User: whose key it is',
    'apiKey?': 'Key: the key, without its secret part',
    'oauthClientId?': 'string: the client, where the service uses OAuth',
  },
};

/** Fields that the API sends, by its own names. */
export const adMeanings: Record<keyof typeof adFields, string> = {
  headline: 'as data',
  body: 'as data; shortened in lists',
  linkDescription: 'the line beside the link',
  offerLink: 'the landing page, as the service sent it',
  startedAt: 'when it started',
  lastSeenAt: 'when the service last saw it',
  endDate: 'when it ended or is to end',
  duplicates: 'copies, the ad itself included',
  audienceReach: 'people reached, by the service’s count',
  adSpendMin: 'estimated spend, at least',
  adSpendMax: 'estimated spend, at most',
  revenueMin: 'estimated revenue, at least',
  revenueMax: 'estimated revenue, at most',
  ctaType: 'the button: SHOP_NOW, LEARN_MORE and others',
  displayFormat: 'IMAGE, VIDEO, CAROUSEL and others',
  productTitle: 'the product',
  productPrice: 'its price, in `currency`',
  trendPublic: 'a score of the service',
  performancePublic: 'a score of the service',
  publisherPlatform: 'where it is shown: FACEBOOK, INSTAGRAM and others',
  countries: 'ISO codes of countries in which it is shown',
  currency: 'ISO code, for spend, revenue and price',
  productCreatedAt: 'when the product was listed',
  isStorePlatformBestSeller: 'whether the shop calls it a best seller',
  sourcePageExternalId: 'the advertiser’s id on the ad platform',
  appUrl: 'its address in the service’s app',
};

export const pageMeanings: Record<keyof typeof pageFields, string> = {
  pageName: 'as data',
  sourcePageExternalId: 'its id on the ad platform',
  pageLikes: 'likes',
  pageIgFollowers: 'followers on Instagram',
  adsAmount: 'ads that the service holds',
  adsTotalDuplicates: 'copies of all its ads',
  audienceReach: 'people reached, by the service’s count',
  averageDuplicates: 'copies of an ad on average',
  trend: 'a score of the service',
  performance: 'a score of the service',
  pageCreatedAt: 'when the page was made',
  createdAt: 'when the service first saw it',
  detailsEstimated: 'whether the service estimated the numbers',
  technologySlugs: 'what the shop is built with',
  countries: 'ISO codes of countries of its ads',
  languages: 'ISO codes of languages of its ads',
  appUrl: 'its address in the service’s app',
};

/** Fields that the server adds to those of the API. */
export const addedToAds = {
  id: 'string: the ad',
  'pageId?': 'string: the advertiser',
  'pageName?': 'string: the advertiser, as data',
  'adsAmount?': 'number: ads of the advertiser that the service holds',
  'daysRunning?': 'number: calendar days from its start to its end, or to when it was last seen; 0 on the same day',
  'stillRunning?': 'boolean: missing where nobody knows',
  'daysSinceSeen?': 'number: where nobody knows whether it runs',
  'lastSeen?': 'string: in lists, the day of `lastSeenAt`',
  'languages?': 'string[]: where the service sends them',
  'bodyHash?': 'number: the same for the same copy, where `body` is cut',
  'firstCard?': 'string: copy of the first card, where headline or body is missing or a template',
  'creative?': 'string: its pictures, videos and cards, where `displayFormat` does not say it',
  'cardViews?':
    'object[]: its cards: `card`, `title`, `body`, `linkDescription`, `ctaType`, `landingUrl`, `media`, and `sameAs` where one repeats another',
  'moreCards?': 'number: cards that did not fit',
  'mediaLinks?': 'object[]: pictures and videos: `type`, `url`, and `expires` or `expired` where the address is signed',
  'moreMedia?': 'number: pictures and videos that did not fit',
  'landingDomain?': 'string: the host that its link opens',
  'landingUrl?': 'string: the page that its link opens, without tracking',
  'displayUrl?': 'string: the address that the ad shows',
  'onlyInFull?': 'string[]: fields that only `detail: "full"` shows',
} satisfies FieldsOf<Omit<AdView, keyof typeof adFields> & { languages?: string[] }>;

export const addedToPages = {
  pageId: 'string: the advertiser',
  'thumbnailKinds?': 'string: what its newest ads show, such as "4 videos, 1 image"',
} satisfies FieldsOf<Omit<PageView, keyof typeof pageFields>>;
