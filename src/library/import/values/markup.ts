import { decodeHTMLStrict } from 'entities/decode';

/** Decodes HTML character references, e.g. `Tea &amp; Co` becomes `Tea & Co`. A reference must end with a semicolon. */
export const decodeCharacterReferences = (text: string): string => (text.includes('&') ? decodeHTMLStrict(text) : text);

/**
 * Converts HTML to plain text. Tags that end a line become line breaks, other tags are removed, and character
 * references are decoded. Non-breaking spaces become ordinary spaces, so that the text equals the text from other
 * scrapers.
 */
export const convertHtmlToText = (html: string): string =>
  decodeCharacterReferences(
    html.replace(/<br\s?\/?>|<\/(?:p|div|li)>(?=.)/gis, '\n').replace(/<[a-z!/?][^<>]*>/gi, ''),
  ).replaceAll('\u00a0', ' ');
