import * as z from 'zod';
import { type Fields, idOf, type Kept, keep } from './copy-fields.ts';
import { quote, word } from './fence.ts';
import { count, framed, type ListFrame } from './list-text.ts';

export const CollectionView = z.looseObject({ id: z.string() });

const FIELDS = {
  name: 40,
  type: 12,
  isDefault: 'flag',
  defaultType: 12,
  isOwner: 'flag',
  adCount: 'number',
  pageCount: 'number',
} as const;

export type CollectionView = Kept<typeof FIELDS> & { id: string };

export function viewCollection(collection: object): CollectionView {
  const source = collection as Fields;
  const view: CollectionView = { id: idOf(source.id) };
  keep(view, source, FIELDS);
  return view;
}

/** A collection on one line: name, id, contents, owner. */
export function collectionText(collection: CollectionView): string {
  const { id, name, type, isDefault, defaultType, isOwner, adCount, pageCount } = collection;
  const facts = [
    adCount !== undefined && count(adCount, 'ad'),
    pageCount !== undefined && count(pageCount, 'page'),
    type !== undefined && `type ${word(type)}`,
    isDefault ? `default${defaultType === undefined ? '' : ` ${word(defaultType)}`}` : false,
    isOwner !== undefined && (isOwner ? 'yours' : "someone else's"),
  ];
  return `${name === undefined ? '' : `${quote(name)} `}${word(id)} ${facts.filter((fact) => fact).join(', ')}`.trimEnd();
}

export const collectionListText = ({ items, ...frame }: ListFrame & { items: readonly CollectionView[] }): string =>
  framed({
    ...frame,
    noun: 'collection',
    shown: items.length,
    body: items.map((collection, index) => `${index + (frame.from ?? 1)}. ${collectionText(collection)}`).join('\n'),
  });

/** Whether an item was added. */
export function addedText(result: {
  collection?: CollectionView;
  itemType: string;
  itemId: string;
  added: boolean;
}): string {
  const { collection, itemType, itemId, added } = result;
  const item = `${itemType === 'pages' ? 'Page' : 'Ad'} ${word(itemId)}`;
  const where = collection ? `the collection ${collectionText(collection)}` : 'the collection';
  return `${item} ${added ? 'added to' : 'was already in'} ${where}`;
}
