export const key = 'svc_live_CANARY+0123/4567~89-abc.DEF==';
export const hexOf = (character: string) => character.charCodeAt(0).toString(16);
const each = (write: (character: string) => string) => [...key].map(write).join('');

/** The forms of the key that a service, a log, an address or a page writes. The server masks all of them. */
export const written: Record<string, string> = {
  'as it is': key,
  'with JSON escapes': each((character) => `\\u00${hexOf(character)}`),
  'with JSON escapes in capitals': each((character) => `\\u00${hexOf(character).toUpperCase()}`),
  'in percent codes': each((character) => `%${hexOf(character)}`),
  'in percent codes in capitals': each((character) => `%${hexOf(character).toUpperCase()}`),
  'with HTML references': each((character) => `&#x${hexOf(character)};`),
  'as a part of an address': `https://shop.example/?a=b%20c&k=${encodeURIComponent(key)}&d=%C3%A9`,
  'at the end of a text that is cut': `${'word '.repeat(30)}${key} ${'more '.repeat(5000)}`,
  'at the end of a text that is cut, in percent codes': `${'word '.repeat(30)}${encodeURIComponent(key)}${'x'.repeat(9000)}`,
};

/** Returns the text of a value with all of these forms decoded. It is written apart from the masker under test. */
export const revealed = (value: unknown): string =>
  JSON.stringify(value)
    .replace(/(?:%|\\+u00|&#x)([\da-f]{2});?/gi, (_, code) => String.fromCharCode(Number.parseInt(code, 16)))
    .replace(/\\+u[\da-f]{4}|[^a-z\d]/gi, '')
    .toLowerCase();
