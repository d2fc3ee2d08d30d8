import { LRUCache } from 'lru-cache';
import type { ListPage } from './cut-page.ts';

interface View {
  name: string;
  page: ListPage;
  size: number;
}

/** Characters of text and data kept for all answers together. */
const MAX_CHARACTERS = 8 * 1024 * 1024;
/** Views of one answer: real callers use one or two. */
const MAX_VIEWS = 4;

/** Rendered pages of cached answers, so that an answer from the cache is not condensed again. */
export interface ViewMemo {
  /** The page of that name, made from the cached answer with that id; written if it is not held. */
  page(cacheId: string, name: string, write: () => ListPage): ListPage;
  /** Characters held. */
  readonly size: number;
}

export function createViewMemo(maxCharacters = MAX_CHARACTERS): ViewMemo {
  const answers = new LRUCache<string, readonly View[]>({
    maxSize: maxCharacters,
    sizeCalculation: (views) => views.reduce((sum, { size }) => sum + size, 0),
  });
  return {
    page(cacheId, name, write) {
      const views = answers.get(cacheId) ?? [];
      const held = views.find((view) => view.name === name);
      if (held) return held.page;
      const page = write();
      const size = name.length + page.text.length + JSON.stringify(page.data).length;
      answers.set(cacheId, [{ name, page, size }, ...views].slice(0, MAX_VIEWS));
      return page;
    },
    get size() {
      return answers.calculatedSize;
    },
  };
}
