import { sanitize, sanitizeLine } from '../present/safe-text.ts';

interface PageOptions {
  title: string;
  /** The parts of the page, in HTML. */
  body: readonly string[];
  /** Its content security policy. */
  policy: string;
  /** Styles of this page, besides those of all pages. */
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

/** A text as HTML. Blank lines separate paragraphs; other line breaks stay. */
export const paragraphs = (words: string): string[] =>
  sanitize(words)
    .split(/\n\s*\n/)
    .flatMap((part) => (part.trim() === '' ? [] : `<p class="words" dir="auto">${escaped(part.trim())}</p>`));

/** A text from outside as HTML, on one line. */
export const text = (anything: string): string => escaped(sanitizeLine(anything));

export const escaped = (anything: string): string => anything.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

const numberFormat = new Intl.NumberFormat('en');
export const numberText = (number: number): string => numberFormat.format(number);

const dayFormat = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeZone: 'UTC' });
export const dayText = (time: number | string): string => dayFormat.format(new Date(time));

const hues = Array.from({ length: 12 }, (_, hue) => `.hue${hue} { --hue: ${hue * 30 + 15} }`).join('\n');

/** How a report looks: the type, colours and surfaces of the board, on screens of 360 pixels and more, and on paper. */
const ownStyles = `
:root {
  color-scheme: light dark;
  --paper: light-dark(#ffffff, #1a1917);
  --panel: light-dark(#f7f5f1, #24221f);
  --ink: light-dark(#1d1b18, #f4f1eb);
  --soft: light-dark(#645e56, #b3aca1);
  --line: light-dark(#e5e0d8, #3a3733);
  --accent: light-dark(#b3431c, #f29468);
  --accent-soft: light-dark(#fbeee7, #3a251b);
  --run: light-dark(#1f7a54, #63c79b);
  font: 15px / 1.55 ui-sans-serif, system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif;
}
* { box-sizing: border-box }
html { background: var(--paper); color: var(--ink); -webkit-text-size-adjust: 100% }
body, h1, h2, h3, p, ul, ol, pre { margin: 0; padding: 0 }
ul, ol { list-style: none }
a { color: inherit; text-decoration-color: var(--line); text-underline-offset: 3px }
a:hover { text-decoration-color: var(--accent) }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
main { max-width: 1060px; margin: 0 auto; padding: 48px 24px 64px; display: grid; gap: 44px }
main > * { min-width: 0 }
header { display: grid; gap: 12px; padding-bottom: 28px; border-bottom: 1px solid var(--line) }
h1 { font-size: clamp(27px, 4.4vw, 38px); line-height: 1.18; letter-spacing: -0.02em; font-weight: 720; max-width: 24em; text-wrap: balance; overflow-wrap: anywhere }
h2 { font-size: 22px; line-height: 1.3; letter-spacing: -0.015em; font-weight: 700; overflow-wrap: anywhere }
h3 { font-size: 14.5px; line-height: 1.35; font-weight: 650 }
.soft { color: var(--soft) }
.notice { justify-self: start; font-size: 12.5px; font-weight: 600; color: var(--accent); background: var(--accent-soft); border-radius: 99px; padding: 3px 12px }
nav ol { display: flex; flex-wrap: wrap; gap: 4px 22px; counter-reset: part; font-size: 14px }
nav li { counter-increment: part; overflow-wrap: anywhere }
nav li::before { content: counter(part) "  "; color: var(--soft); font-variant-numeric: tabular-nums; white-space: pre }
section { display: grid; gap: 16px; min-width: 0 }
section > * { min-width: 0 }
.words, .method > p { max-width: 46em; white-space: pre-line; overflow-wrap: anywhere }
.method > p { white-space: normal }
.problem { color: var(--ink); background: var(--accent-soft); border-inline-start: 3px solid var(--accent); border-radius: 6px; padding: 10px 14px; overflow-wrap: anywhere }
.chart { background: var(--panel); border-radius: 12px; padding: 6px; overflow-x: auto }
.chart svg { display: block; width: 100%; min-width: 600px; height: auto; font-family: inherit }
.ink { fill: var(--ink) } .soft { fill: var(--soft) } .grid { fill: var(--line) }
.series0 { fill: var(--c0); stroke: var(--c0) } .series1 { fill: var(--c1); stroke: var(--c1) }
.series2 { fill: var(--c2); stroke: var(--c2) } .series3 { fill: var(--c3); stroke: var(--c3) }
.series4 { fill: var(--c4); stroke: var(--c4) } .series5 { fill: var(--c5); stroke: var(--c5) }
.series6 { fill: var(--c6); stroke: var(--c6) } .series7 { fill: var(--c7); stroke: var(--c7) }
:root {
  --c0: light-dark(#c8532a, #ee8a5c); --c1: light-dark(#2f7f7a, #62bdb5); --c2: light-dark(#b58a1f, #dfb84d);
  --c3: light-dark(#5b5ea6, #9da0e6); --c4: light-dark(#4c8a3f, #86c578); --c5: light-dark(#a8456f, #e08bb0);
  --c6: light-dark(#7a6a58, #bba995); --c7: light-dark(#3d7fb5, #7bb8e8);
}
rect, text { stroke: none }
.line { fill: none; stroke-linejoin: round; stroke-linecap: round }
.table { overflow-x: auto; border: 1px solid var(--line); border-radius: 12px }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; line-height: 1.45 }
th { text-align: start; font-weight: 600; color: var(--soft); background: var(--panel); white-space: nowrap }
th, td { padding: 7px 14px; vertical-align: top }
td { border-top: 1px solid var(--line); overflow-wrap: break-word; min-width: 5em; max-width: 30em }
td.date { white-space: nowrap }
.number { text-align: end; font-variant-numeric: tabular-nums; white-space: nowrap; min-width: 0 }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(210px, 46%), 1fr)); gap: 16px }
.card { border: 1px solid var(--line); border-radius: 12px; overflow: hidden; display: flex; flex-direction: column; min-width: 0 }
.frame { position: relative; aspect-ratio: 1; display: grid; place-items: center; text-align: center; overflow: hidden;
  background: linear-gradient(160deg, light-dark(hsl(var(--hue) 34% 91%), hsl(var(--hue) 16% 24%)), light-dark(hsl(var(--hue) 30% 84%), hsl(var(--hue) 18% 17%))) }
${hues}
.frame img { position: absolute; inset: 0; width: 100%; height: 100%; object-fit: cover }
.initial { font-size: 52px; font-weight: 700; color: light-dark(hsl(var(--hue) 25% 62%), hsl(var(--hue) 18% 45%)) }
.reason { position: absolute; inset: auto 10px 10px; font-size: 11.5px; line-height: 1.35; color: var(--ink); overflow-wrap: anywhere; text-wrap: balance }
.badge { position: absolute; inset-block-start: 8px; inset-inline-start: 8px; max-width: calc(100% - 16px); overflow: hidden; text-overflow: ellipsis; white-space: nowrap; background: rgb(20 18 16 / 0.78); color: #fff; font-size: 11.5px; font-weight: 600; border-radius: 6px; padding: 2px 7px }
.facts { padding: 11px 13px 12px; display: grid; gap: 3px; font-size: 13px; line-height: 1.4; overflow-wrap: anywhere }
.clamp { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden }
.labels { display: flex; flex-wrap: wrap; gap: 4px; margin-top: 3px }
.labels span { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: 0 6px; font-size: 11.5px; max-width: 100% }
.run { color: var(--soft); margin-top: 3px }
.run b { color: var(--ink); font-weight: 600 } .run .running { color: var(--run) }
.id { color: var(--soft); font: 11px / 1.4 ui-monospace, Menlo, Consolas, monospace; overflow-wrap: anywhere }
.method { padding-top: 28px; border-top: 1px solid var(--line); font-size: 14px }
pre { background: var(--panel); border-radius: 8px; padding: 10px 14px; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; font: 12.5px / 1.5 ui-monospace, Menlo, Consolas, monospace }
footer { color: var(--soft); font-size: 12.5px }
@media (max-width: 560px) {
  main { padding: 24px 14px 40px; gap: 34px }
  .cards { gap: 10px }
  .facts { padding: 9px 10px 10px }
  th, td { padding: 6px 10px }
}
@media print {
  :root { color-scheme: light; font-size: 10.5pt }
  @page { margin: 18mm 16mm }
  main { display: block; max-width: none; padding: 0 }
  header { min-height: 240mm; align-content: center; border: 0; break-after: page }
  section { display: block; margin-bottom: 10mm }
  section > * + * { margin-top: 4mm }
  h2, h3, th { break-after: avoid }
  h2 + *, .words { break-before: avoid; orphans: 3; widows: 3 }
  .chart, .card, tr, pre, .problem { break-inside: avoid }
  .chart, .table { overflow: visible }
  .chart svg { min-width: 0 }
  .table { border: 0 }
  table { font-size: 8.5pt }
  th { white-space: normal }
  th, td { padding: 1.5mm 2mm; min-width: 0 }
  thead { display: table-header-group }
  .cards { grid-template-columns: repeat(3, 1fr); gap: 5mm }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact }
  a { text-decoration: none }
}
`;
