import hostRows from './hosts.json' with { type: 'json' };

/** What `AD_LIBRARY_OUTPUT` and `?output=` take. */
export const outputSettings = ['auto', 'both', 'text', 'structured'] as const;
export type OutputSetting = (typeof outputSettings)[number];

/** The form of results: text and data, the text alone, or the data with one line of text. */
export type OutputForm = 'both' | 'text' | 'structured';

/** How results are written for a client. A client chooses its own name, so the name decides nothing else. */
export interface ResultForm {
  output: OutputForm;
  links: boolean;
  resultTokens: number;
}

/** What a host is known to do with results. MCP does not tell, so each row names its source. */
interface Host {
  title: string;
  names: readonly string[];
  output: OutputForm;
  reads: string;
  /** The host takes links to resources in results; other hosts may fail on a link. */
  links?: true;
  /** Longer results would be cut by the host. */
  maxResultTokens?: number;
  source: string;
  day: string;
}

/** Names of clients, where no row has a newer source: mcp-client-capabilities 0.0.14 on npm. */
export const hosts = hostRows as readonly Host[];

const byName = new Map(hosts.flatMap((host) => host.names.map((name) => [name, host])));

export function formFor(
  client: string | undefined,
  { output, resultTokens }: { output: OutputSetting; resultTokens: number },
): ResultForm {
  const host = byName.get(client ?? '');
  const isSet = output !== 'auto';
  return {
    output: isSet ? output : (host?.output ?? 'both'),
    links: host?.links === true,
    resultTokens: isSet ? resultTokens : Math.min(resultTokens, host?.maxResultTokens ?? resultTokens),
  };
}
