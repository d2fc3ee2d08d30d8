import { decodeHTMLStrict } from 'entities/decode';

/** Decodes character references: `Tea &amp; Co` becomes `Tea & Co`. A reference must end with a semicolon. */
export const decodeCharacterReferences = (text: string): string => (text.includes('&') ? decodeHTMLStrict(text) : text);

/**
 * The text of HTML: line breaks for tags that end a line, no other tags, and character references decoded. A space that
 * does not break is a space, as in the text that other scrapers read from the page.
 */
export const convertHtmlToText = (html: string): string =>
  decodeCharacterReferences(
    html.replace(/<br\s?\/?>|<\/(?:p|div|li)>(?=.)/gis, '\n').replace(/<[^<>]+>/g, ''),
  ).replaceAll('\u00a0', ' ');
