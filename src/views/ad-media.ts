import * as z from 'zod';
import { createLazyGetter } from '../lazy-getter.ts';
import { formatDay } from './dates.ts';
import type { DataOf } from './fields.ts';
import { formatCount } from './numbers.ts';
import { estimateTokens } from './tokens.ts';
import { cleanUrl, parseExpiry, parseUrl } from './urls.ts';
import {
  addFields,
  isFiniteNumber,
  isObject,
  isVisibleText,
  readObjects,
  readText,
  type UntypedFields,
} from './view.ts';

/**
 * Describes the media of an ad in a few words, e.g. `15 s` for a video, `2 cards` or `8 cards (6 videos 14 s)`. Does
 * not count still images of videos, the advertiser's profile picture, and further sizes of the same file.
 *
 * The description does not repeat the format that the service reports, such as VIDEO. If the media are of a different
 * kind, the description names this kind, e.g. `(media: image)` for a VIDEO.
 */
export function describeCreative(ad: UntypedFields): string | undefined {
  const mediaDescription = describeMedia(ad).join(' + ');
  const reportedFormat = typeof ad.displayFormat === 'string' ? ad.displayFormat.toLowerCase() : '';
  if (mediaDescription === '') return;
  if (
    reportedFormat !== '' &&
    (mediaDescription === reportedFormat || mediaDescription.startsWith(`${reportedFormat} `))
  )
    return mediaDescription.slice(reportedFormat.length + 1) || undefined;
  return (reportedFormat === 'video' || reportedFormat === 'image') && !mediaDescription.includes(reportedFormat)
    ? `(media: ${mediaDescription})`
    : mediaDescription;
}

function describeMedia(ad: UntypedFields): string[] {
  const { video, picture, cardVideo, cardCount } = groupMediaByRole(ad);
  const parts: string[] = [];
  if (video.length > 0) parts.push(`${formatMediaCount(video.length, 'video')}${formatLengths(video)}`);
  else if (picture.length > 0 && cardCount === 0) parts.push(formatMediaCount(picture.length, 'image'));
  if (cardCount > 0) {
    const videoText =
      cardVideo.length > 0 ? ` (${formatMediaCount(cardVideo.length, 'video')}${formatLengths(cardVideo)})` : '';
    parts.push((cardCount === 1 ? '1 card' : `${cardCount} cards`) + videoText);
  }
  return parts;
}

/**
 * The roles of media files, such as a video or the picture of a carousel card. Each role has a pattern for the file
 * types that the service reports, such as `VID`. The first matching pattern determines the role.
 */
const mediaRoles = [
  ['video', /^VID/i],
  ['cardVideo', /^CARD_VID/i],
  ['cardPicture', /^CARD/i],
  ['profilePicture', /^PA_/i],
  ['picture', /^/],
] as const;
type MediaRole = (typeof mediaRoles)[number][0];

/**
 * The media files of an ad, grouped by role, and the number of its carousel cards. If the service lists a file in
 * several sizes, the group contains only the first size.
 */
type MediaByRole = Record<MediaRole, UntypedFields[]> & { cardCount: number };

/**
 * Groups the media files of an ad by role. Some ads have media for carousel cards but no card objects. `cardCount` is
 * therefore the number of card objects or the number of cards with media, whichever is higher.
 */
function groupMediaByRole(ad: UntypedFields, mediaFiles = readObjects(ad.media)): MediaByRole {
  const mediaByRole: MediaByRole = {
    video: [],
    cardVideo: [],
    cardPicture: [],
    profilePicture: [],
    picture: [],
    cardCount: 0,
  };
  const rolesByPosition = new Map<unknown, Partial<Record<MediaRole, true>>>();
  for (const mediaFile of mediaFiles) {
    const type = typeof mediaFile.type === 'string' ? mediaFile.type : '';
    const role = mediaRoles.find(([, typePattern]) => typePattern.test(type))?.[0] ?? 'picture';
    const position = getPosition(mediaFile);
    const rolesAtPosition = rolesByPosition.get(position) ?? {};
    if (rolesAtPosition[role]) continue;
    if (role.startsWith('card') && !rolesAtPosition.cardVideo && !rolesAtPosition.cardPicture) mediaByRole.cardCount++;
    rolesAtPosition[role] = true;
    rolesByPosition.set(position, rolesAtPosition);
    mediaByRole[role].push(mediaFile);
  }
  const cardObjectCount = Array.isArray(ad.cards) ? ad.cards.filter(isObject).length : 0;
  mediaByRole.cardCount = Math.max(mediaByRole.cardCount, cardObjectCount);
  return mediaByRole;
}

