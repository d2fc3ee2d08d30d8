/** An API key that contains all characters that some encoding writes differently. */
export const canaryKey = 'svc_live_CANARY+0123/4567~89-abc.DEF==';
/** Returns the character code in hexadecimal digits. */
export const toHex = (character: string) => character.charCodeAt(0).toString(16);
const encodeEachCharacter = (encode: (character: string) => string) => [...canaryKey].map(encode).join('');

/** All encodings in which an API, a log, a URL or a page may write the key. The server must mask each of them. */
export const encodedKeys: Record<string, string> = {
  'as it is': canaryKey,
  'with JSON escapes': encodeEachCharacter((character) => `\\u00${toHex(character)}`),
  'with JSON escapes in capitals': encodeEachCharacter((character) => `\\u00${toHex(character).toUpperCase()}`),
  'in percent codes': encodeEachCharacter((character) => `%${toHex(character)}`),
  'in percent codes in capitals': encodeEachCharacter((character) => `%${toHex(character).toUpperCase()}`),
  'with HTML references': encodeEachCharacter((character) => `&#x${toHex(character)};`),
  'as a part of an address': `https://shop.example/?a=b%20c&k=${encodeURIComponent(canaryKey)}&d=%C3%A9`,
  'at the end of a text that is cut': `${'word '.repeat(30)}${canaryKey} ${'more '.repeat(5000)}`,
  'at the end of a text that is cut, in percent codes': `${'word '.repeat(30)}${encodeURIComponent(canaryKey)}${'x'.repeat(9000)}`,
};

/** Returns a value as JSON with all encodings of the key decoded. Does not use the masking code, which it helps to test. */
export const decodeAllForms = (value: unknown): string =>
  JSON.stringify(value)
    .replace(/(?:%|\\+u00|&#x)([\da-f]{2});?/gi, (_, code) => String.fromCharCode(Number.parseInt(code, 16)))
    .replace(/\\+u[\da-f]{4}|[^a-z\d]/gi, '')
    .toLowerCase();
