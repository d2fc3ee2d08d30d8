import type { Content } from '../../../ui/jsx.d.ts';
import { Form, ReturnLink } from '../../../ui/links.tsx';
import { Page, renderPage } from '../../../ui/page.tsx';
import { sanitizeLine } from '../../../views/safe-text.ts';
import { createPageHeaders } from '../page-headers.ts';
import type { Client } from './clients.ts';

/**
 * The content of the sign-in page: the app that requests access, the URI to which the user returns, and the hidden form
 * fields.
 */
export interface SignInPageContent {
  client: Pick<Client, 'name' | 'host'>;
  redirectUri: string;
  /** The parameters of the OAuth authorization request, as hidden form fields. The form submits them unchanged. */
  fields: Record<string, string>;
}

/**
 * A problem with the submitted sign-in form. The page shows the problem next to `field`, or above all fields if `field`
 * is `form`.
 */
export interface FormProblem {
  field: 'api_key' | 'budget' | 'form';
  text: string;
  /**
   * The credit budget that the user entered, so that the page can show it again. The page never shows the API key
   * again.
   */
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

/** The HTTP headers of the sign-in page and of all other sign-in responses that a browser may show as a page. */
export const signInPageHeaders = createPageHeaders(styles);

const renderDocument = (title: string, children: Content): string =>
  renderPage(
    <Page title={title} styles={styles}>
      <p class="brand">Ad Library</p>
      {children}
    </Page>,
  );

/**
 * Returns the host of a redirect URI. For a loopback host, the text also says that the app runs on the user's own
 * computer.
 */
export function describeRedirectHost(redirectUri: string): string {
  const { protocol, host } = new URL(redirectUri);
  return protocol === 'http:' ? `${host} (a program on your own computer)` : host;
}

/**
 * Renders the page on which a user allows an app to use their API key.
 * @param serviceHost the host of the service that issued the API key
 * @param problem the problem with the submitted form, if the page is shown a second time
 */
export function renderSignInPage(serviceHost: string, pageContent: SignInPageContent, problem?: FormProblem): string {
  const { client, redirectUri, fields } = pageContent;
  const clientName = client.name === undefined ? undefined : sanitizeLine(client.name.replace(/[“”"]/g, "'"));
  const renderProblem = (field: FormProblem['field']) =>
    problem?.field === field && (
      <p class="wrong" id={`${field}-wrong`} role="alert">
        {problem.text}
      </p>
    );
  const hasProblem = (field: 'api_key' | 'budget') => problem?.field === field || undefined;
  const listDescriptionIds = (field: 'api_key' | 'budget') =>
    `${hasProblem(field) ? `${field}-wrong ` : ''}${field}-hint`;
  const connectionDetails = [
    ['App', clientName && `${clientName} (the name it gives itself)`],
    ['From', client.host],
    ['Returns to', describeRedirectHost(redirectUri)],
    ['Key of', serviceHost],
  ];
  const title = `Connect ${clientName ?? 'an app'} – Ad Library`;
  return renderDocument(
    problem ? `Not connected yet – ${title}` : title,
    <>
      <div class="card">
        <h1>Connect {clientName === undefined ? 'an app' : `“${clientName}”`} with your API key?</h1>
        <dl>
          {connectionDetails.map(
            ([label, value]) =>
              value !== undefined && (
                <>
                  <dt>{label}</dt>
                  <dd>{value}</dd>
                </>
              ),
          )}
        </dl>
        <Form to="/authorize" isPost>
          {Object.entries(fields).map(([name, value]) => (
            <input type="hidden" name={name} value={value} />
          ))}
          {renderProblem('form')}
          <label for="api_key">Your API key of {serviceHost}</label>
          <input
            id="api_key"
            name="api_key"
            type="password"
            required
            autocomplete="off"
            autocapitalize="none"
            spellcheck={false}
            maxLength={300}
            aria-invalid={hasProblem('api_key')}
            aria-describedby={listDescriptionIds('api_key')}
            autofocus={!hasProblem('budget')}
          />
          {renderProblem('api_key')}
          <p class="hint" id="api_key-hint">
            {problem ? 'Enter your key again. For safety, the page does not keep it. ' : ''}Your key begins with
            svc_live_. The service checks the key before the app gets access.
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
            aria-invalid={hasProblem('budget')}
            aria-describedby={listDescriptionIds('budget')}
            autofocus={hasProblem('budget') ?? false}
          />
          {renderProblem('budget')}
          <p class="hint" id="budget-hint">
            The most credits that this connection may spend in total, as a whole number. Leave the field empty for no
            limit.
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
            Your key is encrypted in the tokens that the app gets. Only this server can decrypt the tokens. The server
            does not store your key, and the app cannot read it.
          </li>
          <li>
            Anyone who has the tokens can use your key through this server and spend credits up to the budget. This is
            possible until the connection ends: when the app ends it, when the key is revoked, or 30 days after the last
            renewal.
          </li>
          <li>
            The name of the app is unverified. Continue only if you have just requested this connection yourself and you
            know the address that it returns to.
          </li>
        </ul>
      </section>
    </>,
  );
}

/**
 * Renders a page that explains why the app cannot be connected to the user's API key.
 * @param returnLink a link that takes the user back to the app: its URL, and the host to show
 */
export const renderProblemPage = (problem: string, returnLink?: { href: string; host: string }): string =>
  renderDocument(
    'Not connected – Ad Library',
    <div class="card">
      <h1>This connection cannot be made</h1>
      <p>{problem}</p>
      {returnLink && (
        <div class="buttons">
          <ReturnLink to={returnLink.href}>Back to {returnLink.host}</ReturnLink>
        </div>
      )}
    </div>,
  );
