import * as z from 'zod';
import { cleanUrl, parseExpiry, parseUrl } from './addresses.ts';
import { formatDay } from './dates.ts';
import type { DataOf } from './fields.ts';
import { formatCount } from './numbers.ts';
import { estimateTokens } from './tokens.ts';
import { addFields, type Fields, isNumber, isObject, isVisible, readObjects, readText } from './view.ts';

/**
 * Describes the pictures, videos and cards of an ad: `15 s` for a VIDEO, `2 cards`, `8 cards (6 videos 14 s)`. Does not
 * repeat the service's own format, and says so if the media are of another kind: `(media: image)` for a VIDEO. The still
 * of a video, the advertiser's portrait and other sizes of the same piece are not counted.
 */
export function describeCreative(ad: Fields): string | undefined {
  const parts = mediaParts(ad).join(' + ');
  const kind = typeof ad.displayFormat === 'string' ? ad.displayFormat.toLowerCase() : '';
  if (parts === '') return;
  if (kind !== '' && (parts === kind || parts.startsWith(`${kind} `))) return parts.slice(kind.length + 1) || undefined;
  return (kind === 'video' || kind === 'image') && !parts.includes(kind) ? `(media: ${parts})` : parts;
}

function mediaParts(ad: Fields): string[] {
  const { video, picture, cardVideo, cards } = assetsOf(ad);
  const parts: string[] = [];
  if (video.length > 0) parts.push(`${mediaText(video.length, 'video')}${lengths(video)}`);
  else if (picture.length > 0 && cards === 0) parts.push(mediaText(picture.length, 'image'));
  if (cards > 0) {
    const within = cardVideo.length > 0 ? ` (${mediaText(cardVideo.length, 'video')}${lengths(cardVideo)})` : '';
    parts.push((cards === 1 ? '1 card' : `${cards} cards`) + within);
  }
  return parts;
}

/** What an asset is, by the start of its type. */
const roles = [
  ['video', /^VID/i],
  ['cardVideo', /^CARD_VID/i],
  ['cardPicture', /^CARD/i],
  ['portrait', /^PA_/i],
  ['picture', /^/],
] as const;
type Role = (typeof roles)[number][0];

/** The pictures and videos of an ad, one for each position, and how many cards it has. */
type Assets = Record<Role, Fields[]> & { cards: number };

/** Some ads send the media of their cards, but no cards. */
function assetsOf(ad: Fields, media = readObjects(ad.media)): Assets {
  const assets: Assets = { video: [], cardVideo: [], cardPicture: [], portrait: [], picture: [], cards: 0 };
  const rolesByAddress = new Map<unknown, Partial<Record<Role, true>>>();
  for (const asset of media) {
    const type = typeof asset.type === 'string' ? asset.type : '';
    const role = roles.find(([, form]) => form.test(type))?.[0] ?? 'picture';
    const position = positionOf(asset);
    const here = rolesByAddress.get(position) ?? {};
    if (here[role]) continue;
    if (role.startsWith('card') && !here.cardVideo && !here.cardPicture) assets.cards++;
    here[role] = true;
    rolesByAddress.set(position, here);
    assets[role].push(asset);
  }
  const sent = Array.isArray(ad.cards) ? ad.cards.filter(isObject).length : 0;
  assets.cards = Math.max(assets.cards, sent);
  return assets;
}

/**
 * How many cards, videos and pictures `creativeOf` would find, and the seconds of the longest video. The still of a
 * card's video is not counted either. Null where the answer brought none of the ad's media, or no length.
 */
export function countMedia(ad: Fields) {
  const media = readObjects(ad.media).filter(({ type }) => typeof type === 'string');
  const { video, picture, cardVideo, cardPicture, cards: cardCount } = assetsOf(ad, media);
  const lengths = secondsOf([...video, ...cardVideo]);
  const videoSeconds = lengths.length > 0 ? Math.max(...lengths) : null;
  if (video.length + picture.length + cardVideo.length + cardPicture.length === 0)
    return { cardCount, videoCount: null, imageCount: null, videoSeconds };
  const withVideo = new Set(cardVideo.map(positionOf));
  const cardImages = cardPicture.filter((asset) => !withVideo.has(positionOf(asset)));
  const stills = video.length > 0 || cardCount > 0 ? 0 : picture.length;
  return { cardCount, videoCount: video.length + withVideo.size, imageCount: stills + cardImages.length, videoSeconds };
}

