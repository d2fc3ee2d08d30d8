import { setImmediate } from 'node:timers/promises';
import * as z from 'zod';
import { invalidRequest } from '../api/errors.ts';
import { buildAdRows, type KnownAdFacts } from '../dataset/ad-rows.ts';
import { groupLabelsByAd, type Label } from '../dataset/labels.ts';
import { clip, formatIsoTime, readTexts, toDateCell, toNumberCell } from '../dataset/tables.ts';
import { type DatasetContents, type Gathering, normalizeAdId, pickAdsById } from '../storage/dataset.ts';
import { parseItem, type StoredItem } from '../storage/item-versions.ts';
import { tools } from '../tools/catalog.ts';
import { thumbnailsOf } from '../tools/thumbnails.ts';
import { defineListTool, readOnly, type Tool } from '../tools/tool.ts';
import { findChanges } from '../views/ad-changes.ts';
import { type AdPicture, describeCreative, selectPicture } from '../views/ad-media.ts';
import { adFields, type SentField } from '../views/fields.ts';
import { formatCount } from '../views/numbers.ts';
import { sanitize, sanitizeLine } from '../views/safe-text.ts';
import { parseUrl } from '../views/urls.ts';
import { addFields, type Fields } from '../views/view.ts';
import { findNewAdIds } from '../watches/check.ts';
import { parseWatches } from '../watches/stored-watches.ts';
import { readPage } from './board-resource.ts';
import type {
  BoardAds,
  BoardCard,
  BoardChange,
  BoardGathering,
  BoardPicture,
  BoardPictures,
  BriefAd,
  FullAd,
} from './payload.ts';

/** Only the page has the word that the build gave it, which keeps data from models; the key alone guards the data. */
async function isOfPage(word: string | undefined): Promise<boolean> {
  return word !== undefined && /<meta name="ad-library-page" content="(\w+)"/.exec(await readPage())?.[1] === word;
}

/** Bytes of one call: hosts pass a result through several windows. */
const maxBytes = 500_000;
/** The tools that the view calls, besides the tools for the board alone. */
const viewTools = ['search_ads', 'list_collections', 'add_collection_item'];

/** A model does not have it, so that it gets no data even where its host hands it the whole result. */
const page = z.string().max(100).optional().describe('The word from the page of the board.');
const notForModels = { data: {}, text: 'This tool answers only the board, which shows ads to the person.' };

/** What a browser can filter at once, and what one call may ask for. */
const maxAds = 10_000;
const maxIds = 2000;
/** Ids of ads are UUIDs. Unknown ids are sent back in the result, so their length is bounded. */
const maxAdIdLength = 200;

const boardAds = defineListTool({
  name: 'board_ads',
  title: 'Ads for the board',
  description: 'Only the board calls it.',
  annotations: { ...readOnly, openWorldHint: false },
  example: ({ adIds: ids }) => ({ ids }),
  operations: [],
  onlyForBoard: true,
  input: z.strictObject({
    gathering: z.string().max(maxAdIdLength).optional().describe('Id of the gathering.'),
    ids: z.array(z.string().max(maxAdIdLength)).max(maxIds).optional().describe('Ad ids.'),
    detail: z.enum(['brief', 'full']).optional().describe('full returns every field.'),
    page,
  }),
  output: z.looseObject({}),
  async run({ gathering: id, ids = [], detail = 'brief', page }, context) {
    // Only for keys that the service accepts.
    const dataset = await context.dataset();
    if (!(await isOfPage(page))) return notForModels;
    const { now, offers, adRows } = context;
    const contents = await dataset.readContents();
    const isNew = findNewAdIds(parseWatches(await dataset.userRecords.read('watch')), contents);
    const facts = await adRows().readFacts(contents);
    const gathering = id === undefined ? undefined : gatheringOf(id, contents);
    const wanted = gathering === undefined ? ids.map(normalizeAdId) : [...gathering.adIds];
    const fitting = await adsThatFit([...new Set(wanted)].slice(0, maxAds), { detail, isNew, facts }, contents);
    const data: BoardAds = {
      asOf: formatIsoTime(now),
      offered: viewTools.filter(offers),
      ...(gathering && { gathering: viewGathering(gathering) }),
      ...fitting,
      ...(gathering && { readAt: formatIsoTime(gathering.gatheredAt) }),
    };
    return { data, text: `${formatCount(data.ads.length, 'ad')} for the board, ${data.left.length} more to come.` };
  },
});

function gatheringOf(id: string, { gatherings }: DatasetContents): Gathering {
  const gathering = gatherings.find((candidate) => candidate.id === id);
  if (gathering !== undefined) return gathering;
  throw invalidRequest(
    'There is no such gathering. It was removed to make room, or belongs to another key. gather_ads makes it again.',
  );
}

