import { readFileSync } from 'node:fs';
import hostResults from '../../bench/hosts/results.json' with { type: 'json' };
import { formatResults, type HostResult } from '../../bench/hosts/results.ts';
import { canCostCredits } from '../../src/api/operations.ts';
import { type SettingName, settings } from '../../src/config/settings.ts';
import { hosts } from '../../src/mcp/hosts.ts';
import { tools } from '../../src/tools/catalog.ts';
import type { Tool } from '../../src/tools/tool.ts';
import { replaceMarkedSection } from './marked.ts';

/**
 * The maximum length of a tool description in the README, in characters. If the first sentence is longer, it is still
 * included in full.
 */
const maxSummaryLength = 160;

/** Inserts the table of tools into the README. */
export const insertTools = (readme: string): string =>
  replaceMarkedSection(
    readme,
    'tools',
    formatToolsTable(['Tool', 'What it does', 'Cost'], (tool) => [
      selectFirstSentences(tool.description),
      formatCost(tool),
    ]),
  );

/** Inserts the table of tools with full descriptions and hints into a Markdown page. */
export const insertFullTools = (page: string): string =>
  replaceMarkedSection(
    page,
    'tools in full',
    formatToolsTable(['tool', 'does', 'costs', 'hints'], (tool) => [
      tool.description,
      formatCost(tool),
      formatHints(tool),
    ]),
  );

const formatCost = (tool: Tool): string => (canCostCredits(tool) ? 'credits' : 'nothing');

function formatHints({ annotations }: Tool): string {
  const { readOnlyHint, destructiveHint, idempotentHint, openWorldHint } = annotations;
  return [
    readOnlyHint ? 'read-only' : 'writes',
    ...(destructiveHint ? ['destructive'] : []),
    ...(idempotentHint ? ['idempotent'] : []),
    openWorldHint ? 'open world' : 'closed',
  ].join(', ');
}

function formatToolsTable(headings: string[], listCells: (tool: Tool) => string[]): string {
  const rows = tools.map((tool) => [`\`${tool.name}\``, ...listCells(tool)]);
  const formatRow = (row: string[]) => `| ${row.join(' | ')} |`;
  return [formatRow(headings), `|${'---|'.repeat(headings.length)}`, ...rows.map(formatRow)].join('\n');
}

function selectFirstSentences(description: string): string {
  let shortText = '';
  for (const sentence of description.split(/(?<=\.) /)) {
    if (shortText !== '' && shortText.length + sentence.length >= maxSummaryLength) break;
    shortText = shortText === '' ? sentence : `${shortText} ${sentence}`;
  }
  return shortText;
}

/**
 * Formats the table of settings. The command reads the same list of settings, so the documentation cannot differ from
 * the program.
 */
