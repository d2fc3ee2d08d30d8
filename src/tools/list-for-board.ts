import type { Paging } from './cut-page.ts';

/** What the board needs of a page of a list, and of the one after it. */
export function listForBoard(data: object): object {
  const { items, itemType, cursor, totalHits, nextPage } = data as Paging & {
    items: { id?: string }[];
    itemType?: string;
  };
  return {
    ...(itemType === 'pages' ? { isPages: true } : { ids: items.map(({ id }) => id) }),
    cursor,
    ...(totalHits !== undefined && { totalHits }),
    ...(nextPage && { nextCredits: nextPage.credits }),
  };
}
