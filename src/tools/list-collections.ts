import { z } from 'zod';
import { CollectionView, collectionListText, viewCollection } from '../present/collection.ts';
import { defineTool, readOnly } from './define-tool.ts';
import { noArguments } from './params.ts';

export const listCollections = defineTool({
  name: 'list_collections',
  title: 'Collections',
  description: 'The collections of ads and pages, with their ids and counts. Not gated by credits.',
  annotations: readOnly,
  input: noArguments,
  output: z.looseObject({ items: z.array(CollectionView) }),
  async run(_, { api }) {
    const { value } = await api.listCollections();
    return { items: value.items.map(viewCollection) };
  },
  render: collectionListText,
});
