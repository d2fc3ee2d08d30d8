import { fullView } from '../present/full.ts';
import { quote, sanitize, sanitizeLine, word } from '../present/safe-text.ts';
import { truncate } from '../present/tokens.ts';

/** A service text for a message of this server: made safe, bounded, and quoted, so that it cannot pose as our words. */
export const untrustedText = (text: string, tokens: number): string =>
  quote(truncate(sanitize(text.slice(0, MAX_TEXT)), tokens, Math.max(0, text.length - MAX_TEXT)));

/** In characters; the rest is not even read. */
const MAX_TEXT = 20_000;
const MAX_ID = 200;

/** A service value for `_meta`: names and texts made safe, and cut where it is largest. */
export const untrustedValue = (value: unknown, tokens: number): unknown => fullView({ value }, tokens).value;

/** A service id or code as data. */
export const untrustedId = (text: string): string =>
  truncate(sanitizeLine(text.slice(0, MAX_ID)), 60, Math.max(0, text.length - MAX_ID));

/** The same for a message of this server. */
export const untrustedWord = (text: string): string => word(untrustedId(text));
