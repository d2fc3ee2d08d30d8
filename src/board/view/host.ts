import {
  type BoardAds,
  type BoardContext,
  type BoardEstimate,
  type BoardPictures,
  type BriefAd,
  boardKey,
  type FullAd,
} from '../payload.ts';

export type Message = Record<string, unknown>;
/** The host as the view sees it: JSON-RPC over `postMessage` (MCP Apps, *Communication Protocol*). */
export type Host = ReturnType<typeof connectHost>;

/** Answers to requests of the host; any other is refused. */
const answers: Record<string, object> = { ping: {}, 'ui/resource-teardown': {} };
const methodNotFound = { code: -32_601, message: 'The board does not know this method.' };

/** Connects to the window that shows this one. Messages of any other window are ignored. */
export function connectHost(handlers: Record<string, (params: Message) => void>) {
  const waiting = new Map<number, { resolve(result: Message): void; reject(error: Error): void }>();
  let lastId = 0;
  const send = (message: object) => window.parent.postMessage({ jsonrpc: '2.0', ...message }, '*');
  const answer = (id: unknown, method: string) => {
    const result = Object.hasOwn(answers, method) ? answers[method] : undefined;
    send(result === undefined ? { id, error: methodNotFound } : { id, result });
  };
  window.addEventListener('message', ({ source, data }: MessageEvent) => {
    if (source !== window.parent || data?.jsonrpc !== '2.0') return;
    const { id, method, result, error } = data;
    const params: Message = data.params ?? {};
    if (typeof method === 'string' && id !== undefined) return answer(id, method);
    if (typeof method === 'string') return Object.hasOwn(handlers, method) ? handlers[method]?.(params) : undefined;
    const call = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) call?.resolve(result ?? {});
    else call?.reject(new Error(typeof error?.message === 'string' ? error.message : 'The host refused.'));
  });
  return {
    notify: (method: string, params: object) => send({ method, params }),
    request: (method: string, params: object) =>
      new Promise<Message>((resolve, reject) => {
        const id = ++lastId;
        waiting.set(id, { resolve, reject });
        send({ id, method, params });
      }),
  };
}

export class ToolError extends Error {
  readonly canRetry: boolean;

  constructor(result: Message) {
    super(explanationIn(result));
    this.canRetry = canRetry(result);
  }
}

export type Server = ReturnType<typeof serverBehind>;

export function serverBehind(host: Host) {
  /** The word by which the server knows that its board calls, and not a model. */
  const page = document.querySelector<HTMLMetaElement>('meta[name="ad-library-page"]')?.content;
  const call = async <Answer extends object = BoardContext>(name: string, args: object): Promise<Answer> => {
    const silence = new Promise<never>((_, reject) => {
      setTimeout(() => reject(new Error('The host has not answered for two minutes.')), maxSilence);
    });
    const result = await Promise.race([host.request('tools/call', { name, arguments: args }), silence]);
    if (result.isError === true) throw new ToolError(result);
    return boardMeta(result) as Answer;
  };
  const callForAds = async <Ad extends BriefAd>(wanted: object): Promise<BoardAds<Ad>> => {
    const answer = await call<BoardAds<Ad>>('board_ads', { ...wanted, page });
    if (!Array.isArray(answer.ads))
      throw new Error('The host did not pass on the ads, or the server has been updated since this board was drawn.');
    return answer;
  };
  return {
    ads: (wanted: { gathering: string } | { ids: readonly string[] }) => callForAds<BriefAd>(wanted),
    fullAds: (ids: readonly string[]) => callForAds<FullAd>({ ids, detail: 'full' }),
    pictures: (ids: readonly string[]) => call<BoardPictures>('board_pictures', { ids, page }),
    search: (args: object) => call('search_ads', args),
    collections: async () => (await call('list_collections', {})).collections ?? [],
    save: async (collectionId: string, itemId: string) =>
      (await call('add_collection_item', { collectionId, itemType: 'ads', itemId })).added === true,
  };
}

/** In milliseconds: longer than a call takes, with time for a person whom the host asks first. */
const maxSilence = 120_000;

/** The part of a result that is for the board; undefined if a host dropped it. */
const boardMeta = (result: Message): BoardContext =>
  ((result._meta as Message | undefined)?.[boardKey] as BoardContext | undefined) ?? {};

const demoLine = /^DEMO DATA:[^\n]*(?:\n|$)/;

/** What the result of a failed call explains, without the line that every result of demo data begins with. */
export const explanationIn = (result: Message): string =>
  textOf(result).replace(demoLine, '').trim().slice(0, maxExplanation) || 'The call failed without an explanation.';

export const canRetry = ({ _meta }: Message): boolean =>
  ((_meta as Message | undefined)?.['ad-library/error'] as { retryable?: boolean } | undefined)?.retryable !== false;

/** In characters. Longer than any text of the server. */
const maxExplanation = 5000;

export const isDemo = (result: Message): boolean => boardMeta(result).isDemo === true || demoLine.test(textOf(result));

