/** A page of a list as the service sent it. */
export interface ListAnswer {
  value: { cursor: string | null; hasMore: boolean; totalHits?: number | undefined };
  /** The body as it was received: items are shown with whatever fields they have. */
  raw: unknown;
  /** Identifies an answer that is cached. */
  cacheId?: string | undefined;
  /** What comes before the items, in the data and in the text. */
  heading?: { data: object; text: string | undefined };
}

export const itemsOf = ({ raw }: ListAnswer): readonly object[] => (raw as { items: object[] }).items;
