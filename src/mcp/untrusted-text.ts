import { cut } from '../present/cut.ts';
import { quote, word } from '../present/fence.ts';
import { fullView } from '../present/full.ts';
import { sanitize, sanitizeLine } from '../present/text.ts';

/** A text of the service's in a message of ours: made safe, bounded, and quoted, so that it cannot pose as our words. */
export const untrustedText = (text: string, tokens: number): string =>
  quote(cut(sanitize(text.slice(0, MAX_TEXT)), tokens, Math.max(0, text.length - MAX_TEXT)));

/** What lies beyond is not even looked at. */
const MAX_TEXT = 20_000;
const MAX_ID = 200;

/** A value of the service's for `_meta`: its names and texts made safe, cut where it is largest. */
export const untrustedValue = (value: unknown, tokens: number): unknown => fullView({ value }, tokens).value;

/** An id or a code of the service's as data. */
export const untrustedId = (text: string): string =>
  cut(sanitizeLine(text.slice(0, MAX_ID)), 60, Math.max(0, text.length - MAX_ID));

/** The same in a message of ours. */
export const untrustedWord = (text: string): string => word(untrustedId(text));
