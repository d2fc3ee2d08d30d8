import { isObject } from '../../../views/view.ts';

/** A parameter `access_token` of an address, with the sign before and the sign after it; in HTML, `&` is `&amp;`. */
const parameter = /(\?|&amp;|[&#])?access_?token=[^&#\s"'<>\\]*(&amp;|&)?/gi;
/** The same in an address that is a parameter of another address, and therefore has percent codes. */
const encodedParameter =
  /(%(?:25){0,3}(?:3f|26|23))?access_?token%(?:25){0,3}3d(?:(?!%(?:25){0,3}(?:26|23))[^&#\s"'<>\\])*(%(?:25){0,3}26)?/gi;

/** Removes access tokens from the addresses in a text. A token is a secret of the person who exported the ads. */
export function removeAccessTokens(text: string): string {
  if (!/access_?token/i.test(text)) return text;
  const remaining = (_: string, before: string = '', after: string = '') => (after === '' ? '' : before);
  return text.replace(parameter, remaining).replace(encodedParameter, remaining);
}

/** The same for all texts of a value. A key that is itself called `access_token` is left out. */
export function removeAccessTokensDeep(value: unknown): unknown {
  if (typeof value === 'string') return removeAccessTokens(value);
  if (Array.isArray(value)) return value.map(removeAccessTokensDeep);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, one]) =>
      /^access_?token$/i.test(key) ? [] : [[removeAccessTokens(key), removeAccessTokensDeep(one)]],
    ),
  );
}

/** Whether a text or a key of a value names an access token. */
export function hasAccessToken(value: unknown): boolean {
  if (typeof value === 'string') return /access_?token/i.test(value);
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([key, one]) => /access_?token/i.test(key) || hasAccessToken(one));
}
