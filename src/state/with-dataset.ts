import type { ItemType } from '../api/item-type.ts';
import { AdAnswer } from '../api/response-schemas.ts';
import { type Answer, type Call, gatedOnly, replayed, type Send } from '../api/send.ts';
import type { Datasets } from './dataset.ts';
import { objectOf } from './item-history.ts';

export interface DatasetOptions {
  datasets: Datasets;
  now: () => number;
  /** Receives what went wrong while an answer was added. The answer is returned all the same: it was paid for. */
  onError(error: unknown): void;
}

/** Gives every answer its place among all that came, which it keeps wherever it is kept. */
export function withOrder(send: Send, { datasets, onError }: Omit<DatasetOptions, 'now'>): Send {
  return gatedOnly(send, async (call) => {
    const answer = await send(call);
    try {
      return { ...answer, order: await (await datasets.of(call, { toAdd: true })).order() };
    } catch (error) {
      onError(error);
      return answer;
    }
  });
}

/** Adds the ads and pages of every answer that the service sent to the caller's dataset. */
export function withDataset(send: Send, { datasets, now, onError }: DatasetOptions): Send {
  const sendAndAdd: Send = async (call) => {
    const answer = await send(call);
    const { type, items } = itemsIn(call, answer);
    try {
      const dataset = await datasets.of(call, { toAdd: true });
      const { order, receipt } = answer;
      const { requestId, age = 0 } = receipt;
      await dataset.addItems({ type, items, at: now() - age, order, listedBy: call.operation.name, requestId });
    } catch (error) {
      onError(error);
    }
    return answer;
  };
  return gatedOnly(send, (call) => (call.around ? call.around(() => sendAndAdd(call)) : sendAndAdd(call)));
}

/**
 * Answers `getAd` with the ad as the dataset has it, if the caller asks for that.
 *
 * Only then: list items and `getAd` share one schema in the document, but every key except `id` may be absent, and
 * nothing says that a list item is as complete as the answer of `getAd`. So the result states the age and the source of
 * the copy.
 */
export function withSeenAds(send: Send, { datasets, now }: Pick<DatasetOptions, 'datasets' | 'now'>): Send {
  return async (call) => {
    if (!call.seen || call.fresh || call.operation.name !== 'getAd') return send(call);
    const item = await (await datasets.of(call)).item('ads', call.path.adId ?? '');
    if (item === undefined) return send(call);
    const raw = objectOf(item);
    const receipt = { charged: null, remaining: null, cached: true, requestId: item.requestId };
    const answer = { raw, value: AdAnswer.parse(raw), receipt, seenIn: item.listedBy };
    return replayed(answer, Math.max(0, now() - item.at));
  };
}

function itemsIn({ operation: { name }, query }: Call, { raw }: Answer): { type: ItemType; items: readonly unknown[] } {
  const isPages = name === 'searchPages' || name === 'getPage' || query.itemType === 'pages';
  const isOne = name === 'getAd' || name === 'getPage';
  return { type: isPages ? 'pages' : 'ads', items: isOne ? [raw] : (raw as { items: readonly unknown[] }).items };
}
