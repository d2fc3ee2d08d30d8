import type { ItemType } from '../../api/schemas.ts';
import type { RecordStore } from '../database/records.ts';
import type { StoredPictures } from '../import/stored-pictures.ts';

/** The base URLs of the library's HTML pages (`app`) and pictures (`media`). */
export interface LibraryBaseUrls {
  app: string;
  media: string;
}

/** Reads stored ads and pages, and converts them to the form of the API. */
export type Presenter = ReturnType<typeof createPresenter>;

/**
 * The maximum length of a picture URL in characters. The library does not look for a stored picture if a URL is longer.
 */
const maxUrlLength = 8000;
const isPictureUrl = (text: string): boolean => text.length <= maxUrlLength && /^https?:/.test(text);

/**
 * Creates the presenter of a library. It returns records as they were imported, except for two kinds of texts. If the
 * library has stored a picture, the URL of the picture is replaced by a URL of the library. At the start of a text, the
 * placeholders `{app_url}` and `{media_url}` are replaced by base URLs.
 */
export function createPresenter(
  { recordStore, pictures }: { recordStore: RecordStore; pictures: StoredPictures },
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
    /** Reads the records with these row numbers, in the same order. */
    readItems,
    /** Reads records for a list. It adds the field `appUrl`, which the API document shows only for list items. */
    listItems: (itemType: ItemType, rowNumbers: number[]): unknown[] =>
      readItems(itemType, rowNumbers).map((record) => {
        const id = String(itemType === 'ads' ? record.id : record.pageId);
        return { ...record, appUrl: record.appUrl ?? `${app}/${itemType}/${encodeURIComponent(id)}` };
      }),
  };
}

/** Replaces every text in a parsed JSON value with the result of `replaceText`. Keys stay unchanged. */
function replaceTexts(value: object, replaceText: (text: string) => string): void {
  const childByKey = value as Record<string, unknown>;
  for (const key of Object.keys(childByKey)) {
    const childValue = childByKey[key];
    if (typeof childValue === 'string') childByKey[key] = replaceText(childValue);
    else if (typeof childValue === 'object' && childValue !== null) replaceTexts(childValue, replaceText);
  }
}
