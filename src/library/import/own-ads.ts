import { timeOf } from '../../present/dates.ts';
import { isUuid, quoted, uuidOf } from '../service/request.ts';

/**
 * Ads that somebody wrote down, as rows of a CSV: which field a column is, by its header in lower case without spaces.
 * A column of another name is stored under that name.
 */
const columnNames: Readonly<Record<string, readonly string[]>> = {
  id: ['id', 'adid'],
  pageId: ['pageid', 'advertiserid'],
  pageName: ['advertiser', 'page', 'pagename', 'brand', 'company', 'account'],
  headline: ['headline', 'title'],
  body: ['body', 'text', 'copy', 'primarytext', 'adtext', 'message'],
  linkDescription: ['linkdescription', 'description'],
  offerLink: ['offerlink', 'link', 'url', 'landingpage', 'destination'],
  ctaType: ['ctatype', 'cta', 'calltoaction'],
  displayFormat: ['displayformat', 'format'],
  startedAt: ['startedat', 'started', 'start', 'startdate', 'firstseen', 'date'],
  lastSeenAt: ['lastseenat', 'lastseen'],
  endDate: ['enddate', 'ended', 'end'],
  countries: ['countries', 'country'],
  languages: ['languages', 'language'],
  publisherPlatform: ['publisherplatform', 'publisherplatforms', 'platforms', 'platform'],
  duplicates: ['duplicates', 'copies'],
  audienceReach: ['audiencereach', 'reach'],
  adSpendMin: ['adspendmin', 'spendmin'],
  adSpendMax: ['adspendmax', 'spendmax', 'spend'],
  currency: ['currency'],
  picture: ['picture', 'image', 'imageurl', 'pictureurl'],
};

const fieldOf = new Map(Object.entries(columnNames).flatMap(([field, names]) => names.map((name) => [name, field])));

/** The field of each column; undefined where the columns are not those of ads that somebody wrote down. */
export function ownFields(columns: readonly string[]): string[] | undefined {
  const fields = columns.map((column) => fieldOf.get(column.toLowerCase().replace(/[\s_-]/g, '')) ?? column);
  return fields.includes('headline') || fields.includes('body') ? fields : undefined;
}

const dates = ['startedAt', 'lastSeenAt', 'endDate'];
const numbers = ['duplicates', 'audienceReach', 'adSpendMin', 'adSpendMax'];
const lists = ['countries', 'languages', 'publisherPlatform'];

/**
 * An ad of the API. Without a UUID of its own, the ad gets an id made from its content: the same advertiser, start,
 * headline and body are the same ad, and a changed text is another.
 * @throws Error that names the field that cannot be read
 */
export function adOfRow(fields: readonly string[], cells: readonly string[]): Record<string, unknown> {
  const row = Object.fromEntries(
    fields.map((field, index) => [field, cells[index]?.trim() ?? ''] as const).toReversed(),
  );
  const { id = '', pageName = '', pageId = '', picture, ...given } = row;
  const ad: Record<string, unknown> = {};
  for (const [field, cell] of Object.entries(given)) if (cell !== '') ad[field] = fieldValue(field, cell);
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
}

function fieldValue(field: string, cell: string): unknown {
  if (dates.includes(field)) {
    const [day = ''] = /^\d{4}-\d{2}-\d{2}/.exec(cell) ?? [];
    const [time, dayTime] = [timeOf(cell), timeOf(day)];
    // JavaScript reads 30 February as 2 March.
    const isDay = dayTime !== undefined && new Date(dayTime).toISOString().startsWith(day);
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
  return field === 'languages' ? all.map((one) => one.toLowerCase()) : all.map((one) => one.toUpperCase());
}