function formatSettingsTable(): string {
  const rows = (Object.keys(settings) as SettingName[]).map((name) => {
    const { variable, flag, parse, help } = settings[name] as (typeof settings)['baseUrl'];
    const defaultValue = parse(undefined) as unknown;
    return `| \`${variable}\` | ${flag ? `\`${flag}\`` : ''} | ${formatDefault(defaultValue)} | ${help} |`;
  });
  return ['| variable | flag | default | meaning |', '|---|---|---|---|', ...rows].join('\n');
}

function formatDefault(defaultValue: unknown): string {
  // If the default is an object, the help text of the setting already describes it.
  if (defaultValue === undefined || typeof defaultValue === 'object') return '';
  return defaultValue === false ? 'off' : `\`${String(defaultValue)}\``;
}

/** Inserts the table of settings into a Markdown page. */
export const insertSettings = (page: string): string => replaceMarkedSection(page, 'settings', formatSettingsTable());

/**
 * The settings that compose.yaml does not pass to the container. The API key comes from each caller. The `http` command
 * supports neither files nor the local library. The image fixes the host and the port, because compose.yaml publishes
 * this port.
 */
const excludedSettings: SettingName[] = ['apiKey', 'files', 'database', 'host', 'port'];

/**
 * Adds a line to compose.yaml for each setting of the `http` command that is missing there. Existing lines stay
 * unchanged.
 */
export function insertPassedSettings(composeFile: string): string {
  const [textBefore, settingLines, textAfter] = composeFile.split(
    /(?<=environment: &settings\n)((?: +AD_LIBRARY_.*\n)+)/,
  );
  if (settingLines === undefined) throw new Error('compose.yaml has no settings to write.');
  const existingLines = settingLines.trimEnd().split('\n');
  const missingLines = (Object.keys(settings) as SettingName[])
    .filter((name) => !excludedSettings.includes(name))
    .map((name) => settings[name].variable)
    .filter((variable) => !settingLines.includes(` ${variable}: `))
    .map((variable) => `    ${variable}: \${${variable}:-}`);
  return `${textBefore}${[...existingLines, ...missingLines].join('\n')}\n${textAfter}`;
}

type Host = (typeof hosts)[number];

const describeOutputFormat = (output: Host['output']): string =>
  output === 'both' ? 'text and data' : 'only the text';

/** Lists the size limits of the results for a host, e.g. `at most 8,000 tokens`. */
const listSizeLimits = ({ maxResultTokens, maxResultBytes }: Partial<Host>) => [
  ...(maxResultTokens ? [`at most ${maxResultTokens.toLocaleString('en')} tokens`] : []),
  ...(maxResultBytes ? [`at most ${maxResultBytes.toLocaleString('en')} bytes`] : []),
];

/**
 * Formats the short table that shows which format of results the server sends to each host by default. Hosts with the
 * same format share a row. The server reads the same list of hosts, so the table always matches its behavior.
 */
function formatResultFormatTable(): string {
  const titlesByFormat = new Map<string, string[]>();
  for (const { title, output, showsPictures, ...limits } of hosts) {
    const sizeLimits = listSizeLimits(limits).join(', ') || 'no known limit';
    const format = [describeOutputFormat(output), sizeLimits, showsPictures === false ? 'left out' : 'sent'].join(
      ' | ',
    );
    titlesByFormat.set(format, [...(titlesByFormat.get(format) ?? []), title]);
  }
  const rows = [...titlesByFormat].map(([format, titles]) => `| ${titles.join(', ')} | ${format} |`);
  const head = ['| Host | Form of results | Size of results | Pictures |', '|---|---|---|---|'];
  return [...head, ...rows, '| any other host | text and data | no known limit | sent |'].join('\n');
}

/** Inserts the short table of hosts, with the default format of results for each host, into a Markdown page. */
export const insertResultFormats = (page: string): string =>
  replaceMarkedSection(page, 'host forms', formatResultFormatTable());

/**
 * Formats the table that shows which format of results the setting `auto` selects for each host. The server reads the
 * same list of hosts, so the table always matches its behavior.
 */
function formatHostsTable(): string {
  const rows = hosts.map((host) => {
    const { title, names, prefixes = [], output, modelReads, acceptsLinks, showsBoard, showsPictures } = host;
    const receivedContent = [
      describeOutputFormat(output),
      ...listSizeLimits(host),
      acceptsLinks && 'links to files',
      showsBoard && 'the board',
      showsPictures === false && 'no pictures',
    ];
    const connectsAs = [...names.map((name) => `\`${name}\``), ...prefixes.map((prefix) => `\`${prefix}…\``)];
    const { source, testedVersion, evidenceDay } = host;
    const evidence = source ? `[${evidenceDay}](${source})` : `tried ${testedVersion}, ${evidenceDay}`;
    return `| ${[title, connectsAs.join(', '), modelReads, receivedContent.filter(Boolean).join(', '), evidence].join(' | ')} |`;
  });
  const head = ['| host | connects as | reads | gets | from |', '|---|---|---|---|---|'];
  return [...head, ...rows, '| any other host | | not known | text and data | |'].join('\n');
}

/** Inserts the table of known hosts and the table of tested hosts into a Markdown page. */
export const insertHosts = (page: string): string =>
  replaceMarkedSection(
    replaceMarkedSection(page, 'hosts', formatHostsTable()),
    'measured hosts',
    formatResults(hostResults as Record<string, HostResult>),
  );

const url = 'http://127.0.0.1:3000/mcp';
const keyInput = { type: 'promptString', id: 'ad-library-key', description: 'Ad Library API key', password: true };

/**
 * Creates a link that adds the local server to VS Code, in the format that VS Code documents. The link makes VS Code
 * connect over HTTP. It cannot make VS Code start the server: the path of a clone is unknown, and an npm package of the
 * same name could come from another publisher.
 */
export const createVsCodeLink = (includesKey: boolean): string => {
  const serverConfig = { name: 'ad-library', type: 'http', url };
  const serverWithKey = {
    ...serverConfig,
    headers: { Authorization: `Bearer \${input:${keyInput.id}}` },
    inputs: [keyInput],
  };
  const installUrl = `vscode:mcp/install?${encodeURIComponent(JSON.stringify(includesKey ? serverWithKey : serverConfig))}`;
  // GitHub and similar sites remove links that do not use http or https, so use a page that redirects to the `vscode:`
  // URL.
  return `https://insiders.vscode.dev/redirect?url=${encodeURIComponent(installUrl)}`;
};

/** Creates a link that adds the local server to Cursor. */
export const createCursorLink = (includesKey: boolean): string => {
  const serverWithKey = { url, headers: { Authorization: `Bearer \${env:AD_LIBRARY_API_KEY}` } };
  const encodedConfig = Buffer.from(JSON.stringify(includesKey ? serverWithKey : { url })).toString('base64');
  return `https://cursor.com/install-mcp?name=ad-library&config=${encodeURIComponent(encodedConfig)}`;
};

const links = [
  `[VS Code, with your API key](${createVsCodeLink(true)}). VS Code asks you to enter the key.`,
  `[Cursor, with your API key](${createCursorLink(true)}). Cursor reads the key from the environment variable \`AD_LIBRARY_API_KEY\`.`,
  `[VS Code, with demo data](${createVsCodeLink(false)}). Start the server with \`http --demo\`.`,
  `[Cursor, with demo data](${createCursorLink(false)}). Start the server with \`http --demo\`.`,
];

/** Inserts the installation links into the README. */
export const insertInstallLinks = (readme: string): string =>
  replaceMarkedSection(readme, 'install links', `\n${links.map((link) => `- ${link}`).join('\n')}\n`);

/** Inserts the types of the npm package, as generated by the last build, into a Markdown page. */
export function insertTypes(page: string): string {
  const typeDeclarations = readFileSync(new URL('../../dist/embed.d.ts', import.meta.url), 'utf8');
  const codeBlock = `\`\`\`ts\n${typeDeclarations.trim().replaceAll('    ', '  ')}\n\`\`\``;
  return replaceMarkedSection(page, 'types', `<!-- not run: the types, as the build writes them -->\n${codeBlock}`);
}
