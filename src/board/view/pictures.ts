import type { BoardPicture } from '../payload.ts';
import { el } from './elements.ts';
import type { Server } from './host.ts';
import { day } from './words.ts';

/** Pictures asked for in one call, and calls in flight at once. */
const perCall = 12;
const maxCalls = 2;

export interface Pictures {
  /** A frame that fills with the picture of that id when it comes into sight, or says why there is none. */
  frame(id: string, hue: number, initial: string): HTMLElement;
}

/**
 * Asks for pictures a few at a time. The frames that came into sight last go first, because a reader has scrolled past
 * the others. A picture of a call that failed is asked for again when its frame next comes into sight.
 */
export function createPictures(server: Pick<Server, 'pictures'>): Pictures {
  const known = new Map<string, BoardPicture>();
  const frames = new Map<string, Set<HTMLElement>>();
  let waiting: string[] = [];
  let calls = 0;

  const show = (picture: BoardPicture) => {
    known.set(picture.id, picture);
    for (const frame of frames.get(picture.id) ?? []) {
      observer.unobserve(frame);
      fill(frame, picture);
    }
    frames.delete(picture.id);
  };
  const askNext = async (): Promise<void> => {
    if (calls >= maxCalls || waiting.length === 0) return;
    const ids = waiting.slice(-perCall).reverse();
    waiting = waiting.slice(0, -perCall);
    calls++;
    try {
      const { pictures, left } = await server.pictures(ids);
      for (const picture of pictures) {
        if (picture.isLate) frames.delete(picture.id);
        else show(picture);
      }
      if (pictures.length === 0) throw new Error('The same call would be made for ever.');
      waiting.push(...left.toReversed());
    } catch {
      for (const id of ids) frames.delete(id);
    }
    calls--;
    void askNext();
  };
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        const frame = target as HTMLElement;
        const { id = '' } = frame.dataset;
        if (!known.has(id) && !frames.has(id)) waiting.push(id);
        frames.set(id, (frames.get(id) ?? new Set()).add(frame));
        const picture = known.get(id);
        if (picture) show(picture);
      }
      for (let call = 0; call < maxCalls; call++) void askNext();
    },
    { root: document, rootMargin: '300px' },
  );
  return {
    frame: (id, hue, initial) => {
      const frame = el('div', { class: 'frame', 'data-id': id }, el('span', { 'aria-hidden': 'true' }, initial));
      frame.style.setProperty('--hue', String(hue));
      observer.observe(frame);
      return frame;
    },
  };
}

function fill(frame: HTMLElement, { src, reason = 'it did not come' }: BoardPicture): void {
  if (frame.matches('.none, :has(img)')) return;
  if (src?.startsWith('data:image/jpeg;base64,')) {
    const image = el('img', { alt: '', src });
    image.addEventListener('load', () => frame.classList.add('filled'), { once: true });
    frame.append(image);
    return;
  }
  frame.classList.add('none');
  const why = reason === 'the ad has no picture' ? '' : `: ${reason.replace(/\b\d{4}-\d\d-\d\d\b/, day)}`;
  frame.append(el('small', {}, `No picture${why}.`));
}
