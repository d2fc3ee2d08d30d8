import { timeOf } from '../../views/dates.ts';
import { isUuid, quoted, uuidOf } from '../service/request.ts';

/**
 * Ads that somebody wrote down, as rows of a CSV: which field a column is, by its header in lower case without spaces.
 * A column of another name is stored under that name.
 */
const columnNames: Record<string, string> = {
  id: 'id adid',
  pageId: 'pageid advertiserid',
  pageName: 'advertiser advertisername page pagename brand brandname company companyname account',
  headline: 'headline title',
  body: 'body text copy primarytext adtext message',
  linkDescription: 'linkdescription description',
  offerLink: 'offerlink link url landingpage landingpageurl destination destinationurl finalurl',
  ctaType: 'ctatype cta calltoaction',
  displayFormat: 'displayformat format',
  startedAt: 'startedat started start startdate firstseen date',
  lastSeenAt: 'lastseenat lastseen',
  endDate: 'enddate ended end',
  countries: 'countries country',
  languages: 'languages language',
  publisherPlatform: 'publisherplatform publisherplatforms platforms platform',
  duplicates: 'duplicates copies',
  audienceReach: 'audiencereach reach',
  adSpendMin: 'adspendmin spendmin',
  adSpendMax: 'adspendmax spendmax spend',
  currency: 'currency',
  picture: 'picture image imageurl pictureurl',
};

const fieldOf = new Map(
  Object.entries(columnNames).flatMap(([field, names]) => names.split(' ').map((name) => [name, field])),
);

/** `Ad headline` is the headline, as `headline` is. */
function knownField(column: string): string | undefined {
  const name = column.toLowerCase().replace(/[\s_-]/g, '');
  return fieldOf.get(name) ?? fieldOf.get(name.replace(/^(?:ad|creative)/, ''));
}

export const areOwnAds = (columns: readonly string[]): boolean =>
  columns.map(knownField).some((field) => field === 'headline' || field === 'body');

/** How the columns are understood, for people. The first of several columns for one field counts. */
export function columnsText(columns: readonly string[]): string {
  const fields = columns.map(knownField);
  const isUsed = (at: number) => fields[at] !== undefined && fields.indexOf(fields[at]) === at;
  const used = columns.flatMap((column, at) => (isUsed(at) ? `${fields[at]} ← ${column}` : []));
  const others = columns.filter((column, at) => column !== '' && !isUsed(at));
  const text = [used.join(', '), ...(others.length > 0 ? [`not used: ${others.join(', ')}`] : [])].join('; ');
  return text.replace(/\p{C}/gu, ' ').slice(0, 2000);
}

const dates = ['startedAt', 'lastSeenAt', 'endDate'];
const numbers = ['duplicates', 'audienceReach', 'adSpendMin', 'adSpendMax'];
const lists = ['countries', 'languages', 'publisherPlatform'];

/** Days as people write them, with the year at the end. */
const writtenDay = /^(\d{1,2})([./-])(\d{1,2})\2(\d{4})$/;

/**
 * What each row of a CSV becomes. With dots the day comes first; otherwise a day above 12 somewhere in the column tells.
 * Without a UUID of its own, the ad gets an id made from its content: the same advertiser, start, headline and body are
 * the same ad, and a changed text is another.
 * @throws Error where the days of a column may be months, or naming the field of a row that cannot be read
 */
