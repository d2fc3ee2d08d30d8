import { LRUCache } from 'lru-cache';
import type { ListPage } from './paging.ts';

interface View {
  name: string;
  page: ListPage;
  size: number;
}

/** Most characters of text and data that are kept, of all answers together. */
const MAX_CHARACTERS = 8 * 1024 * 1024;
/** Whoever reads an answer again reads it in one or two ways; more are made up. */
const MAX_VIEWS = 4;

/** Pages made of answers that are kept, so that an answer given again is not condensed again. */
export interface ViewMemo {
  /** The page of that name, of the kept answer with that id. */
  get(cacheId: number, name: string): ListPage | undefined;
  set(cacheId: number, name: string, page: ListPage): void;
  /** Characters held. */
  readonly size: number;
}

export function createViewMemo(maxCharacters = MAX_CHARACTERS): ViewMemo {
  const answers = new LRUCache<number, readonly View[]>({
    maxSize: maxCharacters,
    sizeCalculation: (views) => views.reduce((sum, { size }) => sum + size, 0),
  });
  return {
    get: (cacheId, name) => answers.get(cacheId)?.find((view) => view.name === name)?.page,
    set: (cacheId, name, page) => {
      const size = name.length + page.text.length + JSON.stringify(page.data).length;
      answers.set(cacheId, [{ name, page, size }, ...(answers.get(cacheId) ?? [])].slice(0, MAX_VIEWS));
    },
    get size() {
      return answers.calculatedSize;
    },
  };
}
