import { buildChecksBoardData, type CheckWatchesResult } from '../../watches/board-data.ts';
import {
  type BoardAdsResult,
  type BoardData,
  type BoardEstimate,
  type BoardPicturesResult,
  type BriefAd,
  boardMetaKey,
  type FullAd,
} from '../payload.ts';

/** A JSON object in a JSON-RPC message from the host: the parameters or the result of the message. */
export type JsonObject = Record<string, unknown>;
/** The connection to the host, which uses JSON-RPC over `postMessage` (MCP Apps, *Communication Protocol*). */
export type HostConnection = ReturnType<typeof connectHost>;

/**
 * The requests that the board accepts from the host, by method, each with the response that the board sends. The board
 * rejects all other requests.
 */
const responsesByMethod: Record<string, object> = { ping: {}, 'ui/resource-teardown': {} };
const methodNotFoundError = { code: -32_601, message: 'The board does not know this method.' };

/**
 * Connects to the window of the host that embeds the board. Messages from other windows are ignored.
 * @param notificationHandlers functions that handle the notifications of the host, by method
 */
export function connectHost(notificationHandlers: Record<string, (params: JsonObject) => void>) {
  const pendingRequests = new Map<number, { resolve(result: JsonObject): void; reject(error: Error): void }>();
  let lastRequestId = 0;
  const sendMessage = (message: object) => window.parent.postMessage({ jsonrpc: '2.0', ...message }, '*');
  const respond = (id: unknown, method: string) => {
    const result = Object.hasOwn(responsesByMethod, method) ? responsesByMethod[method] : undefined;
    sendMessage(result === undefined ? { id, error: methodNotFoundError } : { id, result });
  };
  window.addEventListener('message', ({ source, data }: MessageEvent) => {
    if (source !== window.parent || data?.jsonrpc !== '2.0') return;
    const { id, method, result, error } = data;
    const params: JsonObject = data.params ?? {};
    if (typeof method === 'string' && id !== undefined) return respond(id, method);
    if (typeof method === 'string')
      return Object.hasOwn(notificationHandlers, method) ? notificationHandlers[method]?.(params) : undefined;
    const request = pendingRequests.get(id);
    pendingRequests.delete(id);
    if (error === undefined) request?.resolve(result ?? {});
    else request?.reject(new Error(typeof error?.message === 'string' ? error.message : 'The host refused.'));
  });
  return {
    notify: (method: string, params: object) => sendMessage({ method, params }),
    request: (method: string, params: object) =>
      new Promise<JsonObject>((resolve, reject) => {
        const id = ++lastRequestId;
        pendingRequests.set(id, { resolve, reject });
        sendMessage({ id, method, params });
      }),
  };
}

/** Thrown when a tool returns an error result. The board shows the message of this error to the user. */
export class ToolError extends Error {
  /** True or false if the server states whether a retry may help. Undefined otherwise. See `readIsRetryable`. */
  readonly isRetryable: boolean | undefined;

  constructor(toolResult: JsonObject) {
    super(getErrorExplanation(toolResult));
    this.isRetryable = readIsRetryable(toolResult);
  }
}

/** The functions with which the board calls tools of the MCP server. */
export type ToolClient = ReturnType<typeof createToolClient>;

/** Returns functions that call the server's tools through the host. */
export function createToolClient(host: HostConnection) {
  /**
   * A token in the HTML of this page. Models never see this token, so the server knows that a call with the token comes
   * from the board.
   */
  const pageToken = document.querySelector<HTMLMetaElement>('meta[name="ad-library-page"]')?.content;
  const callTool = async <Response extends object = BoardData>(toolName: string, args: object): Promise<Response> => {
    const responseTimeout = new Promise<never>((_, reject) => {
      setTimeout(() => reject(new Error('The host has not answered for two minutes.')), responseTimeoutMs);
    });
    const result = await Promise.race([
      host.request('tools/call', { name: toolName, arguments: args }),
      responseTimeout,
    ]);
    if (result.isError === true) throw new ToolError(result);
    return getBoardData(result) as Response;
  };
  const readAds = async <Ad extends BriefAd>(args: object): Promise<BoardAdsResult<Ad>> => {
    const response = await callTool<BoardAdsResult<Ad>>('board_ads', { ...args, page: pageToken });
    if (!Array.isArray(response.ads))
      throw new Error('The host did not pass on the ads, or the server has been updated since this board was drawn.');
    return response;
  };
  return {
    readAds: (args: { gathering: string } | { ids: readonly string[] }) => readAds<BriefAd>(args),
    readFullAds: (ids: readonly string[]) => readAds<FullAd>({ ids, detail: 'full' }),
    readPictures: (ids: readonly string[]) => callTool<BoardPicturesResult>('board_pictures', { ids, page: pageToken }),
    searchAds: (args: object) => callTool('search_ads', args),
    listCollections: async () => (await callTool('list_collections', {})).collections ?? [],
    /** Saves an ad to a collection. Resolves to false if the ad was already in the collection. */
    saveAd: async (collectionId: string, itemId: string) =>
      (await callTool('add_collection_item', { collectionId, itemType: 'ads', itemId })).added === true,
  };
}

