/**
 * The tables that SQL sees, by the API's own names, each with its columns in order. Dates are ISO text, flags 0 or 1;
 * what is missing is null, never an empty text.
 */
export const tables = {
  ads: {
    id: 'text',
    pageId: 'text',
    pageName: 'text',
    headline: 'text',
    body: 'text',
    linkDescription: 'text',
    offerLink: 'text',
    startedAt: 'text',
    lastSeenAt: 'text',
    endDate: 'text',
    duplicates: 'numeric',
    audienceReach: 'numeric',
    adSpendMin: 'numeric',
    adSpendMax: 'numeric',
    revenueMin: 'numeric',
    revenueMax: 'numeric',
    ctaType: 'text',
    displayFormat: 'text',
    productTitle: 'text',
    productPrice: 'numeric',
    trendPublic: 'numeric',
    performancePublic: 'numeric',
    landingDomain: 'text',
    daysRunning: 'numeric',
    active: 'numeric',
    firstLine: 'text',
    startedMonth: 'text',
    text: 'text',
    language: 'text',
    variant: 'text',
    cardCount: 'numeric',
    videoCount: 'numeric',
    imageCount: 'numeric',
    firstGatheredAt: 'text',
    gatheredAt: 'text',
    json: 'text',
  },
  ad_countries: { id: 'text', country: 'text' },
  ad_platforms: { id: 'text', platform: 'text' },
  ad_cards: { id: 'text', number: 'numeric', title: 'text', body: 'text', url: 'text' },
  ad_versions: { id: 'text', gatheredAt: 'text', json: 'text' },
  pages: {
    pageId: 'text',
    pageName: 'text',
    sourcePageExternalId: 'text',
    pageLikes: 'numeric',
    pageIgFollowers: 'numeric',
    adsAmount: 'numeric',
    adsTotalDuplicates: 'numeric',
    audienceReach: 'numeric',
    averageDuplicates: 'numeric',
    trend: 'numeric',
    performance: 'numeric',
    pageCreatedAt: 'text',
    createdAt: 'text',
    detailsEstimated: 'numeric',
    technologySlugs: 'text',
    countries: 'text',
    languages: 'text',
    firstGatheredAt: 'text',
    gatheredAt: 'text',
    json: 'text',
  },
  gatherings: {
    id: 'text',
    filters: 'text',
    collectionId: 'text',
    found: 'numeric',
    read: 'numeric',
    complete: 'numeric',
    gatheredAt: 'text',
  },
  gathered: { gatheringId: 'text', adId: 'text' },
} as const satisfies Record<string, Record<string, ColumnType>>;

export type ColumnType = 'text' | 'numeric';
export type TableName = keyof typeof tables;
export type Cell = string | number | null;

type CellOf<Type> = Type extends 'numeric' ? number | null : string | null;
export type Row<Table extends TableName> = {
  -readonly [Name in keyof (typeof tables)[Table]]: CellOf<(typeof tables)[Table][Name]>;
};
export type AdRow = Row<'ads'> & { id: string };
export type PageRow = Row<'pages'> & { pageId: string };

export const tableNames = Object.keys(tables) as TableName[];
export const columnsOf = (table: TableName): string[] => Object.keys(tables[table]);
