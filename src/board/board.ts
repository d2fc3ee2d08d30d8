import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import * as z from 'zod';
import { createInvalidRequestError } from '../api/errors.ts';
import { type AdFacts, buildAdRows } from '../dataset/ad-rows.ts';
import { buildGatheringNotes } from '../dataset/coverage.ts';
import { getFirstReadingTime } from '../dataset/gatherings.ts';
import { groupLabelsByAd, type Label } from '../dataset/labels.ts';
import { formatIsoTime, readDistinctTexts, toDateCell, toNumberCell, truncateToLength } from '../dataset/tables.ts';
import { type DatasetContents, type Gathering, normalizeAdId, pickAdsById } from '../storage/dataset.ts';
import { parseItem, type StoredItem } from '../storage/item-versions.ts';
import { tools } from '../tools/catalog.ts';
import { readCoverageInput } from '../tools/coverage-input.ts';
import { loadThumbnails } from '../tools/thumbnails.ts';
import { defineTool, readOnlyAnnotations, type Tool, type ToolContext } from '../tools/tool.ts';
import { findChanges } from '../views/ad-changes.ts';
import { type AdPicture, describeCreative, selectPicture } from '../views/ad-media.ts';
import { type ApiField, adFields } from '../views/fields.ts';
import { formatCount } from '../views/numbers.ts';
import { sanitize, sanitizeLine } from '../views/safe-text.ts';
import { parseHttpsUrl } from '../views/urls.ts';
import { addFields, type UntypedFields } from '../views/view.ts';
import { findNewAdIds } from '../watches/check.ts';
import { parseWatches } from '../watches/stored-watches.ts';
import { readBoardPage } from './board-resource.ts';
import type {
  BoardAdsResult,
  BoardChange,
  BoardGathering,
  BoardPicture,
  BoardPicturesResult,
  BriefAd,
  CarouselCard,
  FullAd,
} from './payload.ts';

/**
 * Returns true if a tool call comes from the page of the ad board. Each build writes a new token into the page, and
 * models never see it. The token only keeps board data out of the model's context. The API key protects the data from
 * other people.
 */
async function isCallFromBoard(pageToken: string | undefined): Promise<boolean> {
  return (
    pageToken !== undefined &&
    /<meta name="ad-library-page" content="(\w+)"/.exec(await readBoardPage())?.[1] === pageToken
  );
}

/**
 * The maximum size of one tool result for the board, in bytes of JSON. The limit is low because hosts copy a result
 * through several browser windows.
 */
const maxResultBytes = 500_000;
/**
 * The tools that both models and the board can call. The board also calls `board_ads` and `board_pictures`, which are
 * only for the board.
 */
const toolsCalledByBoard = ['search_ads', 'list_collections', 'add_collection_item'];

/**
 * The tool argument with the token of the board's page. A call without a valid token returns no data, because some
 * hosts pass whole results to the model.
 */
const pageTokenSchema = z.string().max(100).optional().describe('The token in the page of the board.');
const resultWithoutBoardData = { data: {}, text: 'This tool answers only the board, which shows ads to the person.' };

/** The maximum number of ads on the board. A browser can filter this many ads without noticeable delay. */
const maxBoardAds = 10_000;
/** The maximum number of ad ids in one call of a board tool. */
const maxIdsPerCall = 2000;
/**
 * The maximum length of an ad id in characters. Valid ids are shorter, but the result repeats unknown ids and must not
 * become too large.
 */
const maxAdIdLength = 200;

const boardAds = defineTool({
  name: 'board_ads',
  title: 'Ads for the board',
  description: 'Only the board calls it.',
  annotations: { ...readOnlyAnnotations, openWorldHint: false },
  buildExampleArguments: ({ adIds: ids }) => ({ ids }),
  operations: [],
  isOnlyForBoard: true,
  inputSchema: z.strictObject({
    gathering: z.string().max(maxAdIdLength).optional().describe('Id of the gathering.'),
    ids: z.array(z.string().max(maxAdIdLength)).max(maxIdsPerCall).optional().describe('Ad ids.'),
    detail: z.enum(['brief', 'full']).optional().describe('full returns every field.'),
    page: pageTokenSchema,
  }),
  createOutputSchema: () => z.looseObject({}),
  async run({ gathering: id, ids = [], detail = 'brief', page: pageToken }, context) {
    // `openDataset` throws an error if the service rejects the API key. Check the page token after this call, so that a
    // wrong key always causes an error.
    const dataset = await context.openDataset();
    if (!(await isCallFromBoard(pageToken))) return resultWithoutBoardData;
    const { now, isToolOffered, getAdRowReader } = context;
    const contents = await dataset.readContents();
    const newAdIds = findNewAdIds(parseWatches(await dataset.userRecords.read('watch')), contents);
    const factsByAdId = await getAdRowReader().readFacts(contents);
    const gathering = id === undefined ? undefined : findGathering(id, contents);
    const requestedAdIds = gathering === undefined ? ids.map(normalizeAdId) : [...gathering.adIds];
    const uniqueAdIds = [...new Set(requestedAdIds)].slice(0, maxBoardAds);
    const fittingAds = await selectFittingAds(uniqueAdIds, { detail, newAdIds, factsByAdId }, contents);
    const data: BoardAdsResult = {
      asOf: formatIsoTime(now),
      offeredTools: toolsCalledByBoard.filter(isToolOffered),
      ...(gathering && {
        gathering: buildBoardGathering(gathering, await listGatheringNotes(gathering, contents, context)),
      }),
      ...fittingAds,
      ...(gathering && { readAt: formatIsoTime(getFirstReadingTime(gathering)) }),
    };
    return { data, text: `${formatCount(data.ads.length, 'ad')} for the board, ${data.left.length} more to come.` };
  },
});

