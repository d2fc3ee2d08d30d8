import { afterAll, expect, test, vi } from 'vitest';
import type { BoardPicture, BoardPictures } from '../../src/board/payload.ts';

/** A reader brings frames into sight. */
let look: (entries: { isIntersecting: boolean; target: object }[]) => void = () => {};
const observed = new Set<object>();
class Observer {
  constructor(callback: typeof look) {
    look = callback;
  }
  observe = (frame: object) => observed.add(frame);
  unobserve = (frame: object) => observed.delete(frame);
}
vi.stubGlobal('document', {});
vi.stubGlobal('IntersectionObserver', Observer);
afterAll(() => {
  vi.unstubAllGlobals();
});

/** Its types are those of a browser. */
const module = new URL('../../src/board/view/pictures.tsx', import.meta.url).href;
const { createPictures } = (await import(module)) as {
  createPictures(server: { pictures(ids: string[]): Promise<BoardPictures> }): {
    watch(id: string, frame: object, show: (picture: BoardPicture) => void): () => void;
  };
};

const comeIntoSight = async () => {
  look([...observed].map((target) => ({ isIntersecting: true, target })));
  await new Promise(setImmediate);
};

const src = 'data:image/jpeg;base64,AAAA';
const unanswered: Record<string, (ids: string[]) => BoardPictures> = {
  'that fails': () => {
    throw new Error('Time is up');
  },
  'that is late': (ids) => ({ pictures: ids.map((id) => ({ id, reason: 'no time', isLate: true })), left: [] }),
  'that brings nothing': (ids) => ({ pictures: [], left: ids }),
};

test.for(Object.entries(unanswered))(
  'the pictures of a call %s are asked for again when they next come into sight',
  async ([, unable]) => {
    observed.clear();
    const calls: string[][] = [];
    const pictures = createPictures({
      pictures: async (ids) => {
        calls.push(ids);
        if (calls.length === 1) return unable(ids);
        return { pictures: ids.map((id) => (id === 'none' ? { id, reason: 'no picture' } : { id, src })), left: [] };
      },
    });
    const shown: BoardPicture[] = [];
    const stops = ['ad', 'none'].map((id) => pictures.watch(id, {}, (picture) => shown.push(picture)));
    for (let times = 0; times < 3; times++) await comeIntoSight();
    expect(calls.map((ids) => ids.toSorted())).toEqual([
      ['ad', 'none'],
      ['ad', 'none'],
    ]);
    expect(shown.toSorted((one, other) => one.id.localeCompare(other.id))).toEqual([
      { id: 'ad', src },
      { id: 'none', reason: 'no picture' },
    ]);
    for (const stop of stops) stop();
    expect(observed.size).toBe(0);
  },
);
