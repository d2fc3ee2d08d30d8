import type { ItemType } from '../../api/schemas.ts';
import type { RecordStore } from '../database/records.ts';
import type { StoredPictures } from '../import/stored-pictures.ts';

/** The beginnings of the URLs under which a library serves its pages (`app`) and its pictures (`media`). */
export interface LibraryBaseUrls {
  app: string;
  media: string;
}

/** Reads stored records in the form in which the API sends them. */
export type Presenter = ReturnType<typeof createPresenter>;

/** The most characters of a text that may be the URL of a picture. */
const maxUrlLength = 8000;
const isUrl = (text: string): boolean => text.length <= maxUrlLength && /^https?:/.test(text);

/**
 * Creates the presenter of a library. Records are sent as they were imported, with two exceptions: URLs replace the
 * document's placeholders `{app_url}` and `{media_url}` at the start of a text, and the library's own URL replaces the URL
 * of each picture that the library stores.
 */
export function createPresenter(
  { records, pictures }: { records: RecordStore; pictures: StoredPictures },
  { app, media }: LibraryBaseUrls,
) {
  function readItems(itemType: ItemType, rowNumbers: number[]): Record<string, unknown>[] {
    const items = records.readJson(itemType, rowNumbers).map((json): Record<string, unknown> => JSON.parse(json));
    const urls = new Set<string>();
    replaceTexts(items, (text) => {
      if (isUrl(text)) urls.add(text);
      if (text.startsWith('{app_url}')) return app + text.slice('{app_url}'.length);
      return text.startsWith('{media_url}') ? media + text.slice('{media_url}'.length) : text;
    });
    const filesByUrl = pictures.findFiles(urls);
    if (filesByUrl.size > 0)
      replaceTexts(items, (text) => {
        const file = filesByUrl.get(text);
        return file === undefined ? text : `${media}/kept/${file}`;
      });
    return items;
  }

  return {
    /** Returns the records with the given row numbers, in their order. */
    readItems,
    /** Returns records with `appUrl`, which the document shows on list items only. */
    listItems: (itemType: ItemType, rowNumbers: number[]): unknown[] =>
      readItems(itemType, rowNumbers).map((item) => {
        const id = String(itemType === 'ads' ? item.id : item.pageId);
        return { ...item, appUrl: item.appUrl ?? `${app}/${itemType}/${encodeURIComponent(id)}` };
      }),
  };
}

/** Replaces each text in a value that was parsed from JSON. The names of its keys stay. */
function replaceTexts(value: object, replace: (text: string) => string): void {
  const entries = value as Record<string, unknown>;
  for (const key of Object.keys(entries)) {
    const child = entries[key];
    if (typeof child === 'string') entries[key] = replace(child);
    else if (typeof child === 'object' && child !== null) replaceTexts(child, replace);
  }
}