/** Without the advertiser's portrait: the ad's own, and those of each card in order. */
export function groupMedia(ad: Fields) {
  const { video, picture, cardVideo, cardPicture, cards } = assetsOf(ad);
  const ofAd = [...video, ...picture];
  const ofCards: Fields[][] = Array.from({ length: cards }, () => []);
  const cardMedia = [...cardPicture, ...cardVideo];
  const cardIndex = indexByPosition(cardMedia, cards);
  for (const asset of cardMedia) (ofCards[cardIndex(asset)] ?? ofAd).push(asset);
  return { ofAd, ofCards };
}

/**
 * The card that an asset belongs to. The document does not say where `nr` starts: if there are as many positions as
 * cards, their order decides.
 */
function indexByPosition(assets: Fields[], cards: number): (asset: Fields) => number {
  const positions = [...new Set(assets.map(positionOf))];
  if (positions.length !== cards) return ({ nr }) => (isNumber(nr) ? nr : -1);
  if (positions.every(isNumber)) positions.sort((a, b) => a - b);
  const ranks = new Map(positions.map((position, index) => [position, index]));
  return (asset) => ranks.get(positionOf(asset)) ?? -1;
}

const positionOf = (asset: Fields) => asset.nr ?? asset.filename ?? asset.url;

const mediaText = (count: number, noun: string) => (count === 1 ? noun : `${count} ${noun}s`);

const secondsOf = (videos: Fields[]): number[] =>
  videos.flatMap(({ durationSeconds: seconds }) => (isNumber(seconds) && seconds > 0 ? seconds : []));

function lengths(videos: Fields[]): string {
  const seconds = secondsOf(videos).map(Math.round);
  if (seconds.length === 0) return '';
  const [min, max] = [Math.min(...seconds), Math.max(...seconds)];
  return min === max ? ` ${max} s` : ` ${min}–${max} s`;
}

export const MediaLink = z
  .looseObject({
    type: z.string(),
    url: z.string().optional().describe('missing once it has expired'),
    expired: z.string().optional().describe('a day'),
    expires: z.string().optional().describe('a day'),
  })
  .meta({ title: 'Media' });
export type MediaLink = DataOf<typeof MediaLink>;

export const CardView = z
  .looseObject({
    card: z.number().describe('from 1'),
    title: z.string().optional().describe('left out where said before, as all copy'),
    body: z.string().optional(),
    linkDescription: z.string().optional(),
    ctaType: z.string().optional(),
    landingUrl: z.string().optional(),
    media: z.array(MediaLink).optional(),
  })
  .meta({ title: 'Card' });
export type CardView = DataOf<typeof CardView>;

type CardField = 'title' | 'body' | 'linkDescription' | 'ctaType' | 'landingUrl';

/** Cards are free-form: these are the spellings seen, and those that similar services use. */
const cardFields = {
  title: ['title', 'headline', 'name'],
  body: ['body', 'text'],
  linkDescription: ['link_description', 'linkDescription', 'description'],
  ctaType: ['cta_type', 'ctaType'],
  link: ['link_url', 'linkUrl', 'offerLink', 'url', 'link'],
  video: ['video_hd_url', 'videoHdUrl', 'video_sd_url', 'videoSdUrl'],
  picture: ['resized_image_url', 'resizedImageUrl', 'original_image_url', 'originalImageUrl', 'image_url', 'imageUrl'],
  still: ['video_preview_image_url', 'videoPreviewImageUrl'],
} as const;

const maxCards = 20;

