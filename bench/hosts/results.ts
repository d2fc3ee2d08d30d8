import type { HostMeasurement } from './measure.ts';

/** The result of testing one MCP host. */
export interface HostResult {
  title: string;
  version: string;
  /** The date on which the host was tested, e.g. `2026-11-20`. */
  day: string;
  /** How the server was added to the host: `command`, `plugin`, or both. */
  setups: string[];
  /** The measurements of the run. Undefined if the host did not run. */
  measured?: HostMeasurement;
  /**
   * The differences between the measured behavior and the statements about this host in the documentation and the
   * source code.
   */
  problems: string[];
}

const tableHeader = [
  ...['host', 'tried', 'added by', 'connects as', 'the model reads', 'ten ads in tokens (of the server)'],
  ...['picture', 'link to a file', 'tools listed', 'instructions', 'lists a new report'],
];

/** Formats the results of all hosts as the Markdown table in docs/host-evidence.md. */
export function formatResults(results: Readonly<Record<string, HostResult>>): string {
  const rows = Object.values(results).map(({ title, version, day, setups, measured }) => {
    if (measured === undefined)
      return [`${title} ${version}`, day, 'did not run', ...tableHeader.slice(3).map(() => '')];
    const {
      clientName,
      revision,
      read,
      listTokens,
      sentTokens,
      pictures,
      links,
      receivedToolCount,
      listedToolCount,
      instructions,
    } = measured;
    return [
      `${title} ${version}`,
      day,
      setups.join(', '),
      `\`${clientName}\`, ${revision}`,
      read,
      `${listTokens} (${sentTokens})`,
      pictures,
      links,
      `${receivedToolCount} of ${listedToolCount}`,
      instructions,
      measured.followsAnnouncements ? 'yes' : 'no',
    ];
  });
  return [tableHeader, tableHeader.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
