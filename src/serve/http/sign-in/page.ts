import { createHash } from 'node:crypto';
import type { Client } from './clients.ts';

/** What the page shows of the app that asks. */
export interface SignInPage {
  client: Pick<Client, 'name' | 'host'>;
  /** Where the answer goes. */
  redirectUri: string;
  /** What the form sends back unchanged. */
  fields: Record<string, string>;
}

/** What a person has to correct. */
export interface FormProblem {
  field: 'api_key' | 'budget' | 'form';
  text: string;
  /** The text of the budget field, if it was a number. A key is never sent back. */
  budget?: string | undefined;
}

const style = `
:root{color-scheme:light dark;--paper:#fff;--panel:#f7f5f1;--ink:#1d1b18;--soft:#645e56;--line:#e5e0d8;--edge:#8a8278;--accent:#b3431c;--on-accent:#fff;--wrong:#b3261e;font:16px/1.5 ui-sans-serif,system-ui,-apple-system,"Segoe UI","Noto Sans",sans-serif}
@media (prefers-color-scheme:dark){:root{--paper:#1a1917;--panel:#24221f;--ink:#f4f1eb;--soft:#b3aca1;--line:#3a3733;--edge:#8f887e;--accent:#f29468;--on-accent:#24140c;--wrong:#ff9c8f}}
*{box-sizing:border-box}
body{margin:0;background:var(--panel);color:var(--ink)}
main{max-width:480px;margin:0 auto;padding:24px 16px 40px}
.card{background:var(--paper);border:1px solid var(--line);border-radius:12px;padding:20px}
.brand{font-size:14px;color:var(--soft);margin:0 0 10px}
h1{font-size:22px;line-height:1.25;margin:0 0 12px;overflow-wrap:anywhere}
h2{font-size:16px;margin:0 0 6px}
p{margin:0 0 12px}
dl{margin:0 0 20px;padding:12px 14px;background:var(--panel);border-radius:9px;display:grid;grid-template-columns:max-content 1fr;gap:4px 14px;font-size:14px}
dt{color:var(--soft)}
dd{margin:0;min-width:0;font-weight:600;overflow-wrap:anywhere;unicode-bidi:isolate}
label{display:block;font-weight:600;margin:0 0 4px}
input{display:block;width:100%;min-height:44px;padding:8px 12px;font:inherit;color:inherit;background:var(--paper);border:1px solid var(--edge);border-radius:9px}
input[aria-invalid]{border-color:var(--wrong)}
.hint{font-size:14px;color:var(--soft);margin:7px 0 16px}
.wrong{font-size:14px;color:var(--wrong);margin:8px 0 0;font-weight:600}
form>.wrong{margin:0 0 16px}
.buttons{display:flex;flex-wrap:wrap;gap:10px;margin-top:20px}
button,.button{font:inherit;font-weight:600;min-height:44px;padding:8px 18px;border-radius:9px;border:1px solid var(--edge);background:var(--paper);color:inherit;cursor:pointer;text-decoration:none;display:inline-flex;align-items:center}
button.main{background:var(--accent);border-color:var(--accent);color:var(--on-accent);flex:1 1 160px;justify-content:center}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
section{margin:20px 4px 0;font-size:14px;color:var(--soft)}
section h2{font-size:14px;color:var(--ink)}
ul{margin:0;padding-left:18px}
li{margin:0 0 6px}
`;

/**
 * The policy allows only the page's own style. It has no `form-action`: browsers apply that to all redirects after the
 * form, and hosts redirect from their own address to their app.
 */
const policy = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; base-uri 'none'; frame-ancestors 'none'`;

/** The headers of the page, and of every answer that could be shown as a page. */
export const pageHeaders: Record<string, string> = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': policy,
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  // Without a referrer at all, browsers would not say that the form comes from this origin.
  'referrer-policy': 'same-origin',
  'x-robots-tag': 'noindex',
};

const marks: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escaped = (text: string) => text.replace(/[&<>"']/g, (mark) => marks[mark] ?? '');

const document = (title: string, content: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<style>${style}</style>
</head>
<body>
<main>
<p class="brand">Ad Library</p>
${content}
</main>
</body>
</html>
`;