/** Cards without the addresses of their media, the media of each, and how many more there are. */
export function viewCards(ad: Fields) {
  const ofCards = listCardMedia(ad);
  const shown = Math.min(ofCards.length, maxCards);
  const views = Array.from({ length: shown }, (_, index): CardView => ({ card: index + 1 }));
  const adFields = { ...ad, title: undefined, landingUrl: cleanUrl(ad.offerLink, linkTokens) } as Fields;
  const earlier = new Set<string>();
  const texts = views.flatMap((view, index) =>
    cardTexts(readObjects(ad.cards)[index]).flatMap(([field, text]) => {
      const name = `${field} ${text}`;
      if (text === adFields[field] || earlier.has(name)) return [];
      earlier.add(name);
      return { view, field, text };
    }),
  );
  const copy = texts.filter(({ field }) => field !== 'ctaType' && field !== 'landingUrl');
  const share = Math.max(minTokens, copyTokens / copy.length);
  for (const { view, field, text } of texts) {
    const tokens = { ctaType: ctaTokens, landingUrl: linkTokens }[field as string] ?? share;
    addFields(view, { [field]: readText(text, tokens) });
  }
  return { views, media: ofCards.slice(0, shown), more: ofCards.length - shown };
}

export function listCardMedia(ad: Fields): Fields[][] {
  const cards = readObjects(ad.cards);
  return groupMedia(ad).ofCards.map((assets, index) => (assets.length > 0 ? assets : mediaIn(cards[index])));
}

function cardTexts(card: Fields | undefined): [CardField, string][] {
  const texts: [CardField, string | undefined][] = [
    ['title', readCardField(card, 'title')],
    ['body', readCardField(card, 'body')],
    ['linkDescription', readCardField(card, 'linkDescription')],
    ['ctaType', readCardField(card, 'ctaType')],
    ['landingUrl', cleanUrl(readCardLink(card), linkTokens)],
  ];
  return texts.filter((text): text is [CardField, string] => isVisible(text[1]));
}

/** The tokens that the copy of all cards shares, and the least for a text. */
const copyTokens = 600;
const minTokens = 14;
const ctaTokens = 12;

function mediaIn(card: Fields | undefined): Fields[] {
  const [video, picture, still] = [
    readCardField(card, 'video'),
    readCardField(card, 'picture'),
    readCardField(card, 'still'),
  ];
  const thumb = picture ?? still;
  return [
    ...(thumb === undefined ? [] : [{ type: 'CARD_THUMB', url: thumb }]),
    ...(video === undefined ? [] : [{ type: 'CARD_VID', url: video }]),
  ];
}

/** The first card's title, and its body if the ad has none of its own. */
export function describeFirstCard(ad: Fields, tokens: number): string | undefined {
  const card = readObjects(ad.cards)[0];
  const title = unlessTemplate(readCardField(card, 'title'));
  const body = ad.body && !isTemplate(ad.body) ? undefined : unlessTemplate(readCardField(card, 'body'));
  return readText(title && body && !body.startsWith(title) ? `${title} — ${body}` : (body ?? title), tokens);
}

export const readCardLink = (card: Fields | undefined): string | undefined => readCardField(card, 'link');

/** `{{product.name}}`: the network fills this in from a catalogue, but the ad library does not. */
export const isTemplate = (text: unknown): boolean => typeof text === 'string' && /\{\{[^{}]*\}\}/.test(text);

const linkTokens = 40;
const unlessTemplate = (text: string | undefined) => (isTemplate(text) ? undefined : text);

/** The first text that a card has under the spellings of a field. */
export function readCardField(card: Fields | undefined, field: keyof typeof cardFields): string | undefined {
  for (const name of cardFields[field]) {
    const value = card?.[name];
    if (typeof value === 'string' && value.trim() !== '') return value;
  }
}

/** Longer addresses are useless to a reader, and a cut one would not work. */
const maxAddress = 2000;
/** The type, the date and the names of the fields. */
const linkLabelTokens = 24;

