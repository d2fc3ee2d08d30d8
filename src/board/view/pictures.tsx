import { useEffect, useRef, useState } from 'preact/hooks';
import { buildCardAd, PictureFrame } from '../../ui/ad-card.tsx';
import type { Formats } from '../../ui/formats.ts';
import type { BoardPicture, BriefAd } from '../payload.ts';
import type { Server } from './host.ts';

/** Pictures requested for in one call, and calls in flight at once. */
const perCall = 12;
const maxCalls = 2;

type Show = (picture: BoardPicture) => void;

export type Pictures = ReturnType<typeof createPictures>;

/** The frames that came into sight last go first, because a reader has scrolled past the others. */
export function createPictures(server: Pick<Server, 'pictures'>) {
  const cached = new Map<string, BoardPicture>();
  const frames = new Map<Element, { id: string; show: Show }>();
  const requested = new Set<string>();
  let waiting: string[] = [];
  let calls = 0;

  const askNext = async (): Promise<void> => {
    if (calls >= maxCalls || waiting.length === 0) return;
    const ids = waiting.slice(-perCall).reverse();
    waiting = waiting.slice(0, -perCall);
    calls++;
    try {
      const { pictures, left } = await server.pictures(ids);
      for (const picture of pictures) {
        if (picture.isLate) requested.delete(picture.id);
        else cached.set(picture.id, picture);
      }
      for (const { id, show } of frames.values()) {
        const picture = ids.includes(id) && cached.get(id);
        if (picture) show(picture);
      }
      if (pictures.length === 0) throw new Error('The same call would be made for ever.');
      waiting.push(...left.toReversed());
    } catch {
      for (const id of ids) requested.delete(id);
    }
    calls--;
    void askNext();
  };
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        const id = frames.get(target)?.id;
        if (!isIntersecting || id === undefined || cached.has(id) || requested.has(id)) continue;
        requested.add(id);
        waiting.push(id);
      }
      for (let call = 0; call < maxCalls; call++) void askNext();
    },
    { root: document, rootMargin: '300px' },
  );
  return {
    get: (id: string) => cached.get(id),
    /** Shows the picture of that id when it comes: it is requested for once its frame comes into sight. */
    watch: (id: string, frame: Element, show: Show) => {
      frames.set(frame, { id, show });
      observer.observe(frame);
      return () => {
        frames.delete(frame);
        observer.unobserve(frame);
      };
    },
  };
}

interface LaterFrameProps {
  ad: BriefAd;
  view: { pictures: Pictures; state: { formats: Formats } };
  /** The number of one of its cards. */
  card?: number;
}

export function LaterFrame({ ad, view: { pictures, state }, card }: LaterFrameProps) {
  const id = card === undefined ? ad.id : `${ad.id}#${card}`;
  const box = useRef<HTMLDivElement>(null);
  const [picture, show] = useState(pictures.get(id));
  useEffect(
    () => (box.current && picture === undefined ? pictures.watch(id, box.current, show) : undefined),
    [id, picture === undefined],
  );
  const src = picture?.src?.startsWith('data:image/jpeg;base64,') ? picture.src : undefined;
  const shown = picture && (src ? { src } : { reason: picture.reason ?? 'it did not come' });
  return (
    <div class="picture" ref={box}>
      <PictureFrame ad={{ ...buildCardAd(ad), picture: shown }} formats={state.formats} />
    </div>
  );
}
