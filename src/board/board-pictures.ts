import * as z from 'zod';
import { withDeadline } from '../api/abort.ts';
import type { Pictures } from '../pictures/pictures.ts';
import { pictureOf } from '../present/ad-picture.ts';
import { count } from '../present/list-text.ts';
import type { Dataset } from '../state/dataset.ts';
import { objectOf } from '../state/item-history.ts';
import { defineTool, readOnly } from '../tools/define-tool.ts';
import type { BoardPicture, BoardPictures } from './payload.ts';

/** Pixels of a card on a dense screen. */
const side = 400;
/** Bytes of one call, as with ads. */
const maxBytes = 500_000;
const maxPictures = 24;
const maxIdLength = 220;

export const boardPictures = defineTool({
  name: 'board_pictures',
  title: 'Pictures for the board',
  description: 'Only the board calls it.',
  annotations: readOnly,
  operations: [],
  onlyForBoard: true,
  input: z.strictObject({ ids: z.array(z.string().max(maxIdLength)).min(1).max(maxPictures) }),
  output: z.looseObject({}),
  async run({ ids }, { now, signal, deadline, clock, ...context }): Promise<BoardPictures> {
    const [dataset, pictures] = [await context.dataset(), await context.pictures()];
    // One slow picture must not take all others of the call with it.
    const ms = (deadline - clock()) / 2;
    const all = await withDeadline({ signals: [signal], ms }, (timeUp) =>
      Promise.all([...new Set(ids)].map((id) => boardPicture(id, { dataset, pictures, now, signal, timeUp }))),
    );
    return thatFit(all);
  },
  render: ({ pictures, left }) => `${count(pictures.length, 'picture')} for the board, ${left.length} more to come.`,
});

interface PictureSource {
  dataset: Dataset;
  pictures: Pictures;
  now: number;
  signal: AbortSignal;
  /** Aborts when there is no more time for pictures. */
  timeUp: AbortSignal;
}

const idAndCard = /^([^#]*)(?:#([1-9]\d{0,3}))?$/;

/** @param id of an ad, with `#2` at its end for its second card */
async function boardPicture(id: string, source: PictureSource): Promise<BoardPicture> {
  const { dataset, pictures, now, signal, timeUp } = source;
  const [found, adId = '', card] = idAndCard.exec(id) ?? [];
  if (found === undefined) return { id, reason: 'what follows # is not the number of a card, from 1 to 9999' };
  const item = await dataset.item('ads', adId);
  if (item === undefined) return { id, reason: 'the ad is not in the dataset' };
  const picture = pictureOf(objectOf(item), { now, ...(card && { card: Number(card) }) });
  const shown = 'reason' in picture ? picture : await pictures.thumbnail(picture.address, { side, signal, timeUp });
  if ('reason' in shown) return { id, ...shown };
  return { id, src: `data:image/jpeg;base64,${Buffer.from(shown.jpeg).toString('base64')}` };
}

function thatFit(all: readonly BoardPicture[]): BoardPictures {
  const pictures: BoardPicture[] = [];
  let room = maxBytes;
  for (const picture of all) {
    room -= JSON.stringify(picture).length;
    if (room < 0 && pictures.length > 0) break;
    pictures.push(picture);
  }
  return { pictures, left: all.slice(pictures.length).map(({ id }) => id) };
}
