import { isObject } from '../../../views/view.ts';

/**
 * Matches a query parameter with a secret (`access_token` or `api_key`), and the separators around it. The name may
 * have a prefix, and a hyphen or an encoded underscore instead of `_`. HTML writes the separator `&` as `&amp;` or
 * `&#38;`.
 */
const tokenParameterPattern =
  /(\?|&amp;|&#38;|[&#])?(?:[a-z\d-]{1,20}[_-])?(?:access(?:_|-|%5f)?token|api(?:_|-|%5f)?key)(?:\[\]|%5b%5d)?\s?=[^&#\s"'<>\\]*(&amp;|&#38;|&)?/gi;
/**
 * Matches the parameter `access_token` or `api_key` in a URL that is itself a parameter of another URL. Its separators
 * are then percent-encoded, e.g. `%26` instead of `&`.
 */
const encodedTokenParameterPattern =
  /(%(?:25){0,3}(?:3f|26|23))?(?:access(?:_|-|%(?:25){0,3}5f)?token|api(?:_|-|%(?:25){0,3}5f)?key)%(?:25){0,3}3d(?:(?!%(?:25){0,3}(?:26|23))[^&#\s"'<>\\])*(%(?:25){0,3}26)?/gi;
/**
 * Matches the name of a token parameter anywhere in a text. This fast check comes first, because few texts contain a
 * token.
 */
const tokenNamePattern = /access(?:_|-|%(?:25){0,3}5f)?token|api(?:_|-|%(?:25){0,3}5f)?key/i;
/** Matches JSON keys whose value is an access token or an API key. */
const tokenKeyPattern = /^(?:[a-z\d-]{1,20}[_-])?(?:access[_-]?token|api[_-]?key)$/i;

/**
 * Removes access tokens and API keys from all URLs in a text. Exports of the Meta Ad Library contain the secret token
 * of the person who exported the ads. Responses of scraping services may contain the API key of their user.
 */
export function removeAccessTokens(text: string): string {
  if (!tokenNamePattern.test(text)) return text;
  // If another parameter follows the token, keep the separator in front of the token for that parameter. Otherwise,
  // remove this separator, too.
  const selectSeparator = (_match: string, separatorBefore: string = '', separatorAfter: string = '') =>
    separatorAfter === '' ? '' : separatorBefore;
  return text.replace(tokenParameterPattern, selectSeparator).replace(encodedTokenParameterPattern, selectSeparator);
}

/**
 * Removes access tokens from all texts in a value at any depth. Also removes keys such as `access_token` or `api_key`.
 */
export function removeAccessTokensDeep(value: unknown): unknown {
  if (typeof value === 'string') return removeAccessTokens(value);
  if (Array.isArray(value)) return value.map(removeAccessTokensDeep);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, child]) =>
      tokenKeyPattern.test(key) ? [] : [[removeAccessTokens(key), removeAccessTokensDeep(child)]],
    ),
  );
}

/** Returns true if any text or key in a value contains the name of a token parameter, such as `access_token`. */
export function hasAccessToken(value: unknown): boolean {
  if (typeof value === 'string') return tokenNamePattern.test(value);
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([key, childValue]) => tokenNamePattern.test(key) || hasAccessToken(childValue));
}
