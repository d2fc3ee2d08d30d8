import { useEffect, useRef, useState } from 'preact/hooks';
import { buildCardAd, PictureFrame } from '../../ui/ad-card.tsx';
import type { Formats } from '../../ui/formats.ts';
import type { BoardPicture, BriefAd } from '../payload.ts';
import type { Server } from './host.ts';

/** The maximum number of pictures that the board requests in one call. */
const maxPicturesPerCall = 12;
const maxConcurrentCalls = 2;

type ShowPicture = (picture: BoardPicture) => void;

/** Loads pictures of ads when their place on the page becomes visible. */
export type PictureLoader = ReturnType<typeof createPictureLoader>;

/**
 * Creates a loader for ad pictures. The loader starts with the pictures that became visible last, because the user may
 * have scrolled past the others.
 */
export function createPictureLoader(server: Pick<Server, 'readPictures'>) {
  const loadedPictures = new Map<string, BoardPicture>();
  const watchedFrames = new Map<Element, { id: string; showPicture: ShowPicture }>();
  const requestedIds = new Set<string>();
  let queuedIds: string[] = [];
  let activeCallCount = 0;

  const requestNextPictures = async (): Promise<void> => {
    if (activeCallCount >= maxConcurrentCalls || queuedIds.length === 0) return;
    const ids = queuedIds.slice(-maxPicturesPerCall).reverse();
    queuedIds = queuedIds.slice(0, -maxPicturesPerCall);
    activeCallCount++;
    try {
      const { pictures, left } = await server.readPictures(ids);
      for (const picture of pictures) {
        if (picture.isLate) requestedIds.delete(picture.id);
        else loadedPictures.set(picture.id, picture);
      }
      for (const { id, showPicture } of watchedFrames.values()) {
        const picture = ids.includes(id) && loadedPictures.get(id);
        if (picture) showPicture(picture);
      }
      // Fail if the server returned no pictures, because the loader would otherwise repeat the same call forever.
      if (pictures.length === 0) throw new Error('The server returned none of these pictures.');
      queuedIds.push(...left.toReversed());
    } catch {
      for (const id of ids) requestedIds.delete(id);
    }
    activeCallCount--;
    void requestNextPictures();
  };
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        const id = watchedFrames.get(target)?.id;
        if (!isIntersecting || id === undefined || loadedPictures.has(id) || requestedIds.has(id)) continue;
        requestedIds.add(id);
        queuedIds.push(id);
      }
      for (let callIndex = 0; callIndex < maxConcurrentCalls; callIndex++) void requestNextPictures();
    },
    { root: document, rootMargin: '300px' },
  );
  return {
    /** Returns the picture if it is already loaded, and otherwise undefined. */
    getPicture: (id: string) => loadedPictures.get(id),
    /**
     * Requests a picture as soon as `frame`, the element for the picture, becomes visible. Calls `showPicture` when the
     * picture arrives.
     * @returns a function that stops watching the element
     */
    watchFrame: (id: string, frame: Element, showPicture: ShowPicture) => {
      watchedFrames.set(frame, { id, showPicture });
      observer.observe(frame);
      return () => {
        watchedFrames.delete(frame);
        observer.unobserve(frame);
      };
    },
  };
}

interface LazyPictureProps {
  ad: BriefAd;
  view: { pictureLoader: PictureLoader; state: { formats: Formats } };
  /** The number of the carousel card whose picture is shown. If undefined, the picture of the ad itself is shown. */
  cardNumber?: number;
}

/** The picture of an ad or of one of its carousel cards. The picture is loaded when it becomes visible. */
export function LazyPicture({ ad, view: { pictureLoader, state }, cardNumber }: LazyPictureProps) {
  const pictureId = cardNumber === undefined ? ad.id : `${ad.id}#${cardNumber}`;
  const frameRef = useRef<HTMLDivElement>(null);
  const [picture, setPicture] = useState(pictureLoader.getPicture(pictureId));
  useEffect(
    () =>
      frameRef.current && picture === undefined
        ? pictureLoader.watchFrame(pictureId, frameRef.current, setPicture)
        : undefined,
    [pictureId, picture === undefined],
  );
  const src = picture?.src?.startsWith('data:image/jpeg;base64,') ? picture.src : undefined;
  const cardPicture = picture && (src ? { src } : { reason: picture.reason ?? 'it did not come' });
  return (
    <div class="picture" ref={frameRef}>
      <PictureFrame ad={{ ...buildCardAd(ad), picture: cardPicture }} formats={state.formats} />
    </div>
  );
}