/** Writes the addresses of one ad after another, as long as there is room. */
export function createLinkWriter(tokens: number, now: number) {
  let remainingTokens = tokens;
  let leftOut = 0;
  return {
    /** Assets whose address did not fit. */
    get leftOut() {
      return leftOut;
    },
    write: (assets: readonly Fields[]): MediaLink[] =>
      assets.flatMap((asset) => {
        const link = remainingTokens < linkLabelTokens ? undefined : mediaLink(asset, now);
        const cost = linkLabelTokens + (link?.url === undefined ? 0 : estimateTokens(link.url));
        if (link === undefined || cost > remainingTokens) {
          leftOut++;
          return [];
        }
        remainingTokens -= cost;
        return link;
      }),
  };
}

function mediaLink(asset: Fields, now: number): MediaLink | undefined {
  const address = parseUrl(asset.url);
  // A user name in front of the host would hide it.
  if (address === undefined || address.href.length > maxAddress || address.username + address.password !== '') return;
  const url = address.href;
  const type = readText(asset.type, 12) ?? 'media';
  const expiry = parseExpiry(url);
  const day = formatDay(expiry);
  if (expiry !== undefined && expiry <= now) return { type, ...(day && { expired: day }) };
  return { type, url, ...(day && { expires: day }) };
}

/** The address of the picture that stands for an ad, or why there is none; `expired` is the address that has. */
export type AdPicture =
  | { address: string; shows: 'picture' | 'still' | 'portrait' | { card: number } }
  | { reason: string; expired?: string };

export interface PictureChoice {
  /** The card to show, counted from 1; without it the ad's own picture, or its first card. */
  card?: number | undefined;
  /** In milliseconds since the epoch: signed addresses stop working. */
  now: number;
}

/** Prefers the ad's own picture or the still of its video, then its cards, then the advertiser's portrait. */
export function selectPicture(ad: Fields, { card, now }: PictureChoice): AdPicture {
  const cards = listCardMedia(ad);
  const ofCard = (number: number): AdPicture | undefined => {
    const found = firstWorking(cards[number - 1] ?? [], now);
    return found && ('address' in found ? { address: found.address, shows: { card: number } } : found);
  };
  if (card !== undefined) {
    if (cards.length === 0) return { reason: 'the ad has no cards' };
    if (card > cards.length) return { reason: `the ad has only ${formatCount(cards.length, 'card')}` };
    return ofCard(card) ?? { reason: `card ${card} has no picture` };
  }
  const asset = firstWorking(groupMedia(ad).ofAd, now) ?? ofCard(1);
  if (asset) return asset;
  const portrait = firstWorking(assetsOf(ad).portrait, now) ?? { reason: 'the ad has no picture' };
  return 'address' in portrait ? { ...portrait, shows: 'portrait' } : portrait;
}

/** Pictures come before stills. If all addresses have expired, says when; undefined if there is no address at all. */
function firstWorking(assets: readonly Fields[], now: number): AdPicture | undefined {
  const isVideo = ({ type }: Fields) => typeof type === 'string' && /VID/i.test(type);
  const hasVideo = assets.some(isVideo);
  const found = [
    ...assets.filter((asset) => !isVideo(asset)).flatMap(({ url, urls }) => addresses(url, (urls as Fields)?.original)),
    ...assets.filter(isVideo).flatMap(({ urls }) => addresses((urls as Fields)?.preview)),
  ];
  const working = found.find((address) => !(Number(parseExpiry(address)) <= now));
  if (working !== undefined) return { address: working, shows: hasVideo ? 'still' : 'picture' };
  const [first = ''] = found;
  const expired = formatDay(parseExpiry(first));
  if (expired !== undefined) return { reason: `its address expired on ${expired}`, expired: first };
  return hasVideo ? { reason: 'the video has no still' } : undefined;
}

/** A longer text counts as no address. */
const webAddress = /^https?:\/\/\S{1,4000}$/i;

const addresses = (...found: unknown[]): string[] =>
  found.filter((address): address is string => typeof address === 'string' && webAddress.test(address));
