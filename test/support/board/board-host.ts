import { readFileSync } from 'node:fs';
import type { Browser } from 'playwright-core';

interface HostClient {
  readResource(params: { uri: string }): Promise<{ contents: object[] }>;
  callTool(params: { name: string; arguments: Record<string, unknown> }): Promise<unknown>;
}

type Result = Record<string, unknown>;

export interface HostOptions {
  width?: number;
  height?: number;
  /** The `hostContext` of the answer to `ui/initialize`. */
  context?: object;
  /** The `hostCapabilities` of the same answer, besides tools. */
  capabilities?: object;
  tool: string;
  args?: Record<string, unknown>;
  /** Changes a result before the board gets it, as some hosts do. */
  passOn?: (result: Result) => Result;
  /** Waited for before each call that the board makes; the host refuses the call where this throws. */
  beforeCall?: (call: BoardCall) => unknown;
  script?: string;
}

interface HostMessage {
  method: string;
  params: Record<string, unknown>;
}

interface BoardCall {
  name: string;
  arguments: Record<string, unknown>;
}

export type ShownBoard = Awaited<ReturnType<Awaited<ReturnType<typeof openHostPage>>['show']>>;

const hostUrl = 'http://host.example/';
const fullCapabilities = { openLinks: {}, message: { text: {} }, updateModelContext: { text: {} } };

/** A page of a browser, where the host shows one board after the other. */
export async function openHostPage(browser: Browser) {
  const browserContext = await browser.newContext({ reducedMotion: 'reduce' });
  const page = await browserContext.newPage();
  // A busy machine may need long for what a person waits a moment for.
  page.setDefaultTimeout(60_000);
  const inHost = (run: string, ...args: unknown[]): Promise<unknown> =>
    page.evaluate(`window.${run}(...${JSON.stringify(args)})`);
  let current = {} as { html: string; client: HostClient; options: HostOptions; result: Result };
  /** What the board now shown has asked for and complained of. */
  let [calls, requests, problems]: [BoardCall[], string[], string[]] = [[], [], []];
  const passOn = (result: Result) => current.options.passOn?.(result) ?? result;
  await page.route('**/*', (route) => {
    const address = route.request().url();
    if (address === hostUrl) return route.fulfill({ contentType: 'text/html', body: hostPage(current.html) });
    requests.push(address);
    return route.abort();
  });
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) problems.push(message.text());
  });
  page.on('pageerror', (error) => problems.push(String(error)));
  await page.exposeFunction('hostInitialize', () => ({
    protocolVersion: '2026-01-26',
    hostInfo: { name: 'test-host', version: '1' },
    hostCapabilities: { serverTools: {}, ...(current.options.capabilities ?? fullCapabilities) },
    hostContext: { theme: 'light', ...current.options.context },
  }));
  await page.exposeFunction('hostCallTool', async (call: BoardCall) => {
    calls.push(call);
    await current.options.beforeCall?.(call);
    return passOn((await current.client.callTool(call)) as Result);
  });
  await page.exposeFunction('hostResult', () => [
    ['ui/notifications/tool-input', { arguments: current.options.args ?? {} }],
    ['ui/notifications/tool-result', passOn(current.result)],
  ]);
  return {
    /** The board, shown by a host of a real browser in front of a real server. */
    show: async (client: HostClient, options: HostOptions) => {
      // What the board before this one still calls is its own.
      await page.goto('about:blank');
      const { contents } = await client.readResource({ uri: 'ui://ad-library/board' });
      const { tool, args = {}, script, width = 1180, height = 820 } = options;
      const result = (await client.callTool({ name: tool, arguments: args })) as Result;
      const [{ text }] = contents as [{ text: string }];
      const html = script ? text.replace('<head>', () => `<head><script>${script}</script>`) : text;
      current = { html, client, options, result };
      [calls, requests, problems] = [[], [], []];
      await page.setViewportSize({ width, height });
      await page.goto(hostUrl);
      return {
        page,
        board: page.frameLocator('iframe'),
        messages: async (method?: string) =>
          ((await page.evaluate('window.received')) as HostMessage[]).filter(
            (message) => method === undefined || message.method === method,
          ),
        calls,
        /** Addresses that anything in the page asked for, without the host's own page. */
        requests,
        /** What the browser's console and its uncaught errors say. */
        problems,
        notify: (method: string, params: object) => inHost('notify', method, params),
        ask: (method: string) => inHost('ask', method),
        /** Lets the host answer a method with an error, or never. */
        refuse: (method: string, message: string) => inHost('refuse', method, message),
        ignore: (method: string) => inHost('ignore', method),
      };
    },
    close: () => browserContext.close(),
  };
}

const hostPage = (board: string): string =>
  readFileSync(new URL('host.html', import.meta.url), 'utf8').replace("'BOARD'", () =>
    JSON.stringify(board).replaceAll('<', '\\u003c'),
  );
