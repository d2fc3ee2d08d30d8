import { type BoardAds, type BoardContext, type BoardPictures, boardKey } from '../payload.ts';
import type { Host, Message } from './host.ts';

/** The tools of the server that the board calls through its host. */
export interface Server {
  ads(wanted: { gathering: string } | { ids: readonly string[] }): Promise<BoardAds>;
  pictures(ids: readonly string[]): Promise<BoardPictures>;
  search(args: object): Promise<BoardContext>;
  collections(): Promise<NonNullable<BoardContext['collections']>>;
  save(collectionId: string, adId: string): Promise<boolean>;
}

export function serverBehind(host: Host): Server {
  const call = async <Answer extends object = BoardContext>(name: string, args: object): Promise<Answer> => {
    const result = await host.request('tools/call', { name, arguments: args });
    if (result.isError === true) throw new Error(textOf(result));
    return boardMeta(result) as Answer;
  };
  return {
    ads: async (wanted) => {
      const answer = await call<BoardAds>('board_ads', wanted);
      if (!Array.isArray(answer.ads)) throw new Error('The host did not pass on the ads.');
      return answer;
    },
    pictures: (ids) => call<BoardPictures>('board_pictures', { ids }),
    search: (args) => call('search_ads', args),
    collections: async () => (await call('list_collections', {})).collections ?? [],
    save: async (collectionId, itemId) =>
      (await call('add_collection_item', { collectionId, itemType: 'ads', itemId })).added === true,
  };
}

/** What a result holds for the board; nothing if a host dropped it. */
export const boardMeta = (result: Message): BoardContext =>
  ((result._meta as Message | undefined)?.[boardKey] as BoardContext | undefined) ?? {};

/** The first line of a result's text, without what comes after it for a model. */
export function textOf({ content }: Message): string {
  const [block] = Array.isArray(content) ? content : [];
  return typeof block?.text === 'string' ? (block.text.split('\n', 1)[0] ?? '').slice(0, 300) : 'The call failed.';
}
