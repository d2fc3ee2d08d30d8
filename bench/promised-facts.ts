import type { Ad } from '../src/api/schemas.ts';

/** Text without what cutting, quoting and cleaning may change: letters and digits only. */
const bare = (text: string) =>
  text
    .normalize('NFC')
    .replaceAll('\\n', ' ')
    .replace(/[^\p{L}\p{N}]/gu, '')
    .toLowerCase();
const opening = (text: string) => bare([...text.trim()].slice(0, 8).join(''));
const day = (date: string) => date.slice(0, 10);
const dayMs = 86_400_000;

const networkCodes: Record<string, string> = {
  FACEBOOK: 'FB',
  INSTAGRAM: 'IG',
  AUDIENCE_NETWORK: 'AN',
  MESSENGER: 'MSG',
  THREADS: 'TH',
  WHATSAPP: 'WA',
};

/**
 * What a brief list promises to say of an ad, read straight from the source: a name of each fact the ad has, and how
 * to find it in the text about the ad (its own lines, its advertiser's and the list's). Written without the code
 * under test on purpose.
 */
export function promisedFacts(ad: Ad, now: number): Record<string, (text: string) => boolean> {
  const facts: Record<string, (text: string) => boolean> = {};
  const says = (name: string, value: unknown, phrase: string) => {
    if (value !== null && value !== undefined && value !== '') facts[name] = (text) => text.includes(phrase);
  };
  const opens = (name: string, value: string | null | undefined) => {
    if (value && opening(value)) facts[name] = (text) => bare(text).includes(opening(value));
  };
  says('id', ad.id, ad.id);
  says('pageId', ad.pageId, ad.pageId ?? '');
  opens('pageName', ad.page?.pageName);
  opens('headline', ad.headline);
  opens('body', ad.body);
  opens('productTitle', ad.productTitle);
  says('ctaType', ad.ctaType, ad.ctaType ?? '');
  says('displayFormat', ad.displayFormat, ad.displayFormat ?? '');
  for (const name of ad.publisherPlatform ?? [])
    facts[name] = (text) => text.includes(networkCodes[name] ?? name) || text.includes(name);
  for (const country of ad.countries ?? []) says(`country ${country}`, country, country);
  says('startedAt', ad.startedAt, day(ad.startedAt ?? ''));
  says('lastSeenAt', ad.lastSeenAt, day(ad.lastSeenAt ?? ''));
  says('endDate', ad.endDate, day(ad.endDate ?? ''));
  for (const name of ['audienceReach', 'adSpendMin', 'adSpendMax', 'revenueMin', 'revenueMax'] as const)
    says(name, ad[name], `${ad[name]}`);
  for (const name of ['trendPublic', 'performancePublic', 'productPrice', 'duplicates'] as const)
    says(name, ad[name], `${ad[name]}`);
  says('landing domain', ad.website?.siteDomain, ad.website?.siteDomain ?? '');
  const last = ad.endDate && Date.parse(ad.endDate) <= now ? ad.endDate : ad.lastSeenAt;
  if (ad.startedAt && last) {
    const days = (Date.parse(day(last)) - Date.parse(day(ad.startedAt))) / dayMs;
    facts['days running'] = (text) => new RegExp(`\\b${days} days?\\b|"daysRunning":${days}\\b`).test(text);
  }
  if (ad.endDate && Date.parse(ad.endDate) <= now) facts.ended = (text) => /ended|"stillRunning":false/.test(text);
  const seconds = ad.media?.find(({ type }) => type === 'VID')?.durationSeconds;
  if (seconds) says('video length', seconds, `${Math.round(seconds)}`);
  if (ad.cards?.length) says('cards', ad.cards.length, `${ad.cards.length} card`);
  return facts;
}

/** Everything a list text says of one ad: the list's own lines, its advertiser's line, its number's lines. */
export function linesAbout(ad: Ad, text: string): string {
  const lines = text.split('\n');
  const row = lines.findIndex((line) => /^\d+\. /.test(line) && line.includes(ad.id));
  if (row < 0) return '';
  const copy = /^\d+\. /.test(lines[row + 1] ?? '') ? '' : (lines[row + 1] ?? '');
  return [lines[0], headingOf(row, lines), lines[row], copy].join('\n');
}

/** The advertiser's line above a row; `As 7:` stands for the one above number 7. */
function headingOf(row: number, lines: readonly string[]): string {
  let heading = row;
  while (heading > 0 && lines[heading - 1] !== '') heading--;
  const first = /^As (\d+):$/.exec(lines[heading] ?? '')?.[1];
  if (first === undefined) return lines[heading] ?? '';
  return headingOf(
    lines.findIndex((line) => line.startsWith(`${first}. `)),
    lines,
  );
}