function findGathering(id: string, { gatherings }: DatasetContents): Gathering {
  const gathering = gatherings.find((candidate) => candidate.id === id);
  if (gathering !== undefined) return gathering;
  throw createInvalidRequestError(
    'There is no gathering with this id. It was removed to make room, or it belongs to another key. gather_ads reads its ads again.',
  );
}

/**
 * Returns notes about data that is missing from the result of `gather_ads`, e.g. that some of the matching ads were not
 * read.
 */
async function listGatheringNotes(gathering: Gathering, contents: DatasetContents, context: ToolContext) {
  const { missingAdsNote, oneDayNote, fieldGapsNote } = buildGatheringNotes(
    gathering,
    await readCoverageInput(contents, context),
  );
  return [missingAdsNote, oneDayNote, fieldGapsNote].filter((note) => note !== undefined);
}

const buildBoardGathering = (
  { id, matchingCount, adIds, isComplete, gatheredAt }: Gathering,
  notes: string[],
): BoardGathering => ({
  notes,
  id,
  found: matchingCount,
  read: adIds.size,
  complete: isComplete,
  gatheredAt: formatIsoTime(gatheredAt),
});

/**
 * Returns as many of the requested ads as fit into one result, in the requested order. `left` lists the ids of the
 * remaining ads, and `missingIds` the ids of ads that are not stored.
 */
async function selectFittingAds(
  requestedAdIds: readonly string[],
  {
    detail,
    newAdIds,
    factsByAdId,
  }: { detail: BoardDetailLevel; newAdIds: ReadonlySet<string>; factsByAdId: ReadonlyMap<string, AdFacts> },
  contents: DatasetContents,
): Promise<Pick<BoardAdsResult, 'ads' | 'left' | 'missingIds' | 'readAt'>> {
  const uniqueAdIds = new Set(requestedAdIds);
  const itemsByAdId = pickAdsById(contents, uniqueAdIds);
  const storedItems = requestedAdIds.flatMap((adId) => itemsByAdId.get(adId) ?? []);
  const labelsByAdId = groupLabelsByAd(contents, uniqueAdIds);
  const ads: (BriefAd | FullAd)[] = [];
  // Reserve 40 bytes for the id of each ad, because `left` lists the ids of all ads that do not fit.
  let remainingBytes = maxResultBytes - storedItems.length * 40;
  for (const storedItem of storedItems) {
    const adId = normalizeAdId(storedItem.id);
    const ad = adBuildersByDetail[detail](storedItem, labelsByAdId.get(adId));
    if (newAdIds.has(adId)) ad.isNew = true;
    const variantId = factsByAdId.get(adId)?.variantId ?? storedItem.id;
    if (variantId !== storedItem.id) ad.variant = variantId;
    remainingBytes -= Buffer.byteLength(JSON.stringify(ad));
    if (remainingBytes < 0 && ads.length > 0) break;
    ads.push(ad);
    // Let other work run after every 50 ads, so that a long list does not block the calls of other users.
    if (ads.length % 50 === 0) await yieldToEventLoop();
  }
  const earliestReadAt = storedItems.reduce((earliest, { at }) => Math.min(earliest, at), Number.POSITIVE_INFINITY);
  return {
    ...(storedItems.length > 0 && { readAt: formatIsoTime(earliestReadAt) }),
    ads,
    left: storedItems.slice(ads.length).map(({ id }) => id),
    missingIds: requestedAdIds.filter((adId) => !itemsByAdId.has(adId)),
  };
}

