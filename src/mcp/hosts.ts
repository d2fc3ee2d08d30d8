import hostRows from './hosts.json' with { type: 'json' };

/** The values of `AD_LIBRARY_OUTPUT` and of the query parameter `output`. */
export const outputSettings = ['auto', 'both', 'text', 'structured'] as const;
export type OutputSetting = (typeof outputSettings)[number];

/** Which parts a result contains: text and data (`both`), text only, or data with one line of text (`structured`). */
export type OutputForm = 'both' | 'text' | 'structured';

/**
 * What is known about the client of a request. A client can choose any name, so the name affects only the form of
 * results.
 */
export interface ClientIdentity {
  name?: string | undefined;
  /** True if the client announces that it can show MCP Apps. Undefined if its capabilities are unknown. */
  announcesBoard?: boolean | undefined;
}

/** The form in which results are returned to a client. */
export interface ResultForm {
  output: OutputForm;
  links: boolean;
  pictures: boolean;
  /** True if the client receives the tools of the board, and the data for the board in results. */
  board: boolean;
  /** Maximum number of tokens of the text. The data may have twice as many. */
  resultTokens: number;
  /** Maximum number of UTF-8 bytes of the text. The data may have twice as many. Infinite for most hosts. */
  resultBytes: number;
}

/** How a host treats tool lists and results. MCP does not announce this, so each entry states its evidence. */
interface Host {
  title: string;
  /** Client names that the host sends when it connects. */
  names: readonly string[];
  /** Prefixes of client names, for a host that appends a name chosen by its user. */
  prefixes?: readonly string[];
  output: OutputForm;
  reads: string;
  /** Set if the host accepts resource links in results. Other hosts may fail on a link. */
  links?: true;
  /** Set if the host can show the board. */
  board?: true;
  /** Set to false if the host drops pictures, or passes them to its model as base64 text. */
  pictures?: false;
  /** Maximum number of tokens of a result, for a host that cuts longer results or replaces them with files. */
  maxResultTokens?: number;
  /** Number of UTF-8 bytes above which the host cuts a result or replaces it with a file. */
  maxResultBytes?: number;
  /** URL of public evidence. Either this field or `tried` is set. */
  source?: string;
  /** The host version that we tested. Either this field or `source` is set. */
  tried?: string;
  /** Date of the evidence. */
  day: string;
}

/**
 * All known hosts. Client names without a source of their own come from the npm package mcp-client-capabilities 0.0.14.
 */
export const hosts = hostRows as readonly Host[];

const hostsByName = new Map(hosts.flatMap((host) => host.names.map((name) => [name, host])));

/** Suffix that the bridge `mcp-remote` adds to a client name, e.g. `claude-ai (via mcp-remote 0.1.37)`. */
const bridgeSuffix = / \(via mcp-remote [\d.]{1,20}\)$/;

function findHost(client = ''): Host | undefined {
  const name = client.replace(bridgeSuffix, '');
  return hostsByName.get(name) ?? hosts.find(({ prefixes = [] }) => prefixes.some((prefix) => name.startsWith(prefix)));
}

/** Extension that clients announce if they can show MCP Apps. */
const boardExtension = 'io.modelcontextprotocol/ui';

interface StatedIdentity {
  /** Client name from the handshake or from the request's `_meta`. */
  name: string | undefined;
  capabilities: object | undefined;
  /** The `User-Agent` header of an HTTP request. */
  userAgent: string | undefined;
}

/**
 * Identifies the client of a request. Over HTTP, requests before protocol revision 2026-07-28 state neither a client
 * name nor capabilities. For these, the product name in the `User-Agent` header is used if it is the name of a known
 * host.
 */
export function identifyClient({ name, capabilities, userAgent }: StatedIdentity): ClientIdentity {
  // A product name can contain a slash, e.g. `@cline/core/3.0.65`.
  const [scope = '', rest = ''] = userAgent?.split('/') ?? [];
  const product = [scope, `${scope}/${rest}`].find(findHost);
  const { extensions, experimental } = (capabilities ?? {}) as { extensions?: object; experimental?: object };
  return {
    name: name ?? product,
    announcesBoard: capabilities && boardExtension in { ...experimental, ...extensions },
  };
}

/** Share of a host's size limit that is left for the text in each form. The data takes twice as much as the text. */
const textShares: Record<OutputForm, number> = { text: 1, structured: 1 / 2, both: 1 / 3 };

/** Chooses the form of results for a client. The size limits of its host apply to every form. */
export function chooseResultForm(
  { name, announcesBoard }: ClientIdentity,
  { output, resultTokens }: { output: OutputSetting; resultTokens: number },
): ResultForm {
  const host = findHost(name);
  const form = output === 'auto' ? (host?.output ?? 'both') : output;
  const limitText = (hostLimit = Number.POSITIVE_INFINITY) => Math.floor(textShares[form] * hostLimit);
  const isUnknown = name === undefined && announcesBoard === undefined;
  return {
    output: form,
    links: host?.links === true,
    pictures: host?.pictures !== false,
    board: announcesBoard === true || host?.board === true || isUnknown,
    resultTokens: Math.min(resultTokens, limitText(host?.maxResultTokens)),
    resultBytes: limitText(host?.maxResultBytes),
  };
}