/**
 * Counts the carousel cards, videos and images of an ad, and finds the length of its longest video in seconds. Does not
 * count still images of card videos. `videoCount` and `imageCount` are null if the ad has no media. `videoSeconds` is
 * null if no length is known.
 */
export function countMedia(ad: UntypedFields) {
  const mediaFiles = readObjects(ad.media).filter(({ type }) => typeof type === 'string');
  const { video, picture, cardVideo, cardPicture, cardCount } = groupMediaByRole(ad, mediaFiles);
  const videoLengthsInSeconds = listVideoSeconds([...video, ...cardVideo]);
  const videoSeconds = videoLengthsInSeconds.length > 0 ? Math.max(...videoLengthsInSeconds) : null;
  if (video.length + picture.length + cardVideo.length + cardPicture.length === 0)
    return { cardCount, videoCount: null, imageCount: null, videoSeconds };
  const positionsWithVideo = new Set(cardVideo.map(getPosition));
  const cardImages = cardPicture.filter((mediaFile) => !positionsWithVideo.has(getPosition(mediaFile)));
  const stillCount = video.length > 0 || cardCount > 0 ? 0 : picture.length;
  return {
    cardCount,
    videoCount: video.length + positionsWithVideo.size,
    imageCount: stillCount + cardImages.length,
    videoSeconds,
  };
}

/**
 * Returns the media of the ad itself (`adMedia`) and the media of each carousel card (`mediaByCard`), but not the
 * advertiser's profile picture.
 */
export function groupMedia(ad: UntypedFields) {
  const { video, picture, cardVideo, cardPicture, cardCount } = groupMediaByRole(ad);
  const adMedia = [...video, ...picture];
  const mediaByCard: UntypedFields[][] = Array.from({ length: cardCount }, () => []);
  const cardMedia = [...cardPicture, ...cardVideo];
  const findCardIndex = createCardIndexFinder(cardMedia, cardCount);
  for (const mediaFile of cardMedia) (mediaByCard[findCardIndex(mediaFile)] ?? adMedia).push(mediaFile);
  return { adMedia, mediaByCard };
}

/**
 * Returns a function that finds the index of the carousel card to which a media file belongs. A file states its
 * position in `nr`, but the API document does not say whether `nr` starts at 0 or 1. If there are as many different
 * positions as cards, the lowest position therefore belongs to the first card.
 */
function createCardIndexFinder(mediaFiles: UntypedFields[], cardCount: number): (mediaFile: UntypedFields) => number {
  const positions = [...new Set(mediaFiles.map(getPosition))];
  if (positions.length !== cardCount) return ({ nr }) => (isFiniteNumber(nr) ? nr : -1);
  if (positions.every(isFiniteNumber)) positions.sort((a, b) => a - b);
  const indexByPosition = new Map(positions.map((position, index) => [position, index]));
  return (mediaFile) => indexByPosition.get(getPosition(mediaFile)) ?? -1;
}

const getPosition = (mediaFile: UntypedFields) => mediaFile.nr ?? mediaFile.filename ?? mediaFile.url;

const formatMediaCount = (count: number, noun: string) => (count === 1 ? noun : `${count} ${noun}s`);

const listVideoSeconds = (videos: UntypedFields[]): number[] =>
  videos.flatMap(({ durationSeconds: seconds }) => (isFiniteNumber(seconds) && seconds > 0 ? seconds : []));

function formatLengths(videos: UntypedFields[]): string {
  const seconds = listVideoSeconds(videos).map(Math.round);
  if (seconds.length === 0) return '';
  const [min, max] = [Math.min(...seconds), Math.max(...seconds)];
  return min === max ? ` ${max} s` : ` ${min}–${max} s`;
}

/** Schema of a link to an image or a video, with the day on which its URL expires. */
export const getMediaLinkSchema = createLazyGetter(() =>
  z
    .looseObject({
      type: z.string().describe('Kind of media, such as VID for a video or THUMB for an image.'),
      url: z.string().optional().describe('URL. Missing once it has expired.'),
      expired: z.string().optional().describe('Day on which the URL expired.'),
      expires: z.string().optional().describe('Day on which the URL will expire.'),
    })
    .meta({ title: 'Media' }),
);
export type MediaLink = DataOf<ReturnType<typeof getMediaLinkSchema>>;