// Limits for the fields of one ad, in characters or list items. With these limits, every single ad fits into one
// result.
const maxAdTextLength = 10_000;
const maxLineLength = 300;
const maxCarouselCardBodyLength = 1000;
const maxCarouselCards = 20;
const maxListedTexts = 60;
const maxChanges = 20;
const maxChangedTextLength = 600;
const maxLabels = { brief: 12, full: 60 };

type BoardDetailLevel = 'brief' | 'full';

const adBuildersByDetail: Record<
  BoardDetailLevel,
  (item: StoredItem, labels: readonly Label[] | undefined) => BriefAd | FullAd
> = {
  brief: buildBriefAd,
  full: buildFullAd,
};

function buildBriefAd(storedItem: StoredItem, labels: readonly Label[] | undefined): BriefAd {
  const { briefAd, carouselCardRows } = buildSharedFields(storedItem, 'brief', labels);
  const title = cleanLine(carouselCardRows[0]?.title);
  if (title) addFields(briefAd, { cards: [{ title }] });
  return briefAd;
}

function buildFullAd(storedItem: StoredItem, labels: readonly Label[] | undefined): FullAd {
  const { briefAd, adRow, carouselCardRows } = buildSharedFields(storedItem, 'full', labels);
  const fullAd: FullAd = { ...briefAd, changes: listChanges(storedItem) };
  addFields(fullAd, {
    body: cleanText(adRow.body, maxAdTextLength),
    linkDescription: cleanText(adRow.linkDescription, maxLineLength),
    landingUrl: parseHttpsUrl(adRow.offerLink ?? carouselCardRows[0]?.url),
    cards: carouselCardRows.length > 0 ? carouselCardRows.slice(0, maxCarouselCards).map(buildCarouselCard) : undefined,
  });
  return fullAd;
}

/**
 * Builds the fields that the brief view and the full view of an ad have in common. Also returns the table rows of the
 * ad, from which the full view takes more fields.
 */
function buildSharedFields(storedItem: StoredItem, detail: BoardDetailLevel, labels: readonly Label[] | undefined) {
  const apiFields = parseItem(storedItem) as UntypedFields;
  const { ad: adRow, cards: carouselCardRows } = buildAdRows(apiFields, { gatheredAt: storedItem.at, json: '' });
  const briefAd: BriefAd = { id: storedItem.id };
  addFields(briefAd, {
    ...pickApiFields(apiFields, detail),
    pageId: cleanLine(adRow.pageId),
    pageName: cleanLine(adRow.pageName),
    firstLine: cleanLine(adRow.firstLine),
    landing: cleanLine(adRow.landing),
    daysRunning: adRow.daysRunning ?? undefined,
    active: adRow.active === null ? undefined : adRow.active === 1,
    creative: describeCreative(apiFields),
    labels: labels
      ?.slice(0, maxLabels[detail])
      .map(({ label, value }) => (value === null ? { label } : { label, value })),
  });
  return { briefAd, adRow, carouselCardRows };
}

/**
 * Returns the changes of an ad's fields from version to version, the newest change first. A change is included only if
 * both versions have text in the field.
 */
function listChanges(storedItem: StoredItem): BoardChange[] {
  const versions = [storedItem, ...storedItem.versions.toReversed()];
  const changes = versions.flatMap((version, index) => {
    const olderVersion = versions[index + 1];
    return (olderVersion ? findChanges(parseItem(olderVersion), parseItem(version)) : []).flatMap(
      ({ field, oldValue, newValue }) => {
        if (typeof oldValue !== 'string' || typeof newValue !== 'string') return [];
        const change: BoardChange = { at: formatIsoTime(version.since), field };
        addFields(change, {
          from: cleanText(oldValue, maxChangedTextLength),
          to: cleanText(newValue, maxChangedTextLength),
        });
        return change;
      },
    );
  });
  return changes.slice(0, maxChanges);
}

/**
 * Returns the fields that have the same names and meanings in the API and on the board. With `detail` set to `brief`,
 * returns only the fields that are marked `brief`. Otherwise, returns all of these fields.
 */
const pickApiFields = (ad: UntypedFields, detail: BoardDetailLevel) =>
  Object.fromEntries(
    boardFields.flatMap(([name, { type, board }]) =>
      board === 'brief' || detail === 'full' ? [[name, convertersByFieldType[type](ad[name])]] : [],
    ),
  );

const boardFields = Object.entries<ApiField>(adFields).filter(([, { board }]) => board !== undefined);

function buildCarouselCard({ title, body }: { title: string | null; body: string | null }): CarouselCard {
  const card: CarouselCard = {};
  addFields(card, { title: cleanLine(title), body: cleanText(body, maxCarouselCardBodyLength) });
  return card;
}

