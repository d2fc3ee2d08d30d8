import { sanitize, sanitizeLine } from '../present/safe-text.ts';
import { styles as ownStyles } from './styles.ts';

interface PageOptions {
  title: string;
  /** The parts of the page, in HTML. */
  body: readonly string[];
  /** Its content security policy. */
  policy: string;
  /** What it adds to the styles of all. */
  styles?: string;
}

/** One HTML page without scripts, in the type and colours of the board. */
export const pageHtml = ({ title, body, policy, styles = '' }: PageOptions): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>${text(title)}</title>
<style>${ownStyles}${styles}</style>
</head>
<body>
<main>
${body.join('\n')}
</main>
</body>
</html>
`;

/** Blank lines part paragraphs; other line breaks stay. */
export const paragraphs = (words: string): string[] =>
  sanitize(words)
    .split(/\n\s*\n/)
    .flatMap((part) => (part.trim() === '' ? [] : `<p class="words" dir="auto">${escaped(part.trim())}</p>`));

/** One line of anybody's text. */
export const text = (anything: string): string => escaped(sanitizeLine(anything));

export const escaped = (anything: string): string => anything.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

const numberFormat = new Intl.NumberFormat('en');
export const numberText = (number: number): string => numberFormat.format(number);

const dayFormat = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeZone: 'UTC' });
export const dayText = (time: number | string): string => dayFormat.format(new Date(time));
