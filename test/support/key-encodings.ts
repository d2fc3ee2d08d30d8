export const key = 'svc_live_CANARY+0123/4567~89-abc.DEF==';
export const hexOf = (character: string) => character.charCodeAt(0).toString(16);
const each = (write: (character: string) => string) => [...key].map(write).join('');

/** Ways to write the key that a service, a log or an address uses by itself. */
export const written: Record<string, string> = {
  'as it is': key,
  'in lower case': key.toLowerCase(),
  'in upper case': key.toUpperCase(),
  'with JSON escapes': each((character) => `\\u00${hexOf(character)}`),
  'with JSON escapes in capitals': each((character) => `\\u00${hexOf(character).toUpperCase()}`),
  'in percent codes': each((character) => `%${hexOf(character)}`),
  'in percent codes in capitals': each((character) => `%${hexOf(character).toUpperCase()}`),
  'as a part of an address': `https://shop.example/?a=b%20c&k=${encodeURIComponent(key)}&d=%C3%A9`,
  'with zero-width characters inside': each((character) => `${character}\u200b`),
  'with marks of direction inside': each((character) => `\u202e${character}\u2066`),
  'with tags and soft hyphens inside': each((character) => `\u{e0041}${character}\xad`),
  'at the end of a text that is cut': `${'word '.repeat(30)}${key} ${'more '.repeat(5000)}`,
  'at the end of a text that is cut, in percent codes': `${'word '.repeat(30)}${encodeURIComponent(key)}${'x'.repeat(9000)}`,
};

/** What somebody reads who undoes all of these, written apart from the masker. */
export const revealed = (value: unknown): string =>
  JSON.stringify(value)
    .replace(/(?:%|\\+u00)([\da-f]{2})/gi, (_, code) => String.fromCharCode(Number.parseInt(code, 16)))
    .replace(/\\+u[\da-f]{4}|[^a-z\d]/gi, '')
    .toLowerCase();
