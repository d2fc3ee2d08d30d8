import type { ItemType } from '../../api/schemas.ts';
import type { Records } from '../database/records.ts';
import type { StoredPictures } from '../import/stored-pictures.ts';

/** Where a library is reached: the start of the addresses of its pages and of its pictures. */
export interface LibraryBases {
  app: string;
  media: string;
}

export type Presenter = ReturnType<typeof presenterOf>;

/** Longer texts are no addresses of pictures. */
const maxAddress = 8000;
const isAddress = (text: string): boolean => text.length <= maxAddress && /^https?:/.test(text);

/**
 * Turns stored records into the objects that the API sends. Records are sent as they were written, with these exceptions:
 * the document's placeholders `{app_url}` and `{media_url}` at the start of a text are replaced by addresses, and so are
 * the addresses of pictures that the library stores.
 */
export function presenterOf(stored: { records: Records; pictures: StoredPictures }, { app, media }: LibraryBases) {
  function read(kind: ItemType, numbers: number[]): Record<string, unknown>[] {
    const items = stored.records.read(kind, numbers).map((json): Record<string, unknown> => JSON.parse(json));
    const addresses = new Set<string>();
    replaceTexts(items, (text) => {
      if (isAddress(text)) addresses.add(text);
      if (text.startsWith('{app_url}')) return app + text.slice('{app_url}'.length);
      return text.startsWith('{media_url}') ? media + text.slice('{media_url}'.length) : text;
    });
    const files = stored.pictures.findFiles(addresses);
    if (files.size > 0)
      replaceTexts(items, (text) => {
        const file = files.get(text);
        return file === undefined ? text : `${media}/kept/${file}`;
      });
    return items;
  }

  return {
    read,
    /** With `appUrl`, which the document shows on list items only. */
    list: (kind: ItemType, numbers: number[]): unknown[] =>
      read(kind, numbers).map((item) => ({
        ...item,
        appUrl: item.appUrl ?? `${app}/${kind}/${encodeURIComponent(String(kind === 'ads' ? item.id : item.pageId))}`,
      })),
  };
}

/** Replaces each text in a value that was parsed from JSON, except the names of keys. */
function replaceTexts(value: object, replace: (text: string) => string): void {
  const entries = value as Record<string, unknown>;
  for (const key of Object.keys(entries)) {
    const child = entries[key];
    if (typeof child === 'string') entries[key] = replace(child);
    else if (typeof child === 'object' && child !== null) replaceTexts(child, replace);
  }
}
