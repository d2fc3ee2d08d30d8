import * as z from 'zod';

/** What a collection holds (document, *Result envelopes*). */
export const ItemType = z.enum(['ads', 'pages']);
export type ItemType = z.infer<typeof ItemType>;
