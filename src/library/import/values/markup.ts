import { decodeHTMLStrict } from 'entities/decode';

/** Decodes HTML character references: `Tea &amp; Co` becomes `Tea & Co`. A reference must end with a semicolon. */
export const decodeCharacterReferences = (text: string): string => (text.includes('&') ? decodeHTMLStrict(text) : text);

/**
 * Converts HTML to plain text. Tags that end a line become line breaks, other tags are removed, and character
 * references are decoded. Non-breaking spaces become ordinary spaces, because other scrapers read them from the page as
 * such.
 */
export const convertHtmlToText = (html: string): string =>
  decodeCharacterReferences(
    html.replace(/<br\s?\/?>|<\/(?:p|div|li)>(?=.)/gis, '\n').replace(/<[a-z!/?][^<>]*>/gi, ''),
  ).replaceAll('\u00a0', ' ');
