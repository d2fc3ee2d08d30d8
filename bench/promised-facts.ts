import type { Ad } from '../src/api/schemas.ts';

/**
 * Reduces a text to lower-case letters and digits, so that two texts can be compared. The server may change all other
 * characters when it shortens, quotes or sanitizes a text.
 */
const extractLettersAndDigits = (text: string) =>
  text
    .normalize('NFC')
    .replaceAll('\\n', ' ')
    .replace(/[^\p{L}\p{N}]/gu, '')
    .toLowerCase();
const getOpeningLetters = (text: string) => extractLettersAndDigits([...text.trim()].slice(0, 8).join(''));
const toDay = (date: string) => date.slice(0, 10);
const dayMs = 86_400_000;

const platformCodes: Record<string, string> = {
  FACEBOOK: 'FB',
  INSTAGRAM: 'IG',
  AUDIENCE_NETWORK: 'AN',
  MESSENGER: 'MSG',
  THREADS: 'TH',
  WHATSAPP: 'WA',
};

/**
 * Returns the facts that every brief list of ads must state about an ad. Each fact has a name and a function that
 * returns true if a text states the fact. The facts come directly from the source data, because this check must not
 * depend on the code under test.
 */
export function listPromisedFacts(ad: Ad, now: number): Record<string, (text: string) => boolean> {
  const facts: Record<string, (text: string) => boolean> = {};
  const addFact = (factName: string, fieldValue: unknown, expectedPhrase: string) => {
    if (fieldValue !== null && fieldValue !== undefined && fieldValue !== '')
      facts[factName] = (text) => text.includes(expectedPhrase);
  };
  const addOpeningFact = (factName: string, fieldText: string | null | undefined) => {
    if (fieldText && getOpeningLetters(fieldText))
      facts[factName] = (text) => extractLettersAndDigits(text).includes(getOpeningLetters(fieldText));
  };
  addFact('id', ad.id, ad.id);
  addFact('pageId', ad.pageId, ad.pageId ?? '');
  addOpeningFact('pageName', ad.page?.pageName);
  addOpeningFact('headline', ad.headline);
  addOpeningFact('body', ad.body);
  addOpeningFact('productTitle', ad.productTitle);
  addFact('ctaType', ad.ctaType, ad.ctaType ?? '');
  addFact('displayFormat', ad.displayFormat, ad.displayFormat ?? '');
  for (const name of ad.publisherPlatform ?? [])
    facts[name] = (text) => text.includes(platformCodes[name] ?? name) || text.includes(name);
  for (const country of ad.countries ?? []) addFact(`country ${country}`, country, country);
  addFact('startedAt', ad.startedAt, toDay(ad.startedAt ?? ''));
  addFact('lastSeenAt', ad.lastSeenAt, toDay(ad.lastSeenAt ?? ''));
  addFact('endDate', ad.endDate, toDay(ad.endDate ?? ''));
  for (const name of ['audienceReach', 'adSpendMin', 'adSpendMax', 'revenueMin', 'revenueMax'] as const)
    addFact(name, ad[name], `${ad[name]}`);
  for (const name of ['trendPublic', 'performancePublic', 'productPrice', 'duplicates'] as const)
    addFact(name, ad[name], `${ad[name]}`);
  addFact('landing domain', ad.website?.siteDomain, ad.website?.siteDomain ?? '');
  const lastDate = ad.endDate && Date.parse(ad.endDate) <= now ? ad.endDate : ad.lastSeenAt;
  if (ad.startedAt && lastDate) {
    const days = (Date.parse(toDay(lastDate)) - Date.parse(toDay(ad.startedAt))) / dayMs;
    facts['days running'] = (text) => new RegExp(`\\b${days} days?\\b|"daysRunning":${days}\\b`).test(text);
  }
  if (ad.endDate && Date.parse(ad.endDate) <= now) facts.ended = (text) => /ended|"stillRunning":false/.test(text);
  const seconds = ad.media?.find(({ type }) => type === 'VID')?.durationSeconds;
  if (seconds) addFact('video length', seconds, `${Math.round(seconds)}`);
  if (ad.cards?.length) addFact('cards', ad.cards.length, `${ad.cards.length} card`);
  return facts;
}

/**
 * Returns the lines of a formatted list that describe one ad: the first line, which is about the whole list, the line
 * of the advertiser, and the lines of the ad itself.
 */
export function selectLinesAboutAd(ad: Ad, listText: string): string {
  const lines = listText.split('\n');
  const rowIndex = lines.findIndex((line) => /^\d+\. /.test(line) && line.includes(ad.id));
  if (rowIndex < 0) return '';
  const textLine = /^\d+\. /.test(lines[rowIndex + 1] ?? '') ? '' : (lines[rowIndex + 1] ?? '');
  return [lines[0], findHeading(rowIndex, lines), lines[rowIndex], textLine].join('\n');
}

/**
 * Returns the line that names the advertiser of an ad in a formatted list. Instead of repeating this line, a list may
 * contain a line such as `As 7:`, which refers to the advertiser of ad 7.
 */
function findHeading(rowIndex: number, lines: readonly string[]): string {
  let headingIndex = rowIndex;
  while (headingIndex > 0 && lines[headingIndex - 1] !== '') headingIndex--;
  const referencedAd = /^As (\d+):$/.exec(lines[headingIndex] ?? '')?.[1];
  if (referencedAd === undefined) return lines[headingIndex] ?? '';
  return findHeading(
    lines.findIndex((line) => line.startsWith(`${referencedAd}. `)),
    lines,
  );
}
