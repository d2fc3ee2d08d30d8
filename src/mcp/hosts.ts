import hostRows from './hosts.json' with { type: 'json' };

/** The allowed values of the `AD_LIBRARY_OUTPUT` setting and of the `output` query parameter. */
export const outputSettings = ['auto', 'both', 'text', 'structured'] as const;
/** A value of the `AD_LIBRARY_OUTPUT` setting. `auto` selects the format that the client can read. */
export type OutputSetting = (typeof outputSettings)[number];

/** The parts of a result: text and data (`both`), text only, or data with one line of text (`structured`). */
export type OutputFormat = 'both' | 'text' | 'structured';

/**
 * The client that sent a request. A client can claim any name, so its name may affect the format of results, but
 * never permissions.
 */
export interface ClientIdentity {
  name?: string | undefined;
  /** True if the client announced that it supports MCP Apps. Undefined if its capabilities are unknown. */
  announcesMcpApps?: boolean | undefined;
}

/** The format of the results for a client: which parts they may contain, and their maximum size. */
export interface ResultFormat {
  output: OutputFormat;
  allowsLinks: boolean;
  allowsPictures: boolean;
  /**
   * True if the client may be able to show the board (the interactive view of ads). Otherwise, the tool list omits the
   * board's tools, and results omit the board's data.
   */
  canShowBoard: boolean;
  /** The maximum number of tokens in the text of a result. The structured data may have twice as many tokens. */
  maxTextTokens: number;
  /**
   * The maximum number of UTF-8 bytes in the text of a result. The structured data may have twice as many bytes.
   * Infinity for hosts without a byte limit.
   */
  maxTextBytes: number;
}

/**
 * How a host (e.g. a chat application) treats tool lists and results. MCP defines no way for a host to announce this
 * behavior, so each entry names the evidence for it.
 */
interface Host {
  title: string;
  /** The client names that the host sends when it connects. */
  names: readonly string[];
  /** The beginnings of the client names of a host that appends a name chosen by the user. */
  prefixes?: readonly string[];
  output: OutputFormat;
  /** What the host passes on to its model, in words, e.g. `only the text`. */
  modelReads: string;
  /** Set if the host accepts resource links in results. Other hosts may reject a result that contains a link. */
  acceptsLinks?: true;
  /** Set if the host can show the board (the interactive view of ads, an MCP App). */
  showsBoard?: true;
  /** False if the host drops pictures, or passes them to its model as base64 text. */
  showsPictures?: false;
  /**
   * The maximum number of tokens in a result. Set for hosts that truncate longer results or replace them with files.
   */
  maxResultTokens?: number;
  /**
   * The maximum number of UTF-8 bytes in a result. Set for hosts that truncate longer results or replace them with
   * files.
   */
  maxResultBytes?: number;
  /** The URL of public evidence for the behavior of this host. Required unless `testedVersion` is set. */
  source?: string;
  /** The host version in which the behavior was tested. Required unless `source` is set. */
  testedVersion?: string;
  /** The day on which the evidence was collected. An old entry may be wrong, because hosts change. */
  evidenceDay: string;
}

/**
 * All known hosts. If an entry has no `source`, its client names come from the npm package mcp-client-capabilities
 * 0.0.14.
 */
export const hosts = hostRows as readonly Host[];

const hostsByName = new Map(hosts.flatMap((host) => host.names.map((name) => [name, host])));

/** Matches the suffix that the proxy `mcp-remote` adds to a client name, e.g. `claude-ai (via mcp-remote 0.1.37)`. */
const mcpRemoteSuffixPattern = / \(via mcp-remote [\d.]{1,20}\)$/;

function findHost(client = ''): Host | undefined {
  const name = client.replace(mcpRemoteSuffixPattern, '');
  return hostsByName.get(name) ?? hosts.find(({ prefixes = [] }) => prefixes.some((prefix) => name.startsWith(prefix)));
}

/** The name of the extension that clients list in their capabilities if they can show MCP Apps. */
const mcpAppsExtension = 'io.modelcontextprotocol/ui';

interface ClaimedIdentity {
  /** The client name from the `initialize` request, or from the `_meta` field of the current request. */
  name: string | undefined;
  capabilities: object | undefined;
  /** The `User-Agent` header of an HTTP request. */
  userAgent: string | undefined;
}

/**
 * Identifies the client of a request. Before protocol revision 2026-07-28, HTTP requests contain neither a client name
 * nor capabilities. For such requests, the client name is the product in the `User-Agent` header, if this product is a
 * known host.
 */
export function identifyClient({ name, capabilities, userAgent }: ClaimedIdentity): ClientIdentity {
  // A product name can contain a slash, e.g. `@cline/core` in `@cline/core/3.0.65`. Try the text before the first
  // slash, then the text before the second slash.
  const [firstSegment = '', secondSegment = ''] = userAgent?.split('/') ?? [];
  const product = [firstSegment, `${firstSegment}/${secondSegment}`].find(findHost);
  const { extensions, experimental } = (capabilities ?? {}) as { extensions?: object; experimental?: object };
  return {
    name: name ?? product,
    announcesMcpApps: capabilities && mcpAppsExtension in { ...experimental, ...extensions },
  };
}

/**
 * The share of a host's size limit that the text of a result may use. The data may be twice as long as the text, so
 * with `both`, text and data together use the whole limit.
 */
const textShares: Record<OutputFormat, number> = { text: 1, structured: 1 / 2, both: 1 / 3 };

/**
 * Chooses the parts and the maximum size of the results for a client. The size limits of the client's host always
 * apply.
 */
export function chooseResultFormat(
  { name, announcesMcpApps }: ClientIdentity,
  { output, maxTextTokens }: { output: OutputSetting; maxTextTokens: number },
): ResultFormat {
  const host = findHost(name);
  const outputFormat = output === 'auto' ? (host?.output ?? 'both') : output;
  const computeTextLimit = (hostLimit = Number.POSITIVE_INFINITY) => Math.floor(textShares[outputFormat] * hostLimit);
  const isUnknownClient = name === undefined && announcesMcpApps === undefined;
  return {
    output: outputFormat,
    allowsLinks: host?.acceptsLinks === true,
    allowsPictures: host?.showsPictures !== false,
    canShowBoard: announcesMcpApps === true || host?.showsBoard === true || isUnknownClient,
    maxTextTokens: Math.min(maxTextTokens, computeTextLimit(host?.maxResultTokens)),
    maxTextBytes: computeTextLimit(host?.maxResultBytes),
  };
}