/** Schema of a carousel card of an ad, as results contain it. */
export const getCardViewSchema = createLazyGetter(() =>
  z
    .looseObject({
      card: z.number().describe('Number of the card, from 1.'),
      title: z
        .string()
        .optional()
        .describe('Title of the card. A text that the ad or an earlier card also has is left out.'),
      body: z.string().optional().describe('Text of the card.'),
      linkDescription: z.string().optional().describe('Description below the title.'),
      ctaType: z.string().optional().describe('Button of the card, such as SHOP_NOW.'),
      landingUrl: z.string().optional().describe('Landing page without tracking parameters.'),
      media: z.array(getMediaLinkSchema()).optional().describe('Images and videos of the card.'),
    })
    .meta({ title: 'Card' }),
);
export type CardView = DataOf<ReturnType<typeof getCardViewSchema>>;

type CardField = 'title' | 'body' | 'linkDescription' | 'ctaType' | 'landingUrl';

/**
 * The property names that a carousel card may use for each field. The API document does not define the format of cards.
 * These names occur in responses of this service or in the APIs of similar services.
 */
const cardPropertyNames = {
  title: ['title', 'headline', 'name'],
  body: ['body', 'text'],
  linkDescription: ['link_description', 'linkDescription', 'description'],
  ctaType: ['cta_type', 'ctaType'],
  link: ['link_url', 'linkUrl', 'offerLink', 'url', 'link'],
  video: ['video_hd_url', 'videoHdUrl', 'video_sd_url', 'videoSdUrl'],
  picture: ['resized_image_url', 'resizedImageUrl', 'original_image_url', 'originalImageUrl', 'image_url', 'imageUrl'],
  still: ['video_preview_image_url', 'videoPreviewImageUrl'],
} as const;

/** The maximum number of carousel cards of an ad in a result. */
const maxCards = 20;

/**
 * Converts the carousel cards of an ad to the form in which results show them, without media URLs. Omits texts that
 * repeat the ad or an earlier card.
 * @returns the cards in `cardViews`, their media in `mediaByCard`, and the number of omitted cards in `omittedCount`
 */
export function buildCardViews(ad: UntypedFields) {
  const mediaByCard = listCardMedia(ad);
  const shownCount = Math.min(mediaByCard.length, maxCards);
  const cardViews = Array.from({ length: shownCount }, (_, index): CardView => ({ card: index + 1 }));
  const adFields = { ...ad, title: undefined, landingUrl: cleanUrl(ad.offerLink, maxLinkTokens) } as UntypedFields;
  const earlierTexts = new Set<string>();
  const texts = cardViews.flatMap((view, index) =>
    listCardTexts(readObjects(ad.cards)[index]).flatMap(([field, text]) => {
      const textKey = `${field} ${text}`;
      if (text === adFields[field] || earlierTexts.has(textKey)) return [];
      earlierTexts.add(textKey);
      return { view, field, text };
    }),
  );
  const adTexts = texts.filter(({ field }) => field !== 'ctaType' && field !== 'landingUrl');
  const tokensPerText = Math.max(minTextTokens, sharedTextTokens / adTexts.length);
  for (const { view, field, text } of texts) {
    const tokens = { ctaType: maxCtaTokens, landingUrl: maxLinkTokens }[field as string] ?? tokensPerText;
    addFields(view, { [field]: readText(text, tokens) });
  }
  return { cardViews, mediaByCard: mediaByCard.slice(0, shownCount), omittedCount: mediaByCard.length - shownCount };
}

/**
 * Returns the media files of each carousel card. If the ad's `media` list contains no file for a card, uses the URLs in
 * the card itself.
 */
export function listCardMedia(ad: UntypedFields): UntypedFields[][] {
  const cards = readObjects(ad.cards);
  return groupMedia(ad).mediaByCard.map((mediaFiles, index) =>
    mediaFiles.length > 0 ? mediaFiles : listMediaInCard(cards[index]),
  );
}

/** Returns the URLs of all media files of an ad and its cards, in all sizes that the service lists. */
export const listMediaUrls = (ad: UntypedFields): string[] =>
  [
    ...readObjects(ad.media).flatMap(({ url, urls }) => [url, ...(isObject(urls) ? Object.values(urls) : [])]),
    ...readObjects(ad.cards).flatMap((card) => [readCardField(card, 'picture'), readCardField(card, 'still')]),
  ].filter((url) => typeof url === 'string');

