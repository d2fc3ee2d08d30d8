import hostRows from './hosts.json' with { type: 'json' };

/** In which form results are sent: text and data, the text alone, or the data with one line of text. */
export type OutputForm = 'both' | 'text' | 'structured';

/** What a host is known to do with results. Nothing in MCP says it, so each row says where it is from. */
interface Host {
  title: string;
  /** As its client calls itself (`clientInfo.name`). */
  names: readonly string[];
  output: OutputForm;
  /** What its model reads, in words. */
  reads: string;
  /** It takes links to resources in results; others may fail on one. */
  links?: true;
  /** Longer results would be cut by the host. */
  maxResultTokens?: number;
  /** The newest source, and its day. */
  source: string;
  day: string;
}

/** Names of clients, where no row has a newer source: mcp-client-capabilities 0.0.14 on npm. */
export const hosts = hostRows as readonly Host[];

const byName = new Map(hosts.flatMap((host) => host.names.map((name) => [name, host])));

/** How results are written for a client. Its name is what it says of itself, so it decides nothing but that. */
export interface ResultForm {
  output: OutputForm;
  links: boolean;
  resultTokens: number;
}

/** @param client the name it gave, where it gave one */
export function formFor(
  client: string | undefined,
  { output, resultTokens }: { output: OutputForm | 'auto'; resultTokens: number },
): ResultForm {
  const host = byName.get(client ?? '');
  const own = output !== 'auto';
  return {
    output: own ? output : (host?.output ?? 'both'),
    links: host?.links === true,
    resultTokens: own ? resultTokens : Math.min(resultTokens, host?.maxResultTokens ?? resultTokens),
  };
}