const viewGathering = ({ id, found, adIds, complete, gatheredAt }: Gathering): BoardGathering => ({
  id,
  found,
  read: adIds.size,
  complete,
  gatheredAt: formatIsoTime(gatheredAt),
});

/** As many of the ads as fit into a call, in the order asked for. */
async function adsThatFit(
  wanted: readonly string[],
  { detail, isNew, facts }: { detail: Detail; isNew: ReadonlySet<string>; facts: ReadonlyMap<string, KnownAdFacts> },
  contents: DatasetContents,
): Promise<Pick<BoardAds, 'ads' | 'left' | 'missing' | 'readAt'>> {
  const keys = new Set(wanted);
  const stored = pickAdsById(contents, keys);
  const found = wanted.flatMap((key) => stored.get(key) ?? []);
  const labels = groupLabelsByAd(contents, keys);
  const ads: (BriefAd | FullAd)[] = [];
  let room = maxBytes - found.length * 40;
  for (const item of found) {
    const key = normalizeAdId(item.id);
    const ad = viewOf[detail](item, labels.get(key));
    if (isNew.has(key)) ad.isNew = true;
    const variant = facts.get(key)?.variant ?? item.id;
    if (variant !== item.id) ad.variant = variant;
    room -= Buffer.byteLength(JSON.stringify(ad));
    if (room < 0 && ads.length > 0) break;
    ads.push(ad);
    // Others get their turn in between.
    if (ads.length % 50 === 0) await setImmediate();
  }
  const readAt = found.reduce((earliest, { at }) => Math.min(earliest, at), Number.POSITIVE_INFINITY);
  return {
    ...(found.length > 0 && { readAt: formatIsoTime(readAt) }),
    ads,
    left: found.slice(ads.length).map(({ id }) => id),
    missing: wanted.filter((key) => !stored.has(key)),
  };
}

/** In characters. One ad has to fit into a call, whatever its advertiser wrote. */
const maxCopy = 10_000;
const maxLine = 300;
const maxCardBody = 1000;
const maxCards = 20;
const maxWords = 60;
const maxChanges = 20;
const maxChanged = 600;
const maxLabels = { brief: 12, full: 60 };

type Detail = 'brief' | 'full';

const viewOf: Record<Detail, (item: StoredItem, labels: readonly Label[] | undefined) => BriefAd | FullAd> = {
  brief: briefAd,
  full: fullAd,
};

function briefAd(item: StoredItem, labels: readonly Label[] | undefined): BriefAd {
  const { view, cards } = adFacts(item, 'brief', labels);
  const title = line(cards[0]?.title);
  if (title) addFields(view, { cards: [{ title }] });
  return view;
}

function fullAd(item: StoredItem, labels: readonly Label[] | undefined): FullAd {
  const { view, ad, cards } = adFacts(item, 'full', labels);
  const full: FullAd = { ...view, changes: changesOf(item) };
  addFields(full, {
    body: copy(ad.body, maxCopy),
    linkDescription: copy(ad.linkDescription, maxLine),
    landingUrl: httpsAddress(ad.offerLink ?? cards[0]?.url),
    cards: cards.length > 0 ? cards.slice(0, maxCards).map(boardCard) : undefined,
  });
  return full;
}

/** Returns the facts that an ad has in either detail, and the rows of its dataset. */
function adFacts(item: StoredItem, detail: Detail, labels: readonly Label[] | undefined) {
  const fields = parseItem(item) as Fields;
  const { ad, cards } = buildAdRows(fields, { gatheredAt: item.at, json: '' });
  const view: BriefAd = { id: item.id };
  addFields(view, {
    ...sentFields(fields, detail),
    pageName: line(ad.pageName),
    firstLine: line(ad.firstLine),
    landing: line(ad.landing),
    daysRunning: ad.daysRunning ?? undefined,
    active: ad.active === null ? undefined : ad.active === 1,
    creative: describeCreative(fields),
    labels: labels
      ?.slice(0, maxLabels[detail])
      .map(({ label, value }) => (value === null ? { label } : { label, value })),
  });
  return { view, ad, cards };
}

/** Returns what differs from each version of an ad to the next, the newest first. A field without text in one of them is left out. */
function changesOf(item: StoredItem): BoardChange[] {
  const versions = [item, ...item.versions.toReversed()];
  const changes = versions.flatMap((version, index) => {
    const before = versions[index + 1];
    return (before ? findChanges(parseItem(before), parseItem(version)) : []).flatMap(({ field, from, to }) => {
      if (typeof from !== 'string' || typeof to !== 'string') return [];
      const change: BoardChange = { at: formatIsoTime(version.since), field };
      addFields(change, { from: copy(from, maxChanged), to: copy(to, maxChanged) });
      return change;
    });
  });
  return changes.slice(0, maxChanges);
}

