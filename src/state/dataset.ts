import type { Call } from '../api/call.ts';
import type { ItemType } from '../api/schemas.ts';

/**
 * What one account has paid for: every ad and page that an answer brought, and what was gathered when. Asynchronous, so
 * that it can be kept outside this process.
 */
export interface Dataset {
  addItems(batch: ItemBatch): Promise<void>;
  item(type: ItemType, id: string): Promise<StoredItem | undefined>;
  contents(): Promise<DatasetContents>;
  /** The place of an answer that comes now: behind all that came before, whatever the clocks say. */
  order(): Promise<number>;
  /** Adds what one step of a gathering read. Saving the same step twice changes nothing. */
  saveGathering(gathering: GatheringStep): Promise<void>;
  /** How many ads there is room for, as large as those that are kept. One gathering may not have more. */
  maxAds(): Promise<number>;
}

/** The datasets of all tenants. */
export interface Datasets {
  /**
   * The caller's dataset, with what other processes brought. What was paid for can be added even where nothing can be
   * read.
   */
  of(caller: DatasetCaller, purpose?: { toAdd: boolean }): Promise<Dataset>;
  close(): Promise<void>;
}

export type DatasetCaller = Pick<Call, 'tenantId' | 'apiKey'>;

/** Ads or pages of one answer, as they came. */
export interface ItemBatch extends ItemSource {
  type: ItemType;
  /** Takes the answer apart. Not before somebody reads them, where nothing else needs them. */
  items(): readonly unknown[];
  /** The characters of the answer, if only its text is held until then. */
  size?: number | undefined;
  /** In milliseconds since the epoch. */
  at: number;
  /** Its place among all answers; by default the last one. */
  order?: number | undefined;
}

export interface ItemSource {
  /** The operation that brought it. */
  listedBy: string;
  requestId: string | null;
}

/** An ad or a page: its newest version, in which fields that the newest answer lacks keep their earlier values. */
export interface StoredItem extends ItemSource, ItemVersion {
  /** As the service spells it. */
  id: string;
  /** When its first version came. */
  firstAt: number;
  firstOrder: number;
  /** Earlier versions with other content, the oldest first. */
  versions: readonly ItemVersion[];
}

export interface ItemVersion {
  /** When it came first, and when it came last, in milliseconds since the epoch: for readers, since clocks err. */
  since: number;
  at: number;
  /** The places of both among all answers. What is newer has a higher one. */
  sinceOrder: number;
  order: number;
  /** The object as UTF-8 JSON. */
  json: Uint8Array;
}

/** A dataset at one moment. It stays as it is while others change the dataset. */
export interface DatasetContents {
  /** Changes with the contents. */
  version: string;
  /** The one whose newest version is oldest first. */
  ads: readonly StoredItem[];
  pages: readonly StoredItem[];
  /** The oldest first. */
  gatherings: readonly Gathering[];
  /** Items and gatherings that were removed for want of room. */
  letGo: { ads: number; pages: number; gatherings: number };
}

/** What a gathering is about, and how far it is. */
export interface GatheringState {
  id: string;
  /** Equal for all gatherings of the same question. */
  question: string;
  filters: Readonly<Record<string, unknown>> | null;
  collectionId: string | null;
  /** Begun with `fresh`, and one that calls with it may go on: its end was not returned yet, and it is no dead end. */
  fresh: boolean;
  /** If it has several parts: the ids of their gatherings, which hold what was read. */
  parts: readonly string[];
  /** What the service says there is. */
  found: number | null;
  /** How many different ads the service has listed. */
  listed: number;
  /** Credits that its pages cost; null where the service did not say so of all. */
  charged: number | null;
  /** The last page was reached. */
  ended: boolean;
  /** Where the service goes on. */
  cursor: string | null;
  /** Grows with each gathering and with each step of one, whatever clocks say. */
  order: number;
  step: number;
  /** The place of the last answer that it read. */
  answerOrder: number;
  startedAt: number;
  /** When it last read something. */
  gatheredAt: number;
}

export interface GatheringStep extends Omit<GatheringState, keyof AddedFields>, AddedFields {
  /** Ids of the ads that this step read. */
  adIds: readonly string[];
}

/** What earlier versions did not write. */
interface AddedFields {
  fresh?: boolean | undefined;
  listed?: number | undefined;
  charged?: number | null | undefined;
  order?: number | undefined;
  step?: number | undefined;
  answerOrder?: number | undefined;
}

/** A gathering as it is kept. One of several parts is as old as the oldest of them. */
export interface Gathering extends GatheringState {
  /** What the service says there is, unless it listed more. */
  found: number | null;
  /** Ids of all ads that were read, as `idKey` writes them. */
  adIds: ReadonlySet<string>;
  /** Ads that were read, and are no longer kept for want of room. */
  missing: number;
  /** The last page was reached, and every ad that was listed is kept. */
  complete: boolean;
}

/** Ids of ads compare without regard to case, as UUIDs do; those of pages are any text. */
export const idKey = (id: string): string => id.toLowerCase();