function listCardTexts(card: UntypedFields | undefined): [CardField, string][] {
  const texts: [CardField, string | undefined][] = [
    ['title', readCardField(card, 'title')],
    ['body', readCardField(card, 'body')],
    ['linkDescription', readCardField(card, 'linkDescription')],
    ['ctaType', readCardField(card, 'ctaType')],
    ['landingUrl', cleanUrl(readCardLink(card), maxLinkTokens)],
  ];
  return texts.filter((text): text is [CardField, string] => isVisibleText(text[1]));
}

/** The maximum number of tokens for the texts of all carousel cards of an ad together. */
const sharedTextTokens = 600;
/** The number of tokens that each of these texts may use, even if its part of `sharedTextTokens` is smaller. */
const minTextTokens = 14;
const maxCtaTokens = 12;

function listMediaInCard(card: UntypedFields | undefined): UntypedFields[] {
  const [video, picture, still] = [
    readCardField(card, 'video'),
    readCardField(card, 'picture'),
    readCardField(card, 'still'),
  ];
  const thumbnailUrl = picture ?? still;
  return [
    ...(thumbnailUrl === undefined ? [] : [{ type: 'CARD_THUMB', url: thumbnailUrl }]),
    ...(video === undefined ? [] : [{ type: 'CARD_VID', url: video }]),
  ];
}

/** Returns the title of the first carousel card. If the ad itself has no text, adds the text of the card. */
export function describeFirstCard(ad: UntypedFields, maxTokens: number): string | undefined {
  const card = readObjects(ad.cards)[0];
  const title = omitPlaceholderText(readCardField(card, 'title'));
  const hasOwnText = isVisibleText(ad.body) && !hasPlaceholder(ad.body);
  const body = hasOwnText ? undefined : omitPlaceholderText(readCardField(card, 'body'));
  return readText(title && body && !body.startsWith(title) ? `${title} — ${body}` : (body ?? title), maxTokens);
}

/** Returns the link of a carousel card, or undefined if the card has no link. */
export const readCardLink = (card: UntypedFields | undefined): string | undefined => readCardField(card, 'link');

/**
 * Returns true if a text contains a placeholder, e.g. `{{product.name}}`. Ad networks replace placeholders with data
 * from a product catalog, but the ad library returns the original text.
 */
export const hasPlaceholder = (text: unknown): boolean => typeof text === 'string' && /\{\{[^{}]*\}\}/.test(text);

const maxLinkTokens = 40;
const omitPlaceholderText = (text: string | undefined) => (hasPlaceholder(text) ? undefined : text);

/**
 * Reads a field of a carousel card. Tries all property names that the service may use for the field, and returns the
 * first non-empty text.
 */
export function readCardField(
  card: UntypedFields | undefined,
  field: keyof typeof cardPropertyNames,
): string | undefined {
  for (const propertyName of cardPropertyNames[field]) {
    const text = card?.[propertyName];
    if (typeof text === 'string' && text.trim() !== '') return text;
  }
}

/**
 * The maximum length of a media URL in characters. A longer URL is omitted from the result, because a shortened URL
 * would not work.
 */
const maxUrlChars = 2000;
/**
 * The number of tokens that a media link takes in addition to its URL. They cover its type, its date and the field
 * names.
 */
const linkLabelTokens = 24;

/**
 * Creates an object whose method `buildLinks` converts media files to links. All calls of `buildLinks` together return
 * links with at most `maxTokens` tokens. Files beyond this limit are omitted.
 */
export function createMediaLinkBuilder(maxTokens: number, now: number) {
  let remainingTokens = maxTokens;
  let omittedCount = 0;
  return {
    /**
     * The number of media files that `buildLinks` has omitted so far, because their link exceeds the token limit or
     * their URL is unusable.
     */
    get omittedCount() {
      return omittedCount;
    },
    buildLinks: (mediaFiles: readonly UntypedFields[]): MediaLink[] =>
      mediaFiles.flatMap((mediaFile) => {
        const link = remainingTokens < linkLabelTokens ? undefined : buildMediaLink(mediaFile, now);
        const tokenCost = linkLabelTokens + (link?.url === undefined ? 0 : estimateTokens(link.url));
        if (link === undefined || tokenCost > remainingTokens) {
          omittedCount++;
          return [];
        }
        remainingTokens -= tokenCost;
        return link;
      }),
  };
}

