import { readFileSync } from 'node:fs';
import type { Browser } from 'playwright-core';

interface HostClient {
  readResource(params: { uri: string }): Promise<{ contents: object[] }>;
  callTool(params: { name: string; arguments: Record<string, unknown> }): Promise<unknown>;
}

type Result = Record<string, unknown>;

/** Options of the simulated MCP host that shows the ad board. */
export interface HostOptions {
  width?: number;
  height?: number;
  /** The `hostContext` that the host returns from `ui/initialize`. */
  context?: object;
  /** The `hostCapabilities` that the host returns from `ui/initialize`, in addition to tools. */
  capabilities?: object;
  /** The tool whose result the board shows. */
  tool: string;
  args?: Record<string, unknown>;
  /** Modifies a tool result before the board receives it, as some hosts do. */
  modifyResult?: (result: Result) => Result;
  /** Runs before each tool call of the board. If it throws, the host rejects the call. */
  beforeCall?: (call: BoardCall) => unknown;
  /** A script that runs in the board page before the board's own script. */
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

/** An ad board in a browser, and the messages that it exchanged with its host. */
export type ShownBoard = Awaited<ReturnType<Awaited<ReturnType<typeof openHostPage>>['show']>>;

const hostUrl = 'http://host.example/';
const fullCapabilities = { openLinks: {}, message: { text: {} }, updateModelContext: { text: {} } };

/** Opens a browser page with a simulated MCP host that can show ad boards one after another. */
export async function openHostPage(browser: Browser) {
  const browserContext = await browser.newContext({ reducedMotion: 'reduce' });
  const page = await browserContext.newPage();
  // Allow 30 seconds for each action, because a busy machine can be slow.
  page.setDefaultTimeout(30_000);
  const callInHost = (functionName: string, ...args: unknown[]): Promise<unknown> =>
    page.evaluate(`window.${functionName}(...${JSON.stringify(args)})`);
  let currentBoard = {} as { html: string; client: HostClient; options: HostOptions; result: Result };
  /** The tool calls, network requests and console messages of the current board. */
  let [calls, requests, problems]: [BoardCall[], string[], string[]] = [[], [], []];
  const applyModification = ({ modifyResult }: HostOptions, result: Result) => modifyResult?.(result) ?? result;
  await page.route('**/*', (route) => {
    const address = route.request().url();
    if (address === hostUrl) return route.fulfill({ contentType: 'text/html', body: hostPage(currentBoard.html) });
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
    hostCapabilities: { serverTools: {}, ...(currentBoard.options.capabilities ?? fullCapabilities) },
    hostContext: { theme: 'light', ...currentBoard.options.context },
  }));
  await page.exposeFunction('hostCallTool', async (call: BoardCall) => {
    calls.push(call);
    // Another board may be shown before this call ends, so use the options of the board that made the call.
    const { client, options } = currentBoard;
    await options.beforeCall?.(call);
    return applyModification(options, (await client.callTool(call)) as Result);
  });
  await page.exposeFunction('hostResult', () => [
    ['ui/notifications/tool-input', { arguments: currentBoard.options.args ?? {} }],
    ['ui/notifications/tool-result', applyModification(currentBoard.options, currentBoard.result)],
  ]);
  return {
    /** Calls a tool of a real server and shows its result on the ad board in the browser. */
    show: async (client: HostClient, options: HostOptions) => {
      // Leave the previous board first, so that its late calls do not count for this board.
      await page.goto('about:blank');
      const { contents } = await client.readResource({ uri: 'ui://ad-library/board' });
      const { tool, args = {}, script, width = 1180, height = 820 } = options;
      const result = (await client.callTool({ name: tool, arguments: args })) as Result;
      const [{ text }] = contents as [{ text: string }];
      const html = script ? text.replace('<head>', () => `<head><script>${script}</script>`) : text;
      currentBoard = { html, client, options, result };
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
        /** The URLs that the page requested, except the host's own page. */
        requests,
        /** Uncaught errors, and errors and warnings in the browser console. */
        problems,
        notify: (method: string, params: object) => callInHost('notify', method, params),
        ask: (method: string) => callInHost('ask', method),
        /** Makes the host return an error for a method. */
        refuse: (method: string, message: string) => callInHost('refuse', method, message),
        /** Makes the host never respond to a method. */
        ignore: (method: string) => callInHost('ignore', method),
      };
    },
    close: () => browserContext.close(),
  };
}

const hostPage = (board: string): string =>
  readFileSync(new URL('host.html', import.meta.url), 'utf8').replace("'BOARD'", () =>
    JSON.stringify(board).replaceAll('<', '\\u003c'),
  );
