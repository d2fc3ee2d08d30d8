import type { Content } from '../../ui/jsx.d.ts';
import { demoNotice, Page, renderPage } from '../../ui/page.tsx';
import { createPageHeaders } from './page-headers.ts';

/** The content of the welcome page, which tells users how to add this server to their MCP host, e.g. Claude. */
export interface WelcomePageContent {
  /** The URL that users enter in their MCP host. */
  endpointUrl: string;
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

const formatJson = (value: object) => JSON.stringify(value, null, 2);

/** Returns the instructions for adding the server to each MCP host, in the order of `docs/hosts.md`. */
function listSetupSteps({
  endpointUrl,
  hasSignIn,
  isDemo,
}: WelcomePageContent): [host: string, instructions: Content][] {
  const buildHeadersWithKey = (key: string) => (isDemo ? {} : { headers: { Authorization: `Bearer ${key}` } });
  const hostsWithSignIn: [string, Content][] = [
    [
      'claude.ai, Claude Desktop, Claude on the phone',
      'Open Settings → Connectors → Add custom connector. Enter the address, leave the OAuth fields empty, and press Connect. Enter your API key on the page that opens.',
    ],
    [
      'ChatGPT',
      'Turn on developer mode, then open Settings → Connectors → Create. Enter the address and choose OAuth. Enter your API key on the page that opens.',
    ],
  ];
  return [
    ...(hasSignIn ? hostsWithSignIn : []),
    [
      'Claude Code',
      <pre>
        claude mcp add --transport http ad-library {endpointUrl}
        {!isDemo && ' --header "Authorization: Bearer svc_live_…"'}
      </pre>,
    ],
    [
      'VS Code',
      <>
        <p>In .vscode/mcp.json:</p>
        <pre>
          {formatJson({
            servers: { 'ad-library': { type: 'http', url: endpointUrl, ...buildHeadersWithKey('svc_live_…') } },
          })}
        </pre>
      </>,
    ],
    [
      'Cursor',
      <>
        <p>In ~/.cursor/mcp.json:</p>
        <pre>
          {formatJson({ mcpServers: { 'ad-library': { url: endpointUrl, ...buildHeadersWithKey('svc_live_…') } } })}
        </pre>
      </>,
    ],
    [
      'Other hosts and programs',
      `Use streamable HTTP at the address${isDemo ? '' : ', with your API key in the header "Authorization: Bearer svc_live_…"'}. If the model reads only text, add ?output=text to the address. If a program reads only data, add ?output=structured.`,
    ],
  ];
}

/**
 * Renders the welcome page, which browsers show. It contains the URL of this server and the steps for adding the server
 * to each MCP host.
 */
export function renderWelcomePage(pageContent: WelcomePageContent): { html: string; headers: Record<string, string> } {
  const { endpointUrl, hasSignIn, isDemo } = pageContent;
  const html = renderPage(
    <Page title="Ad Library" styles={styles}>
      <header>
        {isDemo && demoNotice}
        <h1>Ad Library for your assistant</h1>
        <p>
          This server lets an assistant search ads, count and compare them, and write reports. Every answer states how
          many credits it cost. Add the address below to your assistant, then ask your questions there. In a browser,
          the server shows only this page.
        </p>
      </header>
      <section>
        <h2>The address</h2>
        <pre class="address">{endpointUrl}</pre>
      </section>
      <section>
        <h2>How to add it</h2>
        <dl>
          {listSetupSteps(pageContent).map(([host, instructions]) => (
            <div>
              <dt>{host}</dt>
              <dd>{instructions}</dd>
            </div>
          ))}
        </dl>
      </section>
      <section>
        <h2>Your key</h2>
        <p>
          {isDemo
            ? 'No key is needed. Every ad here is generated, and nothing costs real credits.'
            : `Your API key begins with svc_live_ and comes from the developer portal of the service. Your assistant spends your credits when it searches, so set a budget. ${
                hasSignIn
                  ? 'The sign-in page asks for a budget and explains what happens with your key.'
                  : 'Your host sends the key with every request, and the server does not store it.'
              }`}
        </p>
      </section>
    </Page>,
  );
  return { html, headers: createPageHeaders(styles) };
}
