import { renderToString } from '#preact/render-to-string';
import { sanitizeLine } from '../views/safe-text.ts';
import type { Content, VNode } from './jsx.d.ts';
import { createPaletteStyles } from './palette.ts';

interface PageProps {
  title: string;
  styles?: string;
  /**
   * The content security policy of a page that is saved as a file. All other pages get their policy from an HTTP
   * header.
   */
  contentSecurityPolicy?: string;
  children?: Content;
}

/** A complete HTML document. It contains the CSS that all pages share. */
export const Page = ({ title, styles = '', contentSecurityPolicy, children }: PageProps) => (
  <html lang="en">
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      {contentSecurityPolicy && <meta http-equiv="Content-Security-Policy" content={contentSecurityPolicy} />}
      <meta name="color-scheme" content="light dark" />
      <meta name="referrer" content={contentSecurityPolicy ? 'no-referrer' : 'same-origin'} />
      <title>{sanitizeLine(title)}</title>
      <style>{buildPageStyles(styles)}</style>
    </head>
    <body>
      <main>{children}</main>
    </body>
  </html>
);

/** Renders a page as a complete HTML document, including the doctype. */
export const renderPage = (page: VNode): string => `<!doctype html>\n${renderToString(page)}\n`;

/**
 * Combines the CSS of all pages, the CSS of one page, and the CSS for printing. The CSS must not contain `&`, `<` or
 * `"`, because the renderer escapes these characters, but browsers do not decode them in a `style` element.
 * @throws TypeError if the CSS contains such a character
 */
export function buildPageStyles(pageStyles: string): string {
  const allStyles = basePageStyles + pageStyles + printStyles;
  if (/["&<]/.test(allStyles)) throw new TypeError('The styles of a page contain a character that would be escaped.');
  return allStyles;
}

/** A notice that all ads are fictional. Every page that shows demo data begins with this notice. */
export const demoNotice = <p class="notice">Demo data: every advertiser and ad is generated and fictional.</p>;

/** The fonts, colors and spacing of all pages. The pages are readable on screens that are at least 360 pixels wide. */
const basePageStyles = `${createPaletteStyles()}
:root { font: 15px / 1.55 ui-sans-serif, system-ui, -apple-system, 'Segoe UI', 'Noto Sans', sans-serif }
* { box-sizing: border-box }
html { background: var(--paper); color: var(--ink); -webkit-text-size-adjust: 100% }
body, h1, h2, h3, p, ul, ol, dl, dd, pre, figure { margin: 0; padding: 0 }
ul, ol { list-style: none }
a { color: inherit; text-decoration-color: var(--line); text-underline-offset: 3px }
a:hover { text-decoration-color: var(--accent) }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
main { max-width: 1060px; margin: 0 auto; padding: 48px 24px 64px; display: grid; gap: 44px }
main > * { min-width: 0 }
header { display: grid; gap: 12px; padding-bottom: 24px; border-bottom: 1px solid var(--line) }
h1 { font-size: clamp(25px, 4vw, 34px); line-height: 1.2; letter-spacing: -0.02em; font-weight: 720; max-width: 26em; text-wrap: balance; overflow-wrap: anywhere }
h2 { font-size: 21px; line-height: 1.3; letter-spacing: -0.015em; font-weight: 700; overflow-wrap: anywhere }
h3 { font-size: 14.5px; line-height: 1.35; font-weight: 650 }
section { display: grid; gap: 16px; min-width: 0 }
section > * { min-width: 0 }
summary { cursor: pointer; padding: 6px 0; color: var(--soft); font-size: 13.5px }
.soft { color: var(--soft) }
.notice { justify-self: start; font-size: 12.5px; font-weight: 600; color: var(--accent); background: var(--accent-soft); border-radius: 99px; padding: 3px 12px }
.problem { background: var(--accent-soft); border-inline-start: 3px solid var(--accent); border-radius: 6px; padding: 10px 14px; overflow-wrap: anywhere }
pre { background: var(--panel); border-radius: 8px; padding: 10px 14px; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; font: 12.5px / 1.5 ui-monospace, Menlo, Consolas, monospace }
footer { color: var(--soft); font-size: 12.5px }
@media (max-width: 560px) { main { padding: 24px 14px 40px; gap: 34px } }
`;

const printStyles = `
@media print {
  :root { color-scheme: light; font-size: 10pt; line-height: 1.45 }
  @page { margin: 16mm 15mm 18mm; @bottom-center { content: counter(page) ' / ' counter(pages); font: 8.5pt sans-serif; color: #645e56 } }
  main { display: block; max-width: none; padding: 0 }
  main > * + * { margin-top: 5mm }
  header { padding-bottom: 4mm }
  nav, form, summary { display: none }
  h1 { font-size: 19pt } h2 { font-size: 13.5pt } h3 { font-size: 9.5pt }
  section { display: block; margin-top: 7mm }
  section > * + * { margin-top: 3mm }
  h2, h3, th, .figures, .words:has(+ :is(.chart, .cards, .table)) { break-after: avoid }
  .words, .method > p { orphans: 3; widows: 3 }
  .chart, .card, tr, .problem { break-inside: avoid }
  .chart .wide { width: 72%; margin: 0 auto }
  .table { overflow: visible; border: 0 }
  table, .fact-list { font-size: 8.5pt }
  .many table { font-size: 6.5pt }
  th, td { padding: 1mm 2mm }
  td { min-width: 7em; overflow-wrap: anywhere }
  td:is(.date, .number), th { min-width: 0 }
  th, th.number { white-space: normal }
  .many :is(th, td) { padding: 1mm }
  thead { display: table-header-group }
  .cards { grid-template-columns: repeat(4, 1fr); gap: 4mm }
  .facts { padding: 2mm; font-size: 8pt }
  .frame { aspect-ratio: 4 / 3 }
  pre { font-size: 8pt; padding: 2mm }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact }
  a { text-decoration: none }
}
`;
