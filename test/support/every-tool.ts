import { ad } from './faulty-upstream.ts';

const collectionId = '6a1f7e0c-0000-4000-8000-00000000c011';

/** A valid call of the tool of every operation, for the upstream that answers as documented; and whether the document gates it. */
export const everyTool = [
  { tool: 'search_ads', args: { filters: { countries: ['DE'] } }, gated: true },
  { tool: 'get_ad', args: { adId: ad.id }, gated: true },
  { tool: 'search_pages', args: { limit: 5 }, gated: true },
  { tool: 'get_page', args: { pageId: '4711' }, gated: true },
  { tool: 'list_collections', args: {}, gated: false },
  { tool: 'list_collection_items', args: { collectionId, itemType: 'ads' }, gated: true },
  { tool: 'add_collection_item', args: { collectionId, itemType: 'ads', itemId: ad.id }, gated: false },
  { tool: 'get_credits', args: {}, gated: false },
  { tool: 'get_account', args: {}, gated: false },
  { tool: 'whoami', args: {}, gated: false },
] as const;