/**
 * The time in milliseconds after which a call fails if the host has not responded. It suffices for any call, even if
 * the user must first grant a permission in the host.
 */
const responseTimeoutMs = 120_000;

/** Reads the board's data from the `_meta` field of a result. Returns an empty object if the host removed the data. */
const getBoardData = (toolResult: JsonObject): BoardData =>
  ((toolResult._meta as JsonObject | undefined)?.[boardMetaKey] as BoardData | undefined) ?? {};

const demoLinePattern = /^DEMO DATA:[^\n]*(?:\n|$)/;

/** Returns the error text of a failed call, without the line about demo data at its start. */
export const getErrorExplanation = (toolResult: JsonObject): string =>
  getResultText(toolResult).replace(demoLinePattern, '').trim().slice(0, maxExplanationLength) ||
  'The call failed without an explanation.';

/**
 * Reads from an error result whether the same call may succeed later (true) or would fail again (false). Returns
 * undefined if the result does not say so, e.g. because the host created the error.
 */
export const readIsRetryable = ({ _meta }: JsonObject): boolean | undefined =>
  ((_meta as JsonObject | undefined)?.['ad-library/error'] as { retryable?: boolean } | undefined)?.retryable;

/**
 * The maximum length of an error text, in characters. Longer texts are cut off. The server's error texts are shorter.
 */
const maxExplanationLength = 5000;

/** Returns true if a result contains demo data. The board then shows a notice that the ads are fictional. */
export const isDemoResult = (toolResult: JsonObject): boolean =>
  getBoardData(toolResult).isDemo === true || demoLinePattern.test(getResultText(toolResult));

function getResultText({ content }: JsonObject): string {
  const [block] = Array.isArray(content) ? content : [];
  return typeof block?.text === 'string' ? block.text : '';
}

/**
 * Returns the board's data from a tool result. Some hosts, such as ChatGPT on the web, remove this data from `_meta`.
 * The function then derives the data from the structured content of the result.
 */
export function readBoardData(toolResult: JsonObject): BoardData {
  const boardData = getBoardData(toolResult);
  if (boardData.tool !== undefined) return boardData;
  const structuredContent = getStructuredContent(toolResult);
  const { gathering, itemType, estimate, read, totalHits, watches } = structuredContent;
  if (Array.isArray(watches)) return buildChecksBoardData(structuredContent as unknown as CheckWatchesResult);
  return {
    ids: listAdItems(toolResult).map(({ id }) => String(id)),
    ...(typeof gathering === 'string' && { gathering }),
    ...(typeof totalHits === 'number' && { totalHits }),
    ...(itemType === 'pages' && { isPages: true }),
    ...(estimate ? { estimate: { ...(estimate as BoardEstimate), read: Number(read) } } : {}),
  };
}

/**
 * Reads the ads from the structured content of a tool result. After a restart, the server may no longer store these
 * ads. The tool result is then their only source.
 */
export const readAdsInResult = (toolResult: JsonObject): FullAd[] =>
  listAdItems(toolResult).map((adItem) => {
    // Remove `landingUrl`, because the board may open only URLs that the server has checked.
    const fields = Object.entries({ ...adItem, landingUrl: null });
    const scalarFields = fields.filter(([, value]) => /string|number/.test(typeof value));
    const { lastSeen, lastSeenAt = lastSeen, stillRunning: active, countries, ...ad } = adItem;
    return {
      ...(Object.fromEntries(scalarFields) as unknown as FullAd),
      changes: [],
      ...(typeof ad.body === 'string' && { firstLine: ad.body.split('\n', 1)[0] ?? '' }),
      ...(typeof lastSeenAt === 'string' && { lastSeenAt }),
      ...(typeof active === 'boolean' && { active }),
      ...(Array.isArray(countries) && { countries: countries.map(String) }),
    };
  });