export function adReader(columns: readonly string[], rows: readonly string[][]): (cells: readonly string[]) => unknown {
  const fields = columns.map((column) => knownField(column) ?? column);
  const monthFirst = new Set<string>();
  for (const [at, field] of fields.entries()) {
    if (!dates.includes(field)) continue;
    const unclear = rows
      .map((cells) => writtenDay.exec(cells[at]?.trim() ?? ''))
      .filter((day) => day && day[2] !== '.');
    if (unclear.length === 0) continue;
    const [isDayFirst, isMonthFirst] = [1, 3].map((part) => unclear.some((day) => Number(day?.[part]) > 12));
    if (isDayFirst === isMonthFirst)
      throw new Error(
        `the column ${quoted(columns[at])} has days such as ${unclear[0]?.[0]}, which may be a day or a month first: write them as 2026-01-31 and import the file again`,
      );
    if (isMonthFirst) monthFirst.add(field);
  }
  return (cells) => {
    const row = Object.fromEntries(
      fields.map((field, index) => [field, cells[index]?.trim() ?? ''] as const).toReversed(),
    );
    const { id = '', pageName = '', pageId = '', picture, ...given } = row;
    const ad: Record<string, unknown> = {};
    for (const [field, cell] of Object.entries(given))
      if (cell !== '') ad[field] = fieldValue(field, cell, monthFirst.has(field));
    const { headline = '', body = '', startedAt = '' } = ad;
    if (headline === '' && body === '') throw new Error('neither headline nor body; an ad has words');
    const madeOf = id === '' ? [pageName, startedAt, headline, body] : [id];
    return {
      ...ad,
      id: isUuid(id) ? id.toLowerCase() : uuidOf(JSON.stringify(madeOf)),
      ...(pageName && { page: { pageName } }),
      ...((pageId || pageName) && { pageId: pageId || uuidOf(JSON.stringify(['page', pageName])) }),
      ...(picture && { media: [{ type: 'THUMB', url: picture, nr: 0 }] }),
    };
  };
}

function fieldValue(field: string, cell: string, isMonthFirst: boolean): unknown {
  if (dates.includes(field)) {
    const [, first = '', , second = '', year = ''] = writtenDay.exec(cell) ?? [];
    const [day, month] = isMonthFirst ? [second, first] : [first, second];
    const iso = year === '' ? cell : `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`;
    const [date = ''] = /^\d{4}-\d{2}-\d{2}/.exec(iso) ?? [];
    const [time, dayTime] = [timeOf(iso), timeOf(date)];
    // JavaScript reads 30 February as 2 March.
    const isDay = dayTime !== undefined && new Date(dayTime).toISOString().startsWith(date);
    if (time === undefined || !isDay) throw new Error(`${field}: ${quoted(cell)} is no date such as 2026-01-31`);
    return new Date(time).toISOString();
  }
  if (numbers.includes(field)) {
    const number = Number(cell);
    if (!Number.isFinite(number)) throw new Error(`${field}: ${quoted(cell)} is no number such as 1200 or 0.5`);
    return number;
  }
  if (!lists.includes(field)) return cell;
  const all = cell.split(/[,;|]/).flatMap((one) => one.trim() || []);
  if (field === 'countries') return [...new Set(all.map(countryCode))];
  return field === 'languages' ? all.map((one) => one.toLowerCase()) : all.map((one) => one.toUpperCase());
}

let codes: Map<string, string> | undefined;

/** The ISO 3166 code of a country that is given by its code, or by its name in a common language. */
function countryCode(country: string): string {
  if (/^[a-z]{2}$/i.test(country)) return new Intl.Locale(`und-${country}`).region ?? country.toUpperCase();
  codes ??= codesByName();
  const code = codes.get(country.toLowerCase());
  if (code === undefined)
    throw new Error(`countries: ${quoted(country)} is no country such as DE or Germany; use its code of two letters`);
  return code;
}

function codesByName(): Map<string, string> {
  const letters = Array.from({ length: 26 }, (_, at) => String.fromCharCode(65 + at));
  const all = letters.flatMap((first) => letters.map((second) => first + second));
  // Without those that another code has replaced.
  const current = all.filter((code) => new Intl.Locale(`und-${code}`).region === code);
  const named = new Map([['usa', 'US']]);
  for (const language of ['en', 'de', 'fr', 'es', 'it', 'pt', 'nl']) {
    const names = new Intl.DisplayNames([language], { type: 'region', fallback: 'none' });
    for (const code of current) named.set((names.of(code) ?? code).toLowerCase(), code);
  }
  return named;
}
