import type { Content } from '../../ui/jsx.d.ts';
import { demoNotice, Page, renderPage } from '../../ui/page.tsx';
import { pageHeaders } from './page-headers.ts';

export interface WelcomeOptions {
  address: string;
  hasSignIn: boolean;
  isDemo: boolean;
}

const styles = `
main { max-width: 760px; gap: 32px }
header { border: 0; padding: 0 }
.address { font-size: 15px; font-weight: 600; user-select: all }
dl { display: grid; gap: 20px }
dl > div { display: grid; gap: 6px }
dt { font-weight: 650 }
dd { display: grid; gap: 8px; color: var(--soft) }
dd pre { color: var(--ink) }
`;

const json = (value: object) => JSON.stringify(value, null, 2);

/** The way into each host, in the order of `docs/hosts.md`. */
function ways({ address, hasSignIn, isDemo }: WelcomeOptions): [host: string, way: Content][] {
  const headers = (key: string) => (isDemo ? {} : { headers: { Authorization: `Bearer ${key}` } });
  const signIn: [string, Content][] = [
    [
      'claude.ai, Claude Desktop, Claude on the phone',
      'Settings → Connectors → Add custom connector. Enter the address, leave the OAuth fields empty, press Connect, and enter your API key on the page that opens.',
    ],
    [
      'ChatGPT',
      'Settings → Connectors → Create (developer mode must be on). Enter the address, choose OAuth, and enter your API key on the page that opens.',
    ],
  ];
  return [
    ...(hasSignIn ? signIn : []),
    [
      'Claude Code',
      <pre>
        claude mcp add --transport http ad-library {address}
        {!isDemo && ' --header "Authorization: Bearer svc_live_…"'}
      </pre>,
    ],
    [
      'VS Code',
      <>
        <p>In .vscode/mcp.json:</p>
        <pre>{json({ servers: { 'ad-library': { type: 'http', url: address, ...headers('svc_live_…') } } })}</pre>
      </>,
    ],
    [
      'Cursor',
      <>
        <p>In ~/.cursor/mcp.json:</p>
        <pre>{json({ mcpServers: { 'ad-library': { url: address, ...headers('svc_live_…') } } })}</pre>
      </>,
    ],
    [
      'Other hosts, and programs',
      `Streamable HTTP at the address${isDemo ? '' : ', with your API key in the header "Authorization: Bearer svc_live_…"'}. Add ?output=text for a model that reads text alone, or ?output=structured for a program that reads data alone.`,
    ],
  ];
}

export function welcomePage(options: WelcomeOptions): { html: string; headers: Record<string, string> } {
  const { address, hasSignIn, isDemo } = options;
  const html = renderPage(
    <Page title="Ad Library" styles={styles}>
      <header>
        {isDemo && demoNotice}
        <h1>Ad Library for your assistant</h1>
        <p>
          This server lets an assistant search ads, count and compare them, and write reports. Every answer says what it
          cost. Add the address below to your assistant, and ask a question there: this page is all there is to see in a
          browser.
        </p>
      </header>
      <section>
        <h2>The address</h2>
        <pre class="address">{address}</pre>
      </section>
      <section>
        <h2>How to add it</h2>
        <dl>
          {ways(options).map(([host, way]) => (
            <div>
              <dt>{host}</dt>
              <dd>{way}</dd>
            </div>
          ))}
        </dl>
      </section>
      <section>
        <h2>Your key</h2>
        <p>
          {isDemo
            ? 'No key is needed. Every ad here is generated, and nothing costs real credits.'
            : `Your API key begins with svc_live_ and comes from the developer portal of the service. Your credits are spent when your assistant searches, so give it a budget. ${
                hasSignIn
                  ? 'The page on which you sign in asks for one, and says what happens with your key.'
                  : 'Your key is sent with every request, and is not stored here.'
              }`}
        </p>
      </section>
    </Page>,
  );
  return { html, headers: pageHeaders(styles) };
}
