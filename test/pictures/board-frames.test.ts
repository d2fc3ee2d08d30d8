import { afterAll, expect, test, vi } from 'vitest';
import type { BoardPictures } from '../../src/board/payload.ts';

/** As much of a browser as a frame needs: a reader brings frames into sight. */
class Frame {
  dataset: { id?: string } = {};
  src: string | undefined;
  images: Frame[] = [];
  style = { setProperty: () => {} };
  setAttribute(name: string, value: string) {
    if (name === 'data-id') this.dataset.id = value;
    if (name === 'src') this.src = value;
  }
  append = (...children: Frame[]) => this.images.push(...children.filter(({ src }) => src !== undefined));
  matches = () => this.images.length > 0;
  classList = { add: () => {} };
  addEventListener = () => {};
}

let look: (entries: { isIntersecting: boolean; target: Frame }[]) => void = () => {};
const observed = new Set<Frame>();
class Observer {
  constructor(callback: typeof look) {
    look = callback;
  }
  observe = (frame: Frame) => observed.add(frame);
  unobserve = (frame: Frame) => observed.delete(frame);
}
vi.stubGlobal('document', { createElement: () => new Frame() });
vi.stubGlobal('IntersectionObserver', Observer);
afterAll(() => {
  vi.unstubAllGlobals();
});

/** Its types are those of a browser. */
const module = new URL('../../src/board/view/pictures.ts', import.meta.url).href;
const { createPictures } = (await import(module)) as {
  createPictures(server: { pictures(ids: string[]): Promise<BoardPictures> }): { frame(id: string): Frame };
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
    const frames = ['ad', 'none'].map((id) => pictures.frame(id));
    for (let times = 0; times < 3; times++) await comeIntoSight();
    expect(calls.map((ids) => ids.toSorted())).toEqual([
      ['ad', 'none'],
      ['ad', 'none'],
    ]);
    expect(frames.map(({ images }) => images.length)).toEqual([1, 0]);
    expect(observed.size).toBe(0);
  },
);
