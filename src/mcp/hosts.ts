import hostRows from './hosts.json' with { type: 'json' };

/** The values of `AD_LIBRARY_OUTPUT` and `?output=`. */
export const outputSettings = ['auto', 'both', 'text', 'structured'] as const;
export type OutputSetting = (typeof outputSettings)[number];

/** The form of results: text and data, only the text, or the data with one line of text. */
export type OutputForm = 'both' | 'text' | 'structured';

/** The known facts about the client of a request. A client chooses its own name, so the name decides only the form of results. */
export interface ClientIdentity {
  name?: string | undefined;
  /** Whether the client announces that it draws MCP Apps; undefined if its capabilities are not known. */
  announcesBoard?: boolean | undefined;
}

/** The form in which results are written for a client. */
export interface ResultForm {
  output: OutputForm;
  links: boolean;
  pictures: boolean;
  /** Whether the client gets the tools of the board and the board's data in results. */
  board: boolean;
  resultTokens: number;
}

/** How a host treats lists and results. MCP does not announce this, so each row names its evidence. */
interface Host {
  title: string;
  /** The names under which the host connects. */
  names: readonly string[];
  /** Prefixes of client names, for a host that appends a name chosen by its user. */
  prefixes?: readonly string[];
  output: OutputForm;
  reads: string;
  /** Whether the host accepts resource links in results. Other hosts may fail on a link. */
  links?: true;
  /** The host draws the board. */
  board?: true;
  /** False if the host passes pictures to its model as base64 text. */
  pictures?: false;
  /** The size in tokens above which the host cuts a result or replaces it by a file. */
  maxResultTokens?: number;
  /** The address of public evidence, */
  source?: string;
  /** or the version that we tried ourselves. */
  tried?: string;
  /** The day of the evidence. */
  day: string;
}

/** Names of clients, where no row has a newer source: mcp-client-capabilities 0.0.14 on npm. */
export const hosts = hostRows as readonly Host[];

const hostsByName = new Map(hosts.flatMap((host) => host.names.map((name) => [name, host])));

/** The bridge `mcp-remote` adds its own name to the name of the client: `claude-ai (via mcp-remote 0.1.37)`. */
const bridgeSuffix = / \(via mcp-remote [\d.]{1,20}\)$/;

function findHost(client = ''): Host | undefined {
  const name = client.replace(bridgeSuffix, '');
  return hostsByName.get(name) ?? hosts.find(({ prefixes = [] }) => prefixes.some((prefix) => name.startsWith(prefix)));
}

/** The extension by which clients announce that they draw MCP Apps. */
const boardExtension = 'io.modelcontextprotocol/ui';

interface StatedIdentity {
  /** The name in the handshake or in the request's envelope. */
  name: string | undefined;
  capabilities: object | undefined;
  /** The `User-Agent` header of an HTTP request. */
  userAgent: string | undefined;
}

/**
 * Returns what a request tells of its client. Over HTTP before revision 2026-07-28, a request states neither name nor
 * capabilities. Its User-Agent counts if the product before the first slash is the name of a known host.
 */
export function identifyClient({ name, capabilities, userAgent }: StatedIdentity): ClientIdentity {
  const [product = ''] = userAgent?.split('/') ?? [];
  const { extensions, experimental } = (capabilities ?? {}) as { extensions?: object; experimental?: object };
  return {
    name: name ?? (findHost(product) ? product : undefined),
    announcesBoard: capabilities && boardExtension in { ...experimental, ...extensions },
  };
}

export function chooseResultForm(
  { name, announcesBoard }: ClientIdentity,
  { output, resultTokens }: { output: OutputSetting; resultTokens: number },
): ResultForm {
  const host = findHost(name);
  const isSet = output !== 'auto';
  const isUnknown = name === undefined && announcesBoard === undefined;
  return {
    output: isSet ? output : (host?.output ?? 'both'),
    links: host?.links === true,
    pictures: host?.pictures !== false,
    board: announcesBoard === true || host?.board === true || isUnknown,
    resultTokens: isSet ? resultTokens : Math.min(resultTokens, host?.maxResultTokens ?? resultTokens),
  };
}
