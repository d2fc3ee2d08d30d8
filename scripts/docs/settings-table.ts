import { type SettingName, settings } from '../../src/config/settings.ts';
import { replaceMarked } from './marked.ts';

/** The settings as docs/settings.md shows them, made from the records that the command reads. */
function settingsTable(): string {
  const rows = (Object.keys(settings) as SettingName[]).map((name) => {
    const { variable, flag, read, help } = settings[name] as (typeof settings)['baseUrl'];
    const fallback = read(undefined) as unknown;
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

/** The key is each caller's own; files and the local library are not for http; the image fixes host and port. */
const notPassed: SettingName[] = ['apiKey', 'files', 'database', 'searchFilters', 'host', 'port'];

/** compose.yaml, with a line for each setting that http takes. Defaults that stand there stay. */
export function withPassedSettings(compose: string): string {
  const [before, lines, after] = compose.split(/(?<=environment: &settings\n)((?: +AD_LIBRARY_.*\n)+)/);
  if (lines === undefined) throw new Error('compose.yaml has no settings to write.');
  const known = lines.trimEnd().split('\n');
  const missing = (Object.keys(settings) as SettingName[])
    .filter((name) => !notPassed.includes(name))
    .map((name) => settings[name].variable)
    .filter((variable) => !compose.includes(`    ${variable}: `))
    .map((variable) => `    ${variable}: \${${variable}:-}`);
  return `${before}${[...known, ...missing].join('\n')}\n${after}`;
}