function buildMediaLink(mediaFile: UntypedFields, now: number): MediaLink | undefined {
  const parsedUrl = parseUrl(mediaFile.url);
  if (parsedUrl === undefined || parsedUrl.href.length > maxUrlChars) return;
  // Reject URLs with a user name. In `https://trusted.example@evil.example`, the user name looks like the host.
  if (parsedUrl.username + parsedUrl.password !== '') return;
  // Reject URLs with backslashes. `parseUrl` returns only their host, which would not lead to the file.
  if (String(mediaFile.url).includes('\\')) return;
  const url = parsedUrl.href;
  const type = readText(mediaFile.type, 12) ?? 'media';
  const expiry = parseExpiry(url);
  const day = formatDay(expiry);
  if (expiry !== undefined && expiry <= now) return { type, ...(day && { expired: day }) };
  return { type, url, ...(day && { expires: day }) };
}

/**
 * The picture that represents an ad, or the reason why there is no picture. If the URL of the picture has expired,
 * `expiredUrl` contains this URL.
 */
export type AdPicture =
  | { url: string; origin: 'picture' | 'still' | 'profilePicture' | { cardNumber: number } }
  | { reason: string; expiredUrl?: string };

/** The options for the selection of the picture that represents an ad. */
export interface PictureOptions {
  /**
   * The number of the carousel card whose picture is selected, starting at 1. By default, the picture of the ad itself
   * is selected. If the ad itself has no picture, the picture of its first card is selected.
   */
  card?: number | undefined;
  /** The current time in milliseconds since the Unix epoch. Used to detect expired URLs. */
  now: number;
}

/**
 * Selects the picture that represents an ad. Tries the image of the ad, the still image of its video, the picture of
 * its first carousel card, and the advertiser's profile picture, in this order.
 */
export function selectPicture(ad: UntypedFields, { card, now }: PictureOptions): AdPicture {
  const cards = listCardMedia(ad);
  const selectCardPicture = (cardNumber: number): AdPicture | undefined => {
    const picture = findUnexpiredPicture(cards[cardNumber - 1] ?? [], now);
    return picture && ('url' in picture ? { url: picture.url, origin: { cardNumber } } : picture);
  };
  if (card !== undefined) {
    if (cards.length === 0) return { reason: 'the ad has no cards' };
    if (card > cards.length) return { reason: `the ad has only ${formatCount(cards.length, 'card')}` };
    return selectCardPicture(card) ?? { reason: `card ${card} has no picture` };
  }
  const adPicture = findUnexpiredPicture(groupMedia(ad).adMedia, now) ?? selectCardPicture(1);
  if (adPicture) return adPicture;
  const profilePicture = findUnexpiredPicture(groupMediaByRole(ad).profilePicture, now) ?? {
    reason: 'the ad has no picture',
  };
  return 'url' in profilePicture ? { ...profilePicture, origin: 'profilePicture' } : profilePicture;
}

/**
 * Returns the first picture with an unexpired URL. Prefers images to still images of videos. If all URLs have expired,
 * returns the expiry date as the reason. Returns undefined if there is no URL.
 */
function findUnexpiredPicture(mediaFiles: readonly UntypedFields[], now: number): AdPicture | undefined {
  const isVideo = ({ type }: UntypedFields) => typeof type === 'string' && /VID/i.test(type);
  const hasVideo = mediaFiles.some(isVideo);
  const candidateUrls = [
    ...mediaFiles
      .filter((mediaFile) => !isVideo(mediaFile))
      .flatMap(({ url, urls }) => selectWebUrls(url, (urls as UntypedFields)?.original)),
    ...mediaFiles.filter(isVideo).flatMap(({ urls }) => selectWebUrls((urls as UntypedFields)?.preview)),
  ];
  const unexpiredUrl = candidateUrls.find((url) => !(Number(parseExpiry(url)) <= now));
  if (unexpiredUrl !== undefined) return { url: unexpiredUrl, origin: hasVideo ? 'still' : 'picture' };
  const [firstUrl = ''] = candidateUrls;
  const expiryDay = formatDay(parseExpiry(firstUrl));
  if (expiryDay !== undefined) return { reason: `its address expired on ${expiryDay}`, expiredUrl: firstUrl };
  return hasVideo ? { reason: 'the video has no still' } : undefined;
}

/** Matches an http or https URL of at most 4,000 characters. */
const shortWebUrlPattern = /^https?:\/\/\S{1,4000}$/i;

const selectWebUrls = (...candidates: unknown[]): string[] =>
  candidates.filter((url): url is string => typeof url === 'string' && shortWebUrlPattern.test(url));
