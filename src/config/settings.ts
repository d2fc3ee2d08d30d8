import { logLevels } from '../logging/log.ts';
import {
  optional,
  parseApiKey,
  parseBaseUrl,
  parseHostName,
  parseHostNames,
  parseMediaHosts,
  parseNames,
  parseNetwork,
  parseOneOf,
  parseOnOff,
  parseOrigin,
  parseSecret,
  parseStateAddress,
  parseText,
  parseWholeNumber,
  readFiltersFile,
  withDefault,
} from './setting-values.ts';

interface SettingRecord {
  /** Reads the value from the text of the variable or flag, or from undefined. */
  parse(text: string | undefined): unknown;
  secret?: true;
  /** The value may be in a file that the variable with `_FILE` at its end names, as containers pass secrets. */
  inFile?: true;
  /** The name of the value in help, `--base-url <url>`. Without it, the flag is a switch. */
  valueName?: string;
  /** The only kind of command that takes its flag; by default every MCP server (`library`: see cli/parse.ts). */
  onlyFor?: 'stdio' | 'http' | 'library';
  /** The label of the field, for settings that forms of hosts offer: the registry's, and with manifest.json a desktop host's. */
  title?: string;
  help: string;
}

export interface Setting extends SettingRecord {
  variable: string;
  /** Absent for secrets, because process lists show flags. */
  flag?: string;
}

/** `creditBudget` is the variable `AD_LIBRARY_CREDIT_BUDGET` and the flag `--credit-budget`. */
function addNames<Records extends Record<string, SettingRecord>>(records: Records) {
  const entries = Object.entries(records).map(([name, record]): [string, Setting] => {
    const flag = `--${name.replace(/[A-Z]/g, '-$&').toLowerCase()}`;
    const variable = `AD_LIBRARY${flag.slice(1).replaceAll('-', '_').toUpperCase()}`;
    return [name, { ...record, variable, ...(!record.secret && { flag }) }];
  });
  return Object.fromEntries(entries) as { [Name in keyof Records]: Records[Name] & Omit<Setting, 'parse'> };
}