/** The place to which an answer goes, in a form that a person can judge. */
export function hostOf(redirectUri: string): string {
  const { protocol, host } = new URL(redirectUri);
  return protocol === 'http:' ? `${host} (a program on your own computer)` : host;
}

/** The page on which a person lets an app use their key. */
export function signInPage({ client, redirectUri, fields }: SignInPage, problem?: FormProblem): string {
  const { name, host } = client;
  const shownName = escaped((name ?? '').replace(/[“”"]/g, "'"));
  const who = name === undefined ? 'an app' : `“${shownName}”`;
  const hidden = Object.entries(fields).map(
    ([field, value]) => `<input type="hidden" name="${escaped(field)}" value="${escaped(value)}">`,
  );
  const wrong = (field: FormProblem['field']) =>
    problem?.field === field ? `<p class="wrong" id="${field}-wrong" role="alert">${escaped(problem.text)}</p>` : '';
  const state = (field: FormProblem['field']) =>
    problem?.field === field
      ? `aria-invalid="true" aria-describedby="${field}-wrong ${field}-hint" autofocus`
      : `aria-describedby="${field}-hint"${field === 'api_key' && problem?.field !== 'budget' ? ' autofocus' : ''}`;
  const content = `<div class="card">
<h1>Connect ${who} with your API key?</h1>
<dl>
<dt>Calls itself</dt><dd>${name === undefined ? 'nothing' : shownName}</dd>
<dt>Its address</dt><dd>${host === undefined ? 'not known' : escaped(host)}</dd>
<dt>Answer goes to</dt><dd>${escaped(hostOf(redirectUri))}</dd>
</dl>
<form method="post" action="/authorize" novalidate>
${hidden.join('\n')}
${wrong('form')}
<label for="api_key">API key</label>
<input id="api_key" name="api_key" type="password" required autocomplete="off" autocapitalize="none" spellcheck="false" maxlength="300" ${state('api_key')}>
${wrong('api_key')}
<p class="hint" id="api_key-hint">It begins with svc_live_. It is checked with the service before anything is issued.</p>
<label for="budget">Credit budget (optional)</label>
<input id="budget" name="budget" inputmode="numeric" autocomplete="off" maxlength="20" value="${escaped(problem?.budget ?? '')}" ${state('budget')}>
${wrong('budget')}
<p class="hint" id="budget-hint">Credits that this connection may spend in all, as a whole number. Empty: no budget of its own.</p>
<div class="buttons">
<button class="main" type="submit">Connect</button>
<button type="submit" name="cancel" value="yes">Cancel</button>
</div>
</form>
</div>
<section aria-labelledby="about">
<h2 id="about">What happens with your key</h2>
<ul>
<li>It is sealed into the tokens that the app gets, which only this server can open. It is not stored here, and the app cannot read it.</li>
<li>Whoever has those tokens can use your key through this server, and spend credits up to the budget, until the connection ends: when the app ends it, 30 days after its last renewal, or when the key is revoked.</li>
<li>The name above is unverified: it is what the app calls itself. Go on only if you have just asked for this connection yourself, and know where the answer goes.</li>
</ul>
</section>`;
  const title = `Connect ${name ?? 'an app'} – Ad Library`;
  return document(problem ? `Not connected yet – ${title}` : title, content);
}

/** A page that says why nothing can be asked, with a way back where there is one. */
export function problemPage(problem: string, back?: { href: string; host: string }): string {
  const way = back
    ? `<div class="buttons"><a class="button" rel="noreferrer" href="${escaped(back.href)}">Back to ${escaped(back.host)}</a></div>`
    : '';
  return document(
    'Not connected – Ad Library',
    `<div class="card"><h1>This connection cannot be made</h1><p>${escaped(problem)}</p>${way}</div>`,
  );
}
