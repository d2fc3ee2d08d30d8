import type { Measured } from './measure.ts';

/** What was measured for one MCP host. */
export interface HostResult {
  title: string;
  version: string;
  /** The date on which the host was tested. */
  day: string;
  /** How the server was added to the host: `command`, `plugin`, or both. */
  setups: string[];
  /** What the model received. Missing if the host did not run. */
  measured?: Measured;
  /** Differences from what the project says about this host. */
  problems: string[];
}

/** Formats the results of all hosts as the Markdown table in docs/host-evidence.md. */
export function formatResults(results: Readonly<Record<string, HostResult>>): string {
  const rows = Object.values(results).map(({ title, version, day, setups, measured }) => {
    if (measured === undefined) return [`${title} ${version}`, day, 'did not run', '', '', '', '', '', ''];
    const { clientName, revision, read, listTokens, sentTokens, pictures, tools, instructions } = measured;
    return [
      `${title} ${version}`,
      day,
      setups.join(', '),
      `\`${clientName}\`, ${revision}`,
      read,
      `${listTokens} (${sentTokens})`,
      pictures,
      `${tools}`,
      instructions,
      measured.followsAnnouncements ? 'yes' : 'no',
    ];
  });
  const header = [
    ...['host', 'tried', 'added by', 'connects as', 'the model reads', 'ten ads in tokens (of the server)'],
    ...['picture', 'tools listed', 'instructions', 'lists a new report'],
  ];
  return [header, header.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
