import { readFileSync } from 'node:fs';
import { isGated } from '../../src/api/operations.ts';
import { type SettingName, settings } from '../../src/config/settings.ts';
import { hosts } from '../../src/mcp/hosts.ts';
import { tools } from '../../src/tools/catalog.ts';
import type { Tool } from '../../src/tools/tool.ts';
import { replaceMarked } from './marked.ts';

/** Characters that README has for a tool: whole sentences, and the first one in any case. */
const maxShort = 160;

/** The tools as README shows them. */
export const withTools = (readme: string): string =>
  replaceMarked(
    readme,
    'tools',
    toolsTable(['tool', 'does', 'costs'], (tool) => [firstSentences(tool.description), costOf(tool)]),
  );

/** The same with all that the description says, and the hints that hosts get. */
export const withToolsInFull = (page: string): string =>
  replaceMarked(
    page,
    'tools in full',
    toolsTable(['tool', 'does', 'costs', 'hints'], (tool) => [tool.description, costOf(tool), hintsOf(tool)]),
  );

const costOf = (tool: Tool): string => (isGated(tool) ? 'credits' : 'nothing');

function hintsOf({ annotations }: Tool): string {
  const { readOnlyHint, destructiveHint, idempotentHint, openWorldHint } = annotations;
  return [
    readOnlyHint ? 'read-only' : 'writes',
    ...(destructiveHint ? ['destructive'] : []),
    ...(idempotentHint ? ['idempotent'] : []),
    openWorldHint ? 'open world' : 'closed',
  ].join(', ');
}

function toolsTable(head: string[], cells: (tool: Tool) => string[]): string {
  const rows = tools.map((tool) => [`\`${tool.name}\``, ...cells(tool)]);
  const line = (row: string[]) => `| ${row.join(' | ')} |`;
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n');
}

function firstSentences(description: string): string {
  let short = '';
  for (const sentence of description.split(/(?<=\.) /)) {
    if (short !== '' && short.length + sentence.length >= maxShort) break;
    short = short === '' ? sentence : `${short} ${sentence}`;
  }
  return short;
}

/** The settings as docs/settings.md shows them, made from the records that the command reads. */
function settingsTable(): string {
  const rows = (Object.keys(settings) as SettingName[]).map((name) => {
    const { variable, flag, parse, help } = settings[name] as (typeof settings)['baseUrl'];
    const fallback = parse(undefined) as unknown;
    return `| \`${variable}\` | ${flag ? `\`${flag}\`` : ''} | ${shown(fallback)} | ${help} |`;
  });
  return ['| variable | flag | default | meaning |', '|---|---|---|---|', ...rows].join('\n');
}

function shown(fallback: unknown): string {
  // What is read into an object says in its help what it is by default.
  if (fallback === undefined || typeof fallback === 'object') return '';
  return fallback === false ? 'off' : `\`${String(fallback)}\``;
}

export const withSettings = (page: string): string => replaceMarked(page, 'settings', settingsTable());

/**
 * The key is each caller's own; files and the local library are not for http; the image fixes host and port; replicas
 * read their state's address and secret from files.
 */
const notPassed: SettingName[] = [
  'apiKey',
  'files',
  'database',
  'searchFilters',
  'host',
  'port',
  'stateUrl',
  'stateSecret',
];

/** compose.yaml, with a line for each setting that http takes. Defaults that stand there stay. */
export function withPassedSettings(compose: string): string {
  const [before, lines, after] = compose.split(/(?<=environment: &settings\n)((?: +AD_LIBRARY_.*\n)+)/);
  if (lines === undefined) throw new Error('compose.yaml has no settings to write.');
  const listed = lines.trimEnd().split('\n');
  const missing = (Object.keys(settings) as SettingName[])
    .filter((name) => !notPassed.includes(name))
    .map((name) => settings[name].variable)
    .filter((variable) => !compose.includes(`    ${variable}: `))
    .map((variable) => `    ${variable}: \${${variable}:-}`);
  return `${before}${[...listed, ...missing].join('\n')}\n${after}`;
}

/** Returns the table of what `auto` does for each host, made from the records that the server reads. */
function hostsTable(): string {
  const rows = hosts.map((host) => {
    const { title, names, prefixes = [], output, reads, links, board, pictures, maxResultTokens } = host;
    const gets = [
      `${output === 'both' ? 'text and data' : 'the text alone'}`,
      maxResultTokens && `at most ${maxResultTokens.toLocaleString('en')} tokens`,
      links && 'links to files',
      board && 'the board',
      pictures === false && 'no pictures',
    ];
    const connectsAs = [...names.map((name) => `\`${name}\``), ...prefixes.map((prefix) => `\`${prefix}…\``)];
    const { source, tried, day } = host;
    const evidence = source ? `[${day}](${source})` : `tried ${tried}, ${day}`;
    return `| ${[title, connectsAs.join(', '), reads, gets.filter(Boolean).join(', '), evidence].join(' | ')} |`;
  });
  const head = ['| host | connects as | reads | gets | from |', '|---|---|---|---|---|'];
  return [...head, ...rows, '| any other | | not known | text and data | |'].join('\n');
}

export const withHosts = (page: string): string => replaceMarked(page, 'hosts', hostsTable());

const url = 'http://127.0.0.1:3000/mcp';
const key = { type: 'promptString', id: 'ad-library-key', description: 'Ad Library API key', password: true };

/**
 * Links that add the server on this machine to a host, as the documents of the host describe them. Over HTTP, because
 * a link cannot know where a clone lies, and must not start a package of this name that somebody else published.
 */
export const vsCodeLink = (withKey: boolean): string => {
  const server = { name: 'ad-library', type: 'http', url };
  const secured = { ...server, headers: { Authorization: `Bearer \${input:${key.id}}` }, inputs: [key] };
  const address = `vscode:mcp/install?${encodeURIComponent(JSON.stringify(withKey ? secured : server))}`;
  // Pages such as GitHub's leave out links that are not of the web.
  return `https://insiders.vscode.dev/redirect?url=${encodeURIComponent(address)}`;
};

export const cursorLink = (withKey: boolean): string => {
  const secured = { url, headers: { Authorization: `Bearer \${env:AD_LIBRARY_API_KEY}` } };
  const config = Buffer.from(JSON.stringify(withKey ? secured : { url })).toString('base64');
  return `https://cursor.com/install-mcp?name=ad-library&config=${encodeURIComponent(config)}`;
};

const links = [
  `**VS Code**: [with your key](${vsCodeLink(true)}), which it asks you for`,
  `**Cursor**: [with your key](${cursorLink(true)}), which it reads from \`AD_LIBRARY_API_KEY\` in its own environment`,
  `**Beside \`http --demo\`**, without a key: [VS Code](${vsCodeLink(false)}), [Cursor](${cursorLink(false)})`,
];

export const withInstallLinks = (readme: string): string => replaceMarked(readme, 'install links', links.join(' · '));

/** The types of the package, as the last build wrote them. */
export function withTypes(page: string): string {
  const types = readFileSync(new URL('../../dist/embed.d.ts', import.meta.url), 'utf8');
  const block = `\`\`\`ts\n${types.trim().replaceAll('    ', '  ')}\n\`\`\``;
  return replaceMarked(page, 'types', `<!-- not run: the types, as the build writes them -->\n${block}`);
}
