import type { ItemType } from '../api/schemas.ts';
import type { LibraryConfig } from './config.ts';
import type { Records } from './records.ts';

/** Turns stored records into the objects that the API sends. */
export type Presenter = {
  one(kind: ItemType, number: number): unknown;
  /** Like `one`, plus `appUrl`, which the document shows on list items only. */
  list(kind: ItemType, numbers: number[]): unknown[];
};

/**
 * Records are sent as they were written, except that the document's placeholders `{app_url}` and `{media_url}` at the
 * start of a text are replaced by addresses.
 * @param origin of the request, such as `http://127.0.0.1:3000`
 */
export function presenterFor(records: Records, config: LibraryConfig, origin: string): Presenter {
  const app = config.appUrl ?? origin;
  const media = config.mediaUrl ?? `${origin}/media`;
  const inJson = (text: string) => JSON.stringify(text).slice(0, -1);
  const filled = (json: string) => json.replaceAll('"{media_url}', inJson(media)).replaceAll('"{app_url}', inJson(app));

  const read = (kind: ItemType, numbers: number[]) =>
    records.read(kind, numbers).map((json): Record<string, unknown> => JSON.parse(filled(json)));
  return {
    one: (kind, number) => read(kind, [number])[0],
    list: (kind, numbers) =>
      read(kind, numbers).map((item) => ({
        ...item,
        appUrl: item.appUrl ?? `${app}/${kind}/${encodeURIComponent(String(kind === 'ads' ? item.id : item.pageId))}`,
      })),
  };
}
