import type { Content } from '../../../ui/jsx.d.ts';
import { Form, ReturnLink } from '../../../ui/links.tsx';
import { Page, renderPage } from '../../../ui/page.tsx';
import { sanitizeLine } from '../../../views/safe-text.ts';
import { pageHeaders } from '../page-headers.ts';
import type { Client } from './clients.ts';

export interface SignInPage {
  client: Pick<Client, 'name' | 'host'>;
  redirectUri: string;
  /** What the form sends back unchanged. */
  fields: Record<string, string>;
}

export interface FormProblem {
  field: 'api_key' | 'budget' | 'form';
  text: string;
  /** The text of the budget field, if it was a number. A key is never sent back. */
  budget?: string | undefined;
}

const styles = `
:root { font-size: 16px }
body { background: var(--panel) }
main { max-width: 480px; padding: 24px 16px 40px; gap: 20px }
.card { background: var(--paper); border: 1px solid var(--line); border-radius: 12px; padding: 20px; display: grid; gap: 14px }
.brand, .hint, section { font-size: 14px; color: var(--soft) }
h1 { font-size: 22px } h2 { font-size: 14px; color: var(--ink) }
dl { padding: 12px 14px; background: var(--panel); border-radius: 9px; display: grid; grid-template-columns: max-content 1fr; gap: 4px 14px; font-size: 14px }
dt { color: var(--soft) }
dd { min-width: 0; font-weight: 600; overflow-wrap: anywhere; unicode-bidi: isolate }
form { display: grid; gap: 7px }
label { font-weight: 600 }
input { width: 100%; min-height: 44px; padding: 8px 12px; font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--edge); border-radius: 9px }
input[aria-invalid] { border-color: var(--wrong) }
.hint { margin-bottom: 9px }
.wrong { font-size: 14px; color: var(--wrong); font-weight: 600 }
.buttons { display: flex; flex-wrap: wrap; gap: 10px }
button, .button { font: inherit; font-weight: 600; min-height: 44px; padding: 8px 18px; border-radius: 9px; border: 1px solid var(--edge); background: var(--paper); color: inherit; cursor: pointer; text-decoration: none; display: inline-flex; align-items: center }
button.main { background: var(--accent); border-color: var(--accent); color: var(--on-accent); flex: 1 1 160px; justify-content: center }
section { margin: 0 4px; gap: 8px }
section ul { list-style: disc; padding-inline-start: 18px; display: grid; gap: 6px }
`;

/** The headers of the page, and of every answer that could be shown as a page. */
export const headers = pageHeaders(styles);

const document = (title: string, children: Content): string =>
  renderPage(
    <Page title={title} styles={styles}>
      <p class="brand">Ad Library</p>
      {children}
    </Page>,
  );

export function hostOf(redirectUri: string): string {
  const { protocol, host } = new URL(redirectUri);
  return protocol === 'http:' ? `${host} (a program on your own computer)` : host;
}

/** The page on which a person lets an app use their key at a service, which is named by its host. */
export function signInPage(service: string, page: SignInPage, problem?: FormProblem): string {
  const { client, redirectUri, fields } = page;
  const name = client.name === undefined ? undefined : sanitizeLine(client.name.replace(/[“”"]/g, "'"));
  const wrong = (field: FormProblem['field']) =>
    problem?.field === field && (
      <p class="wrong" id={`${field}-wrong`} role="alert">
        {problem.text}
      </p>
    );
  const isWrong = (field: 'api_key' | 'budget') => problem?.field === field || undefined;
  const aboutField = (field: 'api_key' | 'budget') => `${isWrong(field) ? `${field}-wrong ` : ''}${field}-hint`;
  const facts = [
    ['App', name && `${name} (the name it gives itself)`],
    ['From', client.host],
    ['Returns to', hostOf(redirectUri)],
    ['Key of', service],
  ];
  const title = `Connect ${name ?? 'an app'} – Ad Library`;
  return document(
    problem ? `Not connected yet – ${title}` : title,
    <>
      <div class="card">
        <h1>Connect {name === undefined ? 'an app' : `“${name}”`} with your API key?</h1>
        <dl>
          {facts.map(
            ([term, fact]) =>
              fact !== undefined && (
                <>
                  <dt>{term}</dt>
                  <dd>{fact}</dd>
                </>
              ),
          )}
        </dl>
        <Form to="/authorize" isPost>
          {Object.entries(fields).map(([field, value]) => (
            <input type="hidden" name={field} value={value} />
          ))}
          {wrong('form')}
          <label for="api_key">Your API key of {service}</label>
          <input
            id="api_key"
            name="api_key"
            type="password"
            required
            autocomplete="off"
            autocapitalize="none"
            spellcheck={false}
            maxLength={300}
            aria-invalid={isWrong('api_key')}
            aria-describedby={aboutField('api_key')}
            autofocus={!isWrong('budget')}
          />
          {wrong('api_key')}
          <p class="hint" id="api_key-hint">
            {problem ? 'Enter your key again: it is never sent back to a page. ' : ''}It begins with svc_live_. The
            service checks it before the app gets anything.
          </p>
          <label for="budget">Credit budget (optional)</label>
          <input
            id="budget"
            name="budget"
            inputmode="numeric"
            autocomplete="off"
            maxLength={20}
            pattern="[0-9]{1,9}|10{9}"
            title="A whole number, such as 500, or nothing"
            value={problem?.budget ?? ''}
            aria-invalid={isWrong('budget')}
            aria-describedby={aboutField('budget')}
            autofocus={isWrong('budget') ?? false}
          />
          {wrong('budget')}
          <p class="hint" id="budget-hint">
            The credits that this connection may spend in all, as a whole number. Empty: no budget of its own.
          </p>
          <div class="buttons">
            <button class="main" type="submit">
              Connect
            </button>
            <button type="submit" name="cancel" value="yes" formnovalidate>
              Cancel
            </button>
          </div>
        </Form>
      </div>
      <section aria-labelledby="about">
        <h2 id="about">What happens with your key</h2>
        <ul>
          <li>
            It is sealed into the tokens that the app gets, which only this server can open. It is not stored here, and
            the app cannot read it.
          </li>
          <li>
            Anyone who has those tokens can use your key through this server, and spend credits up to the budget, until
            the connection ends: when the app ends it, 30 days after its last renewal, or when the key is revoked.
          </li>
          <li>
            The name of the app is unverified. Go on only if you have just asked for this connection yourself, and know
            the address it returns to.
          </li>
        </ul>
      </section>
    </>,
  );
}

export const problemPage = (problem: string, back?: { href: string; host: string }): string =>
  document(
    'Not connected – Ad Library',
    <div class="card">
      <h1>This connection cannot be made</h1>
      <p>{problem}</p>
      {back && (
        <div class="buttons">
          <ReturnLink to={back.href}>Back to {back.host}</ReturnLink>
        </div>
      )}
    </div>,
  );
