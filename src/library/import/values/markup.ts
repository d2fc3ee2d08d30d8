import { decodeHTMLStrict } from 'entities/decode';

/** Decodes HTML character references that end with a semicolon, e.g. `Tea &amp; Co` becomes `Tea & Co`. */
export const decodeCharacterReferences = (text: string): string => (text.includes('&') ? decodeHTMLStrict(text) : text);

/**
 * Converts HTML to plain text. Removes scripts and styles, replaces tags that end a line with line breaks, removes all
 * other tags, and decodes character references. Non-breaking spaces become ordinary spaces, as in data from other
 * scrapers.
 */
export const convertHtmlToText = (html: string): string =>
  decodeCharacterReferences(
    removeHiddenElements(html)
      .replace(/<br\s?\/?>|<\/(?:p|div|li)>(?=.)/gis, '\n')
      .replace(/<[a-z!/?][^<>]*>/gi, ''),
  ).replaceAll('\u00a0', ' ');

/**
 * Removes scripts and styles, because a browser never shows their content. If an element has no end tag, removes
 * everything after its start tag.
 */
function removeHiddenElements(html: string): string {
  let visibleHtml = '';
  let visibleStartIndex = 0;
  let openElement: string | undefined;
  for (const { 0: tag, 1: slash, 2: name = '', index } of html.matchAll(/<(\/?)(script|style)\b[^<>]*>/gi)) {
    const element = name.toLowerCase();
    if (openElement === undefined && slash === '') {
      visibleHtml += html.slice(visibleStartIndex, index);
      openElement = element;
    } else if (openElement === element && slash === '/') {
      visibleStartIndex = index + tag.length;
      openElement = undefined;
    }
  }
  return openElement === undefined ? visibleHtml + html.slice(visibleStartIndex) : visibleHtml;
}