const getStructuredContent = ({ structuredContent }: JsonObject): JsonObject =>
  (structuredContent as JsonObject | undefined) ?? {};

/**
 * Returns the ads in a tool result: the items of a list, or the tiles of a `view_ads` result. Advertiser pages are
 * omitted, because the board shows only ads.
 */
function listAdItems(toolResult: JsonObject): JsonObject[] {
  const { items, tiles, itemType } = getStructuredContent(toolResult);
  const listedItems = Array.isArray(items) && itemType !== 'pages' ? items : Array.isArray(tiles) ? tiles : [];
  return listedItems.filter((item) => typeof item?.id === 'string');
}

/**
 * Matches names of CSS variables with which a host overrides the colors, fonts, borders and shadows of the board, e.g.
 * `--color-text-primary`.
 */
const hostVariablePattern = /^--(?:color|font|border|shadow)-[a-z\d-]+$/;

/**
 * Applies the host's theme, colors and safe areas to the page (MCP Apps, *Theming*). Does not load the host's fonts,
 * because the page must not load anything from other origins.
 */
export function applyTheme({ theme, styles, safeAreaInsets }: JsonObject): void {
  const rootElement = document.documentElement;
  if (theme === 'light' || theme === 'dark') rootElement.style.colorScheme = theme;
  const variables = (styles as { variables?: Record<string, unknown> } | undefined)?.variables ?? {};
  for (const [name, value] of Object.entries(variables))
    if (typeof value === 'string' && hostVariablePattern.test(name)) rootElement.style.setProperty(name, value);
  for (const [side, pixels] of Object.entries((safeAreaInsets as object | undefined) ?? {}))
    if (typeof pixels === 'number') document.body.style.setProperty(`padding-${side}`, `${pixels}px`);
}

/** The way in which the MCP host displays the board. */
export interface BoardDisplay {
  /** `inline` (within the conversation) or `fullscreen`. Undefined if the host does not report the mode. */
  mode?: string | undefined;
  canShowFullScreen: boolean;
  /**
   * True if there is little space. The board then hides charts and filters behind a button, so that the user sees the
   * ads first.
   */
  hasLittleSpace: boolean;
}

/**
 * The maximum height of the board in pixels, for the display mode `inline` and for all other modes. A taller board gets
 * a scroll bar, so that the conversation around the board remains visible.
 */
const maxHeightsPx = { inline: 500, otherModes: 820 };
const tightLayoutQuery = '(max-width: 640px), (max-height: 560px)';

/**
 * Reports the size of the board to the host whenever the size changes.
 * @param onDisplayChange called when the display mode or the available space changes, or when the host allows or
 * forbids full screen
 * @returns a function that must be called with each new host context
 */
export function observeDisplay(host: HostConnection, onDisplayChange: (display: BoardDisplay) => void) {
  let hostMaxHeightPx = Number.POSITIVE_INFINITY;
  let display: BoardDisplay = { canShowFullScreen: false, hasLittleSpace: false };
  let reportedSize = '';
  const tightLayout = matchMedia(tightLayoutQuery);
  const reportSize = () => {
    const width = Math.ceil(document.documentElement.clientWidth);
    const maxHeight = display.mode === 'inline' ? maxHeightsPx.inline : maxHeightsPx.otherModes;
    const height = Math.min(maxHeight, hostMaxHeightPx, Math.ceil(document.body.getBoundingClientRect().height));
    if (reportedSize === `${width} ${height}`) return;
    reportedSize = `${width} ${height}`;
    host.notify('ui/notifications/size-changed', { width, height });
  };
  const updateDisplay = (change: Partial<BoardDisplay>) => {
    display = { ...display, ...change };
    display.hasLittleSpace = tightLayout.matches || display.mode === 'inline';
    onDisplayChange(display);
    reportSize();
  };
  new ResizeObserver(reportSize).observe(document.body);
  tightLayout.addEventListener('change', () => updateDisplay({}));
  return ({ containerDimensions, displayMode, availableDisplayModes, mode = displayMode }: JsonObject): void => {
    const { maxHeight } = (containerDimensions as { maxHeight?: number } | undefined) ?? {};
    if (typeof maxHeight === 'number' && maxHeight > 0) hostMaxHeightPx = maxHeight;
    updateDisplay({
      ...(typeof mode === 'string' && { mode }),
      ...(Array.isArray(availableDisplayModes) && { canShowFullScreen: availableDisplayModes.includes('fullscreen') }),
    });
  };
}
