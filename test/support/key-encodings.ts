export const key = 'svc_live_CANARY+0123/4567~89-abc.DEF==';
export const hexOf = (character: string) => character.charCodeAt(0).toString(16);
const each = (write: (character: string) => string) => [...key].map(write).join('');

/** Ways to write the key that a reader undoes without thinking, or a program with one call. */
export const written: Record<string, string> = {
  'as it is': key,
  'in lower case': key.toLowerCase(),
  'in upper case': key.toUpperCase(),
  'with JSON escapes': each((character) => `\\u00${hexOf(character)}`),
  'with JSON escapes in capitals': each((character) => `\\u00${hexOf(character).toUpperCase()}`),
  'with its signs escaped': key.replace(/\W/g, '\\$&'),
  'with escapes escaped': each((character) => `\\\\\\\\u00${hexOf(character)}`),
  'with code point escapes': each((character) => `\\u{${hexOf(character)}}`),
  'with byte escapes': each((character) => `\\x${hexOf(character)}`),
  'in percent codes': each((character) => `%${hexOf(character)}`),
  'in percent codes in capitals': each((character) => `%${hexOf(character).toUpperCase()}`),
  'as a part of an address': `https://shop.example/?a=b%20c&k=${encodeURIComponent(key)}&d=%C3%A9`,
  'in percent codes twice': encodeURIComponent(encodeURIComponent(each((character) => `%${hexOf(character)}`))),
  'in decimal entities': each((character) => `&#${character.charCodeAt(0)};`),
  'in hexadecimal entities': each((character) => `&#x00${hexOf(character)};`),
  'in entities without an end': each((character) => `&#X${hexOf(character)}`),
  'in named entities': key.replaceAll('_', '&lowbar;').replaceAll('+', '&plus;').replaceAll('/', '&sol;'),
  'in entities twice': each((character) => `&amp;amp;#${character.charCodeAt(0)};`),
  'in entities of percent codes': each((character) => `&#37;${hexOf(character)}`),
  'in percent codes of JSON escapes': each((character) => `%5Cu00${hexOf(character)}`),
  'with zero-width characters inside': each((character) => `${character}\u200b`),
  'with marks of direction inside': each((character) => `\u202e${character}\u2066`),
  'with tags and soft hyphens inside': each((character) => `\u{e0041}${character}\xad`),
  'at the end of a text that is cut': `${'word '.repeat(30)}${key} ${'more '.repeat(5000)}`,
  'at the end of a text that is cut, in percent codes': `${'word '.repeat(30)}${encodeURIComponent(key)}${'x'.repeat(9000)}`,
};

/** What somebody reads who undoes all that can be undone, written apart from the masker. */
export function revealed(value: unknown): string {
  let text = JSON.stringify(value);
  for (let round = 0; round < 8; round++)
    text = text
      .replace(
        /%([\da-f]{2})|\\+u0*([\da-f]{2})\b|\\+u\{([\da-f]+)\}|\\+x([\da-f]{2})|&#x0*([\da-f]{2});?/gi,
        (_, ...groups) => String.fromCharCode(Number.parseInt(groups.slice(0, 5).find(Boolean) ?? '', 16)),
      )
      .replace(/\\+u00([\da-f]{2})/gi, (_, code) => String.fromCharCode(Number.parseInt(code, 16)))
      .replace(/&#(\d{2,3});?/g, (_, code) => String.fromCharCode(Number(code)))
      .replaceAll('&amp;', '&');
  return text.replace(/[^a-z\d]/gi, '').toLowerCase();
}
