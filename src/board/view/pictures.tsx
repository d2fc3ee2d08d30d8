import { useEffect, useRef, useState } from 'preact/hooks';
import { buildAdCardContent, PictureFrame } from '../../ui/ad-card.tsx';
import type { Formatters } from '../../ui/formats.ts';
import type { BoardPicture, BriefAd } from '../payload.ts';
import { type ToolClient, ToolError } from './host.ts';

/** The maximum number of pictures that the board requests in one call. */
const maxPicturesPerCall = 12;
const maxConcurrentCalls = 2;
/** The maximum number of times that the board itself repeats the request for a missing picture. */
const maxRetries = 4;
/** The delay before the first retry, in milliseconds. The delay doubles with each further retry of the same picture. */
const firstRetryDelayMs = 2000;

type ShowPicture = (picture: BoardPicture) => void;

/** Loads the picture of an ad when the frame of the picture becomes visible. */
export type PictureLoader = ReturnType<typeof createPictureLoader>;

/**
 * Creates a loader for ad pictures. The loader starts with the pictures that became visible last, because the user may
 * have scrolled past the others.
 */
export function createPictureLoader(toolClient: Pick<ToolClient, 'readPictures'>) {
  const loadedPictures = new Map<string, BoardPicture>();
  const observedFrames = new Map<Element, { id: string; showPicture: ShowPicture }>();
  const requestedIds = new Set<string>();
  /** The number of failed requests for each picture. */
  const failureCounts = new Map<string, number>();
  let queuedIds: string[] = [];
  let runningCallCount = 0;

  /**
   * Allows further requests for pictures whose request failed. While a picture stays visible, the loader requests the
   * picture again after a delay, at most `maxRetries` times. The loader also requests the picture again each time the
   * user scrolls back to it.
   */
  const retryLater = (ids: readonly string[]): void => {
    for (const id of ids) {
      requestedIds.delete(id);
      const failureCount = (failureCounts.get(id) ?? 0) + 1;
      failureCounts.set(id, failureCount);
      if (failureCount <= maxRetries)
        setTimeout(() => observeFramesAgain(id), firstRetryDelayMs * 2 ** (failureCount - 1));
    }
  };

  const requestNextPictures = async (): Promise<void> => {
    if (runningCallCount >= maxConcurrentCalls || queuedIds.length === 0) return;
    const ids = queuedIds.slice(-maxPicturesPerCall).reverse();
    queuedIds = queuedIds.slice(0, -maxPicturesPerCall);
    runningCallCount++;
    try {
      const { pictures, left } = await toolClient.readPictures(ids);
      for (const picture of pictures) if (!picture.isLate) loadedPictures.set(picture.id, picture);
      for (const { id, showPicture } of observedFrames.values()) {
        const picture = ids.includes(id) && loadedPictures.get(id);
        if (picture) showPicture(picture);
      }
      // If the server returned no pictures, wait before the next call. Otherwise, the loader could repeat the same call
      // in an endless loop.
      const nextIds = pictures.length > 0 ? left : [];
      queuedIds.push(...nextIds.toReversed());
      retryLater(ids.filter((id) => !loadedPictures.has(id) && !nextIds.includes(id)));
    } catch (error) {
      // Repeat the call only if the server says that the call may succeed later. Any other error may mean that the user
      // did not allow the call, and the host would ask the user again for each retry.
      if (error instanceof ToolError && error.isRetryable) retryLater(ids);
      else for (const id of ids) requestedIds.delete(id);
    }
    runningCallCount--;
    void requestNextPictures();
  };
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        const id = observedFrames.get(target)?.id;
        if (!isIntersecting || id === undefined || loadedPictures.has(id) || requestedIds.has(id)) continue;
        requestedIds.add(id);
        // The loader takes ids from the end of the queue. Put retries at the start, so that new pictures come first.
        if (failureCounts.has(id)) queuedIds.unshift(id);
        else queuedIds.push(id);
      }
      for (let callIndex = 0; callIndex < maxConcurrentCalls; callIndex++) void requestNextPictures();
    },
    { root: document, rootMargin: '300px' },
  );
  /** Makes the observer report again whether the frames of a picture are visible. */
  const observeFramesAgain = (pictureId: string): void => {
    for (const [frame, { id }] of observedFrames) {
      if (id !== pictureId) continue;
      observer.unobserve(frame);
      observer.observe(frame);
    }
  };
  return {
    /** Returns the picture if it is already loaded, and otherwise undefined. */
    getPicture: (id: string) => loadedPictures.get(id),
    /**
     * Requests a picture as soon as `frame`, the element for the picture, becomes visible. Calls `showPicture` when the
     * picture arrives.
     * @returns a function that stops observing the element
     */
    observeFrame: (id: string, frame: Element, showPicture: ShowPicture) => {
      // The picture may have arrived between the drawing of the frame and this call.
      const loadedPicture = loadedPictures.get(id);
      if (loadedPicture) showPicture(loadedPicture);
      observedFrames.set(frame, { id, showPicture });
      observer.observe(frame);
      return () => {
        observedFrames.delete(frame);
        observer.unobserve(frame);
      };
    },
  };
}

interface LazyPictureProps {
  ad: BriefAd;
  board: { pictureLoader: PictureLoader; state: { formatters: Formatters } };
  /** The number of the carousel card whose picture is shown. If undefined, the picture of the ad itself is shown. */
  cardNumber?: number;
}

/** The picture of an ad or of one of its carousel cards. The picture is loaded when it becomes visible. */
export function LazyPicture({ ad, board: { pictureLoader, state }, cardNumber }: LazyPictureProps) {
  const pictureId = cardNumber === undefined ? ad.id : `${ad.id}#${cardNumber}`;
  const frameRef = useRef<HTMLDivElement>(null);
  const [picture, setPicture] = useState(pictureLoader.getPicture(pictureId));
  useEffect(
    () =>
      frameRef.current && picture === undefined
        ? pictureLoader.observeFrame(pictureId, frameRef.current, setPicture)
        : undefined,
    [pictureId, picture === undefined],
  );
  const src = picture?.src?.startsWith('data:image/jpeg;base64,') ? picture.src : undefined;
  const pictureOrReason = picture && (src ? { src } : { reason: picture.reason ?? 'it did not come' });
  return (
    <div class="picture" ref={frameRef}>
      <PictureFrame ad={{ ...buildAdCardContent(ad), picture: pictureOrReason }} formatters={state.formatters} />
    </div>
  );
}
