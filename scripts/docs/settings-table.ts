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