/**
 * Sanitizes a text and reduces it to one line of limited length. Returns undefined if the result has no visible text.
 */
const cleanLine = (fieldValue: unknown): string | undefined =>
  typeof fieldValue === 'string' ? sanitizeLine(truncateToLength(fieldValue, maxLineLength)) || undefined : undefined;

/**
 * Sanitizes a text of several lines and shortens it to `maxChars` characters. Returns undefined if the result has no
 * visible text.
 */
const cleanText = (text: string | null, maxChars: number): string | undefined =>
  text === null ? undefined : sanitize(truncateToLength(text, maxChars)).trim() || undefined;

function cleanLines(texts: readonly (string | null)[]): string[] | undefined {
  const lines = texts.slice(0, maxListedTexts).flatMap((text) => cleanLine(text) ?? []);
  return lines.length > 0 ? lines : undefined;
}

/**
 * The functions that convert a field of the API to a safe value for the ad board, by field type. They return undefined
 * for a value that the board cannot show.
 */
const convertersByFieldType: Record<ApiField['type'], (value: unknown) => unknown> = {
  text: cleanLine,
  id: cleanLine,
  date: (value) => toDateCell(value) ?? undefined,
  number: (value) => toNumberCell(value) ?? undefined,
  boolean: (value) => (typeof value === 'boolean' ? value : undefined),
  textList: (value) => cleanLines(readDistinctTexts(value)),
};

/** The maximum number of pictures in one call of `board_pictures`. */
const maxPicturesPerCall = 24;

const boardPictures = defineTool({
  name: 'board_pictures',
  title: 'Pictures for the board',
  description: 'Only the board calls it.',
  annotations: readOnlyAnnotations,
  buildExampleArguments: ({ adIds: ids }) => ({ ids }),
  operations: [],
  isOnlyForBoard: true,
  // Each entry of `ids` is an ad id. `#` and a number after the id select a carousel card, e.g. `#2`.
  inputSchema: z.strictObject({
    ids: z
      .array(z.string().max(maxAdIdLength + 20))
      .min(1)
      .max(maxPicturesPerCall)
      .describe('Ad ids.'),
    page: pageTokenSchema,
  }),
  createOutputSchema: () => z.looseObject({}),
  async run({ ids, page: pageToken }, context) {
    const dataset = await context.openDataset();
    if (!(await isCallFromBoard(pageToken))) return resultWithoutBoardData;
    /**
     * Finds the picture of an ad or of one of its carousel cards.
     * @param pictureId an ad id, optionally followed by `#` and a card number, e.g. `#2` for the second card
     */
    const findPicture = async (pictureId: string): Promise<{ id: string; adId: string; picture: AdPicture }> => {
      const [match, adId = '', cardNumber] = adIdAndCardPattern.exec(pictureId) ?? [];
      const storedItem = match === undefined ? undefined : await dataset.findItem('ads', adId);
      if (storedItem === undefined)
        return {
          id: pictureId,
          adId,
          picture: { reason: match === undefined ? invalidCardReason : notInDatasetReason },
        };
      return {
        id: pictureId,
        adId,
        picture: selectPicture(parseItem(storedItem), {
          now: context.now,
          ...(cardNumber && { card: Number(cardNumber) }),
        }),
      };
    };
    const requestedPictures = await Promise.all([...new Set(ids)].map(findPicture));
    const pictures = await loadThumbnails(requestedPictures, context);
    const data = selectFittingPictures(requestedPictures.map(({ id }, index) => ({ id, ...pictures[index] })));
    return {
      data,
      text: `${formatCount(data.pictures.length, 'picture')} for the board, ${data.left.length} more to come.`,
    };
  },
});

const invalidCardReason = 'what follows # is not the number of a card, from 1 to 9999';
const notInDatasetReason = 'the ad is not in the dataset';
const adIdAndCardPattern = /^([^#]*)(?:#([1-9]\d{0,3}))?$/;

/** Returns the first pictures, as many as fit into one tool result. `left` lists the ids of all other pictures. */
function selectFittingPictures(allPictures: readonly BoardPicture[]): BoardPicturesResult {
  const pictures: BoardPicture[] = [];
  let remainingBytes = maxResultBytes;
  for (const picture of allPictures) {
    remainingBytes -= JSON.stringify(picture).length;
    if (remainingBytes < 0 && pictures.length > 0) break;
    pictures.push(picture);
  }
  return { pictures, left: allPictures.slice(pictures.length).map(({ id }) => id) };
}

/**
 * All tools, in the order in which the server lists them. The tools of the ad board come last and are listed only
 * together with a tool that shows the board.
 */
export const allTools: readonly Tool[] = [...tools, boardAds, boardPictures];
