import type { ItemType } from '../../api/schemas.ts';
import type { RecordStore } from '../database/records.ts';
import type { PictureStore } from '../import/stored-pictures.ts';

/** The base URLs of a library: `app` for its HTML pages, and `media` for its pictures. */
export interface LibraryBaseUrls {
  app: string;
  media: string;
}

/** Reads stored ads and advertiser pages, and converts them to the format of API responses. */
export type Presenter = ReturnType<typeof createPresenter>;

/**
 * The maximum length of a picture URL, in characters. The library does not look for a stored picture of a longer URL.
 */
const maxUrlLength = 8000;
const isPictureUrl = (text: string): boolean => text.length <= maxUrlLength && /^https?:/.test(text);

/**
 * Creates the presenter of a library, which returns records almost as they were imported. If the library has stored a
 * picture, the presenter replaces its URL with a URL of the library. It also replaces the placeholders `{app_url}` and
 * `{media_url}` at the start of a text with the base URLs.
 */
export function createPresenter(
  { recordStore, pictures }: { recordStore: RecordStore; pictures: PictureStore },
  { app, media }: LibraryBaseUrls,
) {
  function readItems(itemType: ItemType, rowNumbers: number[]): Record<string, unknown>[] {
    const items = recordStore.readJson(itemType, rowNumbers).map((json): Record<string, unknown> => JSON.parse(json));
    const urls = new Set<string>();
    replaceTexts(items, (text) => {
      if (isPictureUrl(text)) urls.add(text);
      if (text.startsWith('{app_url}')) return app + text.slice('{app_url}'.length);
      return text.startsWith('{media_url}') ? media + text.slice('{media_url}'.length) : text;
    });
    const fileNameByUrl = pictures.findFileNames(urls);
    if (fileNameByUrl.size > 0)
      replaceTexts(items, (text) => {
        const fileName = fileNameByUrl.get(text);
        return fileName === undefined ? text : `${media}/kept/${fileName}`;
      });
    return items;
  }

  return {
    /** Reads the records with these row numbers, and returns them in the same order. */
    readItems,
    /** Reads records for a list. Adds the `appUrl` field, which the API document specifies only for list items. */
    readListItems: (itemType: ItemType, rowNumbers: number[]): unknown[] =>
      readItems(itemType, rowNumbers).map((record) => {
        const id = String(itemType === 'ads' ? record.id : record.pageId);
        return { ...record, appUrl: record.appUrl ?? `${app}/${itemType}/${encodeURIComponent(id)}` };
      }),
  };
}

/** Replaces every text in a parsed JSON value with the result of `replaceText`. Does not change keys. */
function replaceTexts(jsonValue: object, replaceText: (text: string) => string): void {
  const childByKey = jsonValue as Record<string, unknown>;
  for (const key of Object.keys(childByKey)) {
    const childValue = childByKey[key];
    if (typeof childValue === 'string') childByKey[key] = replaceText(childValue);
    else if (typeof childValue === 'object' && childValue !== null) replaceTexts(childValue, replaceText);
  }
}
