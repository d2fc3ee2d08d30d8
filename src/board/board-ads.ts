import { setImmediate } from 'node:timers/promises';
import * as z from 'zod';
import { invalidRequest } from '../api/errors.ts';
import { isoTime } from '../dataset/cells.ts';
import { adIdsOf, foundBy, isComplete } from '../dataset/gatherings.ts';
import { count } from '../present/list-text.ts';
import { type DatasetContents, type Gathering, idKey } from '../state/dataset.ts';
import { defineTool, readOnly } from '../tools/define-tool.ts';
import { boardAd } from './board-ad.ts';
import type { BoardAd, BoardAds, BoardGathering } from './payload.ts';

/** Bytes of one call: hosts pass a result through several windows. */
const maxBytes = 500_000;
/** What a person can look through, and a browser can filter at once. */
const maxAds = 2000;
/** Ids that are not known are sent back. */
const maxIdLength = 200;
/** The tools that the view calls besides those that only it calls. */
const viewTools = ['search_ads', 'list_collections', 'add_collection_item'];

export const boardAds = defineTool({
  name: 'board_ads',
  title: 'Ads for the board',
  description: 'Only the board calls it.',
  annotations: { ...readOnly, openWorldHint: false },
  operations: [],
  onlyForBoard: true,
  input: z.strictObject({
    gathering: z.string().max(maxIdLength).optional(),
    ids: z.array(z.string().max(maxIdLength)).max(maxAds).optional(),
  }),
  output: z.looseObject({}),
  async run({ gathering: id, ids = [] }, { dataset, now, offers }): Promise<BoardAds> {
    const contents = await (await dataset()).contents();
    const gathering = id === undefined ? undefined : gatheringOf(id, contents);
    const wanted = gathering === undefined ? ids.map(idKey) : [...adIdsOf(gathering, contents)];
    return {
      asOf: isoTime(now),
      offered: viewTools.filter(offers),
      ...(gathering && { gathering: viewGathering(gathering, contents) }),
      ...(await adsThatFit([...new Set(wanted)].slice(0, maxAds), contents)),
    };
  },
  render: ({ ads, left }) => `${count(ads.length, 'ad')} for the board, ${left.length} more to come.`,
});

function gatheringOf(id: string, { gatherings }: DatasetContents): Gathering {
  const gathering = gatherings.find((candidate) => candidate.id === id);
  if (gathering !== undefined) return gathering;
  throw invalidRequest(
    'There is no such gathering. It was removed to make room, or belongs to another key. gather_ads makes it again.',
  );
}

const viewGathering = (gathering: Gathering, contents: DatasetContents): BoardGathering => ({
  id: gathering.id,
  found: foundBy(gathering, contents),
  read: adIdsOf(gathering, contents).size,
  complete: isComplete(gathering, contents),
  gatheredAt: isoTime(gathering.gatheredAt),
});

/** As many of the ads as fit into a call, in the order asked for. */
async function adsThatFit(
  wanted: readonly string[],
  contents: DatasetContents,
): Promise<Pick<BoardAds, 'ads' | 'left' | 'missing'>> {
  const keys = new Set(wanted);
  const stored = new Map(contents.ads.map((item) => [idKey(item.id), item] as const).filter(([key]) => keys.has(key)));
  const known = wanted.flatMap((key) => stored.get(key) ?? []);
  const ads: BoardAd[] = [];
  let room = maxBytes - known.length * 40;
  for (const item of known) {
    const ad = boardAd(item);
    room -= Buffer.byteLength(JSON.stringify(ad));
    if (room < 0 && ads.length > 0) break;
    ads.push(ad);
    // Others get their turn in between.
    if (ads.length % 50 === 0) await setImmediate();
  }
  return {
    ads,
    left: known.slice(ads.length).map(({ id }) => id),
    missing: wanted.filter((key) => !stored.has(key)),
  };
}