function textOf({ content }: Message): string {
  const [block] = Array.isArray(content) ? content : [];
  return typeof block?.text === 'string' ? block.text : '';
}

/** The part of a tool's result that is for the board; its data where a host replaces `_meta`, as ChatGPT on the web does. */
export function contextOf(result: Message): BoardContext {
  const context = boardMeta(result);
  if (context.tool !== undefined) return context;
  const { gathering, itemType, estimate, read, totalHits } = dataOf(result);
  return {
    ids: listed(result).map(({ id }) => String(id)),
    ...(typeof gathering === 'string' && { gathering }),
    ...(typeof totalHits === 'number' && { totalHits }),
    ...(itemType === 'pages' && { isPages: true }),
    ...(estimate ? { estimate: { ...(estimate as BoardEstimate), read: Number(read) } } : {}),
  };
}

/** Ads as a result lists them. After a restart of the server, these are all that the board has. */
export const adsIn = (result: Message): FullAd[] =>
  listed(result).map((item) => {
    // A landing page is opened only where the server has checked its address.
    const texts = Object.entries({ ...item, landingUrl: null }).filter(([, of]) => /string|number/.test(typeof of));
    const { lastSeen, lastSeenAt = lastSeen, stillRunning: active, countries, ...ad } = item;
    return {
      ...(Object.fromEntries(texts) as unknown as FullAd),
      changes: [],
      ...(typeof ad.body === 'string' && { firstLine: ad.body.split('\n', 1)[0] ?? '' }),
      ...(typeof lastSeenAt === 'string' && { lastSeenAt }),
      ...(typeof active === 'boolean' && { active }),
      ...(Array.isArray(countries) && { countries: countries.map(String) }),
    };
  });

const dataOf = ({ structuredContent }: Message): Message => (structuredContent as Message | undefined) ?? {};

function listed(result: Message): Message[] {
  const { items, tiles, itemType } = dataOf(result);
  const all = Array.isArray(items) && itemType !== 'pages' ? items : Array.isArray(tiles) ? tiles : [];
  return all.filter((item) => typeof item?.id === 'string');
}

/** Variables of the host that the page's own colours and fonts fall back from. */
const hostVariable = /^--(?:color|font|border|shadow)-[a-z\d-]+$/;

/** The host's theme and colours (MCP Apps, *Theming*), but not its fonts: their files would come from outside. */
export function applyTheme({ theme, styles, safeAreaInsets }: Message): void {
  const root = document.documentElement;
  if (theme === 'light' || theme === 'dark') root.style.colorScheme = theme;
  const variables = (styles as { variables?: Record<string, unknown> } | undefined)?.variables ?? {};
  for (const [name, value] of Object.entries(variables))
    if (typeof value === 'string' && hostVariable.test(name)) root.style.setProperty(name, value);
  for (const [side, pixels] of Object.entries((safeAreaInsets as object | undefined) ?? {}))
    if (typeof pixels === 'number') document.body.style.setProperty(`padding-${side}`, `${pixels}px`);
}

export interface Display {
  /** `inline`, between messages, or `fullscreen`; undefined where the host does not say. */
  mode?: string | undefined;
  canExpand: boolean;
  /** There is little room: ads come first, and all else behind a control. */
  isTight: boolean;
}

/** In pixels. The board scrolls within itself rather than push everything else away. */
const maxHeights = { inline: 500, unknown: 820 };
const littleRoom = '(max-width: 640px), (max-height: 560px)';

/** Tells the host how much room the board wants, and the board how it is shown. */
export function followSize(host: Host, show: (display: Display) => void) {
  let hostMax = Number.POSITIVE_INFINITY;
  let display: Display = { canExpand: false, isTight: false };
  let reported = '';
  const isLittle = matchMedia(littleRoom);
  const report = () => {
    const width = Math.ceil(document.documentElement.clientWidth);
    const max = display.mode === 'inline' ? maxHeights.inline : maxHeights.unknown;
    const height = Math.min(max, hostMax, Math.ceil(document.body.getBoundingClientRect().height));
    if (reported === `${width} ${height}`) return;
    reported = `${width} ${height}`;
    host.notify('ui/notifications/size-changed', { width, height });
  };
  const change = (more: Partial<Display>) => {
    display = { ...display, ...more };
    display.isTight = isLittle.matches || display.mode === 'inline';
    show(display);
    report();
  };
  new ResizeObserver(report).observe(document.body);
  isLittle.addEventListener('change', () => change({}));
  return ({ containerDimensions, displayMode, availableDisplayModes, mode = displayMode }: Message): void => {
    const { maxHeight } = (containerDimensions as { maxHeight?: number } | undefined) ?? {};
    if (typeof maxHeight === 'number' && maxHeight > 0) hostMax = maxHeight;
    change({
      ...(typeof mode === 'string' && { mode }),
      ...(Array.isArray(availableDisplayModes) && { canExpand: availableDisplayModes.includes('fullscreen') }),
    });
  };
}
