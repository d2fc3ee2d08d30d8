import type { Browser, FrameLocator, Page } from 'playwright-core';
import { hostPage } from './host-page.ts';

/** What the host needs of a client of the server. */
export interface HostClient {
  readResource(params: { uri: string }): Promise<{ contents: object[] }>;
  callTool(params: { name: string; arguments: Record<string, unknown> }): Promise<unknown>;
}

export interface HostOptions {
  width?: number;
  height?: number;
  /** The `hostContext` of the answer to `ui/initialize`. */
  context?: object;
  /** The `hostCapabilities` of the same answer, besides tools. */
  capabilities?: object;
  /** The tool call whose result the board shows. */
  tool: string;
  args?: Record<string, unknown>;
  /** Changes a result before the board gets it, as some hosts do. */
  passOn?: (result: Record<string, unknown>) => Record<string, unknown>;
  /** Waits before each call that the board makes. */
  onCall?: () => Promise<void>;
  /** Runs in each frame before its own scripts. */
  script?: string;
}

export interface HostMessage {
  method: string;
  params: Record<string, unknown>;
}

/** The board, shown by a host of a real browser in front of a real server. */
export interface ShownBoard {
  page: Page;
  board: FrameLocator;
  /** Every message that the board sent to its host. */
  messages(method?: string): Promise<HostMessage[]>;
  /** The calls that it made, by their tools. */
  calls: { name: string; arguments: Record<string, unknown> }[];
  /** Addresses that anything in the page asked for, without the host's own page. */
  requests: string[];
  /** What the browser's console and its uncaught errors say. */
  problems: string[];
  notify(method: string, params: object): Promise<void>;
  ask(method: string): Promise<unknown>;
  close(): Promise<void>;
}

const home = 'http://host.example/';
const all = { openLinks: {}, message: { text: {} }, updateModelContext: { text: {} } };

export async function showBoard(browser: Browser, client: HostClient, options: HostOptions): Promise<ShownBoard> {
  const { width = 1180, height = 820, context = {}, tool, args = {}, passOn = (result) => result } = options;
  const { contents } = await client.readResource({ uri: 'ui://ad-library/board' });
  const { text } = contents[0] as { text: string };
  const result = (await client.callTool({ name: tool, arguments: args })) as Record<string, unknown>;
  const browserContext = await browser.newContext({ viewport: { width, height } });
  const page = await browserContext.newPage();
  if (options.script) await page.addInitScript(options.script);
  const [calls, requests, problems]: [ShownBoard['calls'], string[], string[]] = [[], [], []];
  await page.route('**/*', (route) => {
    if (route.request().url() === home)
      return route.fulfill({ contentType: 'text/html', body: hostPage(text, { width, height }) });
    requests.push(route.request().url());
    return route.abort();
  });
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) problems.push(message.text());
  });
  page.on('pageerror', (error) => problems.push(String(error)));
  const notify: ShownBoard['notify'] = (method, params) =>
    page.evaluate(([name, given]) => (globalThis as unknown as HostWindow).notify(name, given), [
      method,
      params,
    ] as const);
  await page.exposeFunction('hostInitialize', () => ({
    protocolVersion: '2026-01-26',
    hostInfo: { name: 'test-host', version: '1' },
    hostCapabilities: { serverTools: {}, ...(options.capabilities ?? all) },
    hostContext: { theme: 'light', ...context },
  }));
  await page.exposeFunction('hostCallTool', async (call: ShownBoard['calls'][number]) => {
    calls.push(call);
    await options.onCall?.();
    return passOn((await client.callTool(call)) as Record<string, unknown>);
  });
  await page.exposeFunction('hostReady', async () => {
    await notify('ui/notifications/tool-input', { arguments: args });
    await notify('ui/notifications/tool-result', passOn(result));
  });
  await page.goto(home);
  return {
    page,
    board: page.frameLocator('iframe'),
    messages: async (method) => {
      const all = await page.evaluate(() => (globalThis as unknown as HostWindow).received);
      return all.filter((message) => method === undefined || message.method === method);
    },
    calls,
    requests,
    problems,
    notify,
    ask: (method) => page.evaluate((name) => (globalThis as unknown as HostWindow).ask(name), method),
    close: () => browserContext.close(),
  };
}

/** What the host's page leaves in its window. */
interface HostWindow {
  received: HostMessage[];
  notify(method: string, params: object): void;
  ask(method: string): Promise<unknown>;
}
