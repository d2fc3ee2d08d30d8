import type { BoardAd, BoardContext } from '../payload.ts';
import type { Message } from './host.ts';
import { boardMeta } from './server.ts';

/** What a tool's result says to the board; of a host that drops that part, what its data says. */
export function contextOf(result: Message): BoardContext {
  const context = boardMeta(result);
  if (context.tool !== undefined) return context;
  const { gathering, itemType } = dataOf(result);
  const ids = listed(result).map(({ id }) => String(id));
  return { ids, ...(typeof gathering === 'string' && { gathering }), ...(itemType === 'pages' && { isPages: true }) };
}

/** The fields of a list that the board shows, with their types. */
const fields: Partial<Record<keyof BoardAd, 'string' | 'number'>> = {
  pageName: 'string',
  headline: 'string',
  body: 'string',
  startedAt: 'string',
  lastSeenAt: 'string',
  endDate: 'string',
  daysRunning: 'number',
  displayFormat: 'string',
  creative: 'string',
  ctaType: 'string',
  duplicates: 'number',
  audienceReach: 'number',
  landingDomain: 'string',
};

/** Ads as a result lists them: all there is of those that the server does not give, as after a restart. */
export function adsIn(result: Message): BoardAd[] {
  return listed(result).map((item) => {
    const known = { ...item, lastSeenAt: item.lastSeenAt ?? item.lastSeen } as Message;
    const kept = Object.entries(fields).filter(([name, type]) => typeof known[name] === type);
    const ad: BoardAd = { id: String(item.id), ...Object.fromEntries(kept.map(([name]) => [name, known[name]])) };
    const firstLine = ad.body?.split('\n', 1)[0];
    const { stillRunning: active, countries } = item;
    return {
      ...ad,
      ...(firstLine && { firstLine }),
      ...(typeof active === 'boolean' && { active }),
      ...(Array.isArray(countries) && { countries: countries.map(String) }),
    };
  });
}

const dataOf = ({ structuredContent }: Message): Message => (structuredContent as Message | undefined) ?? {};

function listed(result: Message): Message[] {
  const { items, tiles, itemType } = dataOf(result);
  const all = Array.isArray(items) && itemType !== 'pages' ? items : Array.isArray(tiles) ? tiles : [];
  return all.filter((item) => typeof item?.id === 'string');
}
