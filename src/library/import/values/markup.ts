import { decodeHTMLStrict } from 'entities/decode';

/** Decodes HTML character references, e.g. `Tea &amp; Co` becomes `Tea & Co`. A reference must end with a semicolon. */
export const decodeCharacterReferences = (text: string): string => (text.includes('&') ? decodeHTMLStrict(text) : text);

/**
 * Converts HTML to plain text. Scripts and styles are removed. Tags that end a line become line breaks, other tags are removed, and character
 * references are decoded. Non-breaking spaces become ordinary spaces, so that the text equals the text from other
 * scrapers.
 */
export const convertHtmlToText = (html: string): string =>
  decodeCharacterReferences(
    removeHiddenElements(html)
      .replace(/<br\s?\/?>|<\/(?:p|div|li)>(?=.)/gis, '\n')
      .replace(/<[a-z!/?][^<>]*>/gi, ''),
  ).replaceAll('\u00a0', ' ');

/** Removes the elements whose text a browser never shows. An element without an end tag ends with the text. */
function removeHiddenElements(html: string): string {
  let visibleHtml = '';
  let visibleStart = 0;
  let openElement: string | undefined;
  for (const { 0: tag, 1: slash, 2: name = '', index } of html.matchAll(/<(\/?)(script|style)\b[^<>]*>/gi)) {
    const element = name.toLowerCase();
    if (openElement === undefined && slash === '') {
      visibleHtml += html.slice(visibleStart, index);
      openElement = element;
    } else if (openElement === element && slash === '/') {
      visibleStart = index + tag.length;
      openElement = undefined;
    }
  }
  return openElement === undefined ? visibleHtml + html.slice(visibleStart) : visibleHtml;
}