/** All settings. The table in docs/settings.md and `--help` are made from this record; `server.json` has a few of them. */
export const settings = addNames({
  apiKey: {
    title: 'API key',
    parse: optional(parseApiKey),
    secret: true,
    inFile: true,
    help: 'Your API key (stdio only; over HTTP, every request carries its own)',
  },
  baseUrl: {
    title: 'API address',
    parse: optional(parseBaseUrl),
    valueName: 'url',
    help: 'Base address of the API; may include a path prefix; must be https: unless it is loopback',
  },
  demo: {
    title: 'Demo data',
    parse: withDefault(parseOnOff, false),
    help: 'Serve generated demo data; needs no key and no address, and costs nothing',
  },
  host: {
    onlyFor: 'http',
    parse: withDefault(parseHostName, '127.0.0.1'),
    valueName: 'name',
    help: 'Host on which http and library serve listen',
  },
  port: {
    onlyFor: 'http',
    parse: withDefault(parseWholeNumber(0, 65_535), 3000),
    valueName: 'number',
    help: 'Port on which http and library serve listen; 0 picks a free one',
  },
  allowedHosts: {
    onlyFor: 'http',
    parse: optional(parseHostNames),
    valueName: 'names',
    help: 'Host names that requests may use; required unless the host is loopback (default: loopback names)',
  },
  allowedOrigins: {
    onlyFor: 'http',
    parse: withDefault(parseHostNames, []),
    valueName: 'names',
    help: 'Host names of the browser origins allowed to call; none by default',
  },
  metrics: {
    onlyFor: 'http',
    parse: withDefault(parseOnOff, false),
    help: 'Serve Prometheus metrics at GET /metrics (http only)',
  },
  callsAtOnce: {
    onlyFor: 'http',
    parse: withDefault(parseWholeNumber(1, 10_000), 256),
    valueName: 'calls',
    help: 'Maximum concurrent tool calls (http only)',
  },
  callsPerKey: {
    onlyFor: 'http',
    parse: withDefault(parseWholeNumber(1, 10_000), 16),
    valueName: 'calls',
    help: 'Maximum concurrent tool calls per key (http only)',
  },
  callsWaiting: {
    onlyFor: 'http',
    parse: withDefault(parseWholeNumber(0, 100_000), 1024),
    valueName: 'calls',
    help: 'Maximum tool calls in the queue; where it is full, the newest call of the key with the most waiting is refused (http only)',
  },
  refusalsPerMinute: {
    onlyFor: 'http',
    parse: withDefault(parseWholeNumber(0, 1_000_000), 300),
    valueName: 'keys',
    help: 'Unknown keys that one address may try per minute; 0 for no limit, behind a proxy that has its own (http only)',
  },
  trustedProxy: {
    onlyFor: 'http',
    parse: optional(parseNetwork),
    valueName: 'network',
    help: 'Address or network of a proxy whose X-Forwarded-For is believed (its last entry) when tries are counted (http only)',
  },
  publicUrl: {
    onlyFor: 'http',
    parse: optional(parseOrigin),
    valueName: 'url',
    help: 'Origin under which people reach http from outside, such as https://ads.example.com; links to exported files are under it, and with AD_LIBRARY_SIGN_IN_SECRET it switches on sign-in (http only)',
  },
  fileLinks: {
    onlyFor: 'http',
    parse: withDefault(parseOneOf(['on', 'off'], 'must be on or off'), 'on'),
    valueName: 'on|off',
    help: 'off: results over HTTP hold no links to exported files (http only)',
  },
  signInSecret: {
    parse: optional(parseSecret),
    secret: true,
    inFile: true,
    help: 'Seals the tokens of sign-in; the same for all replicas, at least 32 characters; needs a public URL',
  },
  creditBudget: {
    title: 'Credit budget',
    parse: optional(parseWholeNumber(0, 1_000_000_000)),
    valueName: 'credits',
    help: 'Maximum credits this process (with a shared state: all replicas; for call with a folder: all calls of a day) may spend per key; a call that could exceed them is not sent',
  },
  cacheSeconds: {
    parse: withDefault(parseWholeNumber(0, 86_400), 900),
    valueName: 'seconds',
    help: 'How long paid answers are cached per key; 0 turns the cache off',
  },
  resultTokens: {
    parse: withDefault(parseWholeNumber(1000, 100_000), 8000),
    valueName: 'tokens',
    help: 'Target size of the text of a result, in estimated tokens',
  },
  output: {
    parse: withDefault(
      parseOneOf(['auto', 'both', 'text', 'structured'], 'must be auto, both, text or structured'),
      'auto',
    ),
    valueName: 'form',
    help: 'auto (what the host is known to read), both, text (no output schemas, no structuredContent) or structured (the text block is one line)',
  },
  tools: {
    parse: optional(parseNames),
    valueName: 'names',
    help: 'Comma-separated subset of tool names (default: all)',
  },
  readOnly: {
    title: 'Read only',
    parse: withDefault(parseOnOff, false),
    help: 'Leave out add_collection_item, the tool that writes to the service',
  },
  timeoutMs: {
    parse: withDefault(parseWholeNumber(100, 600_000), 45_000),
    valueName: 'ms',
    help: 'Maximum time for one tool call, including retries and the wait for its turn',
  },
  logLevel: {
    parse: withDefault(parseOneOf(logLevels, `must be one of ${logLevels.join(', ')}`), 'warn'),
    valueName: 'level',
    help: `${logLevels.join(', ')}; to stderr only`,
  },
  database: {
    onlyFor: 'library',
    parse: optional(parseText),
    valueName: 'file',
    help: 'File of the local library (default: in memory with --demo, else ad-library.db)',
  },
  files: {
    onlyFor: 'stdio',
    title: 'Folder for files',
    // Some hosts pass on a default with names that they did not replace.
    parse: (text) => (text?.includes('${') ? undefined : optional(parseText)(text)),
    valueName: 'folder',
    help: 'Folder that keeps the dataset between runs and receives exports (not for http; default: the dataset stays in memory, and exports go to Downloads/Ad Library or a temporary folder; call writes where it was started)',
  },
  mediaHosts: {
    title: 'Picture hosts',
    parse: withDefault(parseMediaHosts, { public: true, listed: [] }),
    valueName: 'names',
    help: 'Where view_ads and the board fetch pictures: public (every public host, over https; the default), none, or hosts as name or name:port, which alone may be internal or use http',
  },
  stateUrl: {
    onlyFor: 'http',
    inFile: true,
    parse: optional(parseStateAddress),
    valueName: 'url',
    help: 'Store that all replicas share: Redis 7 or Valkey at redis:// or rediss://, or PostgreSQL from 15 on at postgres:// or postgresql:// (http only; default: state is kept in the process)',
  },
  stateSecret: {
    parse: optional(parseSecret),
    secret: true,
    inFile: true,
    help: 'Seals what is kept in the shared state; the same for all replicas, at least 32 characters; required with a state address',
  },
  searchFilters: {
    parse: optional(readFiltersFile),
    valueName: 'file',
    help: 'JSON file that describes the filter keys of the service',
  },
});

export type SettingName = keyof typeof settings;
export type Config = { [Name in SettingName]: ReturnType<(typeof settings)[Name]['parse']> };
export type Flags = Partial<Record<SettingName, string | undefined>>;