/** The fields that the service sent and the board shows. Only the drawer shows copy of several lines. */
const sentFields = (ad: Fields, detail: Detail) =>
  Object.fromEntries(
    boardFields.flatMap(([name, { type: is, board }]) =>
      board === 'brief' || detail === 'full' ? [[name, shownAs[is](ad[name])]] : [],
    ),
  );

const boardFields = Object.entries<SentField>(adFields).filter(([, { board }]) => board !== undefined);

function boardCard({ title, body }: { title: string | null; body: string | null }): BoardCard {
  const card: BoardCard = {};
  addFields(card, { title: line(title), body: copy(body, maxCardBody) });
  return card;
}

const line = (value: unknown): string | undefined =>
  typeof value === 'string' ? sanitizeLine(clip(value, maxLine)) || undefined : undefined;

const copy = (text: string | null, max: number): string | undefined =>
  text === null ? undefined : sanitize(clip(text, max)).trim() || undefined;

function words(texts: readonly (string | null)[]): string[] | undefined {
  const kept = texts.slice(0, maxWords).flatMap((text) => line(text) ?? []);
  return kept.length > 0 ? kept : undefined;
}

const shownAs: Record<SentField['type'], (value: unknown) => unknown> = {
  text: line,
  id: line,
  date: (value) => toDateCell(value) ?? undefined,
  number: (value) => toNumberCell(value) ?? undefined,
  flag: (value) => (typeof value === 'boolean' ? value : undefined),
  words: (value) => words(readTexts(value)),
};

/** Undefined for any other address, and for one that hides its host behind a user name. */
function httpsAddress(address: string | null | undefined): string | undefined {
  const url = address && address.length <= 2000 ? parseUrl(address) : undefined;
  return url?.protocol === 'https:' && url.username + url.password === '' ? url.href : undefined;
}

const maxPictures = 24;

const boardPictures = defineListTool({
  name: 'board_pictures',
  title: 'Pictures for the board',
  description: 'Only the board calls it.',
  annotations: readOnly,
  example: ({ adIds: ids }) => ({ ids }),
  operations: [],
  onlyForBoard: true,
  // An id, and the number of a card.
  input: z.strictObject({
    ids: z
      .array(z.string().max(maxAdIdLength + 20))
      .min(1)
      .max(maxPictures)
      .describe('Ad ids.'),
    page,
  }),
  output: z.looseObject({}),
  async run({ ids, page }, context) {
    const dataset = await context.dataset();
    if (!(await isOfPage(page))) return notForModels;
    /** @param id of an ad, with `#2` at its end for its second card */
    const pictureFor = async (id: string): Promise<{ id: string; adId: string; picture: AdPicture }> => {
      const [found, adId = '', card] = idAndCard.exec(id) ?? [];
      const item = found === undefined ? undefined : await dataset.findItem('ads', adId);
      if (item === undefined) return { id, adId, picture: { reason: found === undefined ? noCard : notInDataset } };
      return {
        id,
        adId,
        picture: selectPicture(parseItem(item), { now: context.now, ...(card && { card: Number(card) }) }),
      };
    };
    const wanted = await Promise.all([...new Set(ids)].map(pictureFor));
    const pictures = await thumbnailsOf(wanted, context);
    const data = picturesThatFit(wanted.map(({ id }, index) => ({ id, ...pictures[index] })));
    return {
      data,
      text: `${formatCount(data.pictures.length, 'picture')} for the board, ${data.left.length} more to come.`,
    };
  },
});

const noCard = 'what follows # is not the number of a card, from 1 to 9999';
const notInDataset = 'the ad is not in the dataset';
const idAndCard = /^([^#]*)(?:#([1-9]\d{0,3}))?$/;

function picturesThatFit(all: readonly BoardPicture[]): BoardPictures {
  const pictures: BoardPicture[] = [];
  let room = maxBytes;
  for (const picture of all) {
    room -= JSON.stringify(picture).length;
    if (room < 0 && pictures.length > 0) break;
    pictures.push(picture);
  }
  return { pictures, left: all.slice(pictures.length).map(({ id }) => id) };
}

/** In the order in which a server lists them. Those of the board are offered with any tool that shows it. */
export const allTools: readonly Tool[] = [...tools, boardAds, boardPictures];
