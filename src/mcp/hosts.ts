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
export const hosts: readonly Host[] = [
  {
    title: 'Claude Code',
    names: ['claude-code'],
    output: 'text',
    reads: 'of text and data the data alone, as JSON, and no picture beside it',
    links: true,
    source: 'https://github.com/anthropics/claude-code/issues/79944',
    day: '2026-09-22',
  },
  {
    title: 'Claude Desktop, claude.ai',
    names: ['claude-ai'],
    output: 'both',
    reads: 'both',
    source: 'https://github.com/anthropics/claude-code/issues/55677',
    day: '2026-05-02',
  },
  {
    title: 'Codex',
    names: ['codex-mcp-client', 'Codex'],
    output: 'text',
    reads: 'of text and data the data alone; above 10 KB the middle is cut',
    maxResultTokens: 4000,
    source: 'https://github.com/vercel-labs/fx/pull/609',
    day: '2026-09-03',
  },
  {
    title: 'Copilot CLI',
    names: ['github-copilot-developer'],
    output: 'text',
    reads: 'the data alone, or both: reports differ',
    source: 'https://github.com/github/copilot-cli/issues/4536',
    day: '2026-08-20',
  },
  {
    title: 'Copilot in JetBrains',
    names: ['JetBrains-IU-copilot-intellij', 'JetBrains-JBC-copilot-intellij'],
    output: 'text',
    reads: 'both, which is everything twice',
    source: 'https://github.com/microsoft/copilot-intellij-feedback/issues/2058',
    day: '2026-09-22',
  },
  {
    title: 'opencode',
    names: ['opencode'],
    output: 'text',
    reads: 'the data alone, or the text: reports differ',
    source: 'https://github.com/anomalyco/opencode/pull/43123',
    day: '2026-08-17',
  },
  {
    title: 'VS Code',
    names: ['Visual Studio Code', 'Visual-Studio-Code'],
    output: 'text',
    reads: 'both, or the data: reports differ',
    source: 'https://github.com/microsoft/vscode/issues/297669',
    day: '2026-02-25',
  },
  {
    title: 'MCP Inspector',
    names: ['mcp-inspector', 'inspector-cli'],
    output: 'both',
    reads: 'no model: it shows all',
    links: true,
    source: 'https://github.com/modelcontextprotocol/inspector/pull/564',
    day: '2025-06-26',
  },
];

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
