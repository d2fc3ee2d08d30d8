import { cut } from '../present/cut.ts';
import { quote, word } from '../present/fence.ts';
import { sanitize } from '../present/text.ts';

/** A text of the service's in a message of ours: made safe, bounded, and quoted, so that it cannot pose as our words. */
export const foreignText = (text: string, tokens: number): string =>
  quote(cut(sanitize(text.slice(0, 20_000)), tokens));

/** An id or a code of the service's. */
export const foreignWord = (text: string): string => word(cut(sanitize(text.slice(0, 200)), 60));
