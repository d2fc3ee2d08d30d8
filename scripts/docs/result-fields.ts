import type { CoverageView } from '../../src/dataset/coverage.ts';
import type { AdView } from '../../src/present/ad.ts';
import type { adFields, pageFields } from '../../src/present/fields.ts';
import type { PageView } from '../../src/present/page.ts';
import type { FieldMeanings, FieldsOf } from '../../src/tools/tool.ts';

/** On every result of a list. */
export const paging: FieldMeanings = {
  cursor: 'string | null: pass it back unchanged, with the same filters, for the next page; null at the end',
  hasMore: 'boolean: whether there is a next page',
  'totalHits?': 'number: how many there are in all, where the service says it',
  'shown?': 'Shown: which of the page stand here, where it was cut to fit',
  'nextPage?': 'Price: what the next page costs; missing where it is free or not known',
  'asOf?': 'string: the day that "running" and days refer to',
  'appUrlPattern?': "string: the address of each item in the service's app, with `<id>` for its id",
  'notes?': 'string[]: what the service says about this answer, as data',
};

/** On every result. */
export const always: FieldMeanings = {
  receipt: 'Receipt: what the call cost',
  'notice?': 'string: in demo mode, that all data are made up',
};

/** Objects that results of several tools hold, and what calls cost, of which no tool's file speaks. */
export const objects: Record<string, FieldMeanings> = {
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
  Coverage: {
    ads: 'number: ads in the dataset',
    gatherings: 'number: gatherings in the dataset',
    'outsideAds?': 'number: ads that no newest gathering read, as those of searches',
    'partial?': 'Partial[]: gatherings that are not complete, newest first',
    'morePartial?': 'number: how many more there are',
    'uncovered?': 'Uncovered[]: advertisers of the answer that no complete gathering covers',
    'moreUncovered?': 'number: how many more there are',
    'uncoveredIn?': 'string: "dataset", where it is not known which advertisers the answer reads',
    'unlisted?': 'number: ads that the service counts for complete gatherings, and did not list while they were read',
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
