import { logLevels } from '../logging/log.ts';
import {
  anyText,
  apiKey,
  baseUrl,
  filtersFile,
  hostName,
  hostNames,
  mediaHosts,
  names,
  network,
  oneOf,
  onOff,
  optional,
  origin,
  sealSecret,
  stateAddress,
  wholeNumber,
  withDefault,
} from './setting-values.ts';

interface SettingRecord {
  /** Reads the value from the text of the variable or flag, or from undefined. */
  read(text: string | undefined): unknown;
  secret?: true;
  /** The value may be in a file that the variable with `_FILE` at its end names, as containers pass secrets. */
  inFile?: true;
  /** The name of the value in help, `--base-url <url>`. Without it, the flag is a switch. */
  value?: string;
  /** The only kind of command that takes its flag; by default every MCP server (`library`: see cli/parse.ts). */
  only?: 'stdio' | 'http' | 'library';
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
function nameSettings<Records extends Record<string, SettingRecord>>(records: Records) {
  const entries = Object.entries(records).map(([name, record]): [string, Setting] => {
    const flag = `--${name.replace(/[A-Z]/g, '-$&').toLowerCase()}`;
    const variable = `AD_LIBRARY${flag.slice(1).replaceAll('-', '_').toUpperCase()}`;
    return [name, { ...record, variable, ...(!record.secret && { flag }) }];
  });
  return Object.fromEntries(entries) as { [Name in keyof Records]: Records[Name] & Omit<Setting, 'read'> };
}

/** All settings. The table in docs/settings.md and `--help` are made from this record; `server.json` has a few of them. */
export const settings = nameSettings({
  apiKey: {
    title: 'API key',
    read: optional(apiKey),
    secret: true,
    inFile: true,
    help: 'Your API key (stdio only; over HTTP, every request carries its own)',
  },
  baseUrl: {
    title: 'API address',
    read: optional(baseUrl),
    value: 'url',
    help: 'Base address of the API; may include a path prefix; must be https: unless it is loopback',
  },
  demo: {
    title: 'Demo data',
    read: withDefault(onOff, false),
    help: 'Serve generated demo data; needs no key and no address, and costs nothing',
  },
  host: {
    only: 'http',
    read: withDefault(hostName, '127.0.0.1'),
    value: 'name',
    help: 'Host on which http and library serve listen',
  },
  port: {
    only: 'http',
    read: withDefault(wholeNumber(0, 65_535), 3000),
    value: 'number',
    help: 'Port on which http and library serve listen; 0 picks a free one',
  },
  allowedHosts: {
    only: 'http',
    read: optional(hostNames),
    value: 'names',
    help: 'Host names that requests may use; required unless the host is loopback (default: loopback names)',
  },
  allowedOrigins: {
    only: 'http',
    read: withDefault(hostNames, []),
    value: 'names',
    help: 'Host names of the browser origins allowed to call; none by default',
  },
  metrics: {
    only: 'http',
    read: withDefault(onOff, false),
    help: 'Serve Prometheus metrics at GET /metrics (http only)',
  },
  callsAtOnce: {
    only: 'http',
    read: withDefault(wholeNumber(1, 10_000), 256),
    value: 'calls',
    help: 'Maximum concurrent tool calls (http only)',
  },
  callsPerKey: {
    only: 'http',
    read: withDefault(wholeNumber(1, 10_000), 16),
    value: 'calls',
    help: 'Maximum concurrent tool calls per key (http only)',
  },
  callsWaiting: {
    only: 'http',
    read: withDefault(wholeNumber(0, 100_000), 1024),
    value: 'calls',
    help: 'Maximum tool calls in the queue; where it is full, the newest call of the key with the most waiting is refused (http only)',
  },
  refusalsPerMinute: {
    only: 'http',
    read: withDefault(wholeNumber(0, 1_000_000), 300),
    value: 'keys',
    help: 'Unknown keys that one address may try per minute; 0 for no limit, behind a proxy that has its own (http only)',
  },
  trustedProxy: {
    only: 'http',
    read: optional(network),
    value: 'network',
    help: 'Address or network of a proxy whose X-Forwarded-For is believed (its last entry) when tries are counted (http only)',
  },
  publicUrl: {
    only: 'http',
    read: optional(origin),
    value: 'url',
    help: 'Origin under which people reach http from outside, such as https://ads.example.com; links to exported files are under it, and with AD_LIBRARY_SIGN_IN_SECRET it switches on sign-in (http only)',
  },
  fileLinks: {
    only: 'http',
    read: withDefault(oneOf(['on', 'off'], 'must be on or off'), 'on'),
    value: 'on|off',
    help: 'off: results over HTTP hold no links to exported files (http only)',
  },
  signInSecret: {
    read: optional(sealSecret),
    secret: true,
    inFile: true,
    help: 'Seals the tokens of sign-in; the same for all replicas, at least 32 characters; needs a public URL',
  },
  creditBudget: {
    title: 'Credit budget',
    read: optional(wholeNumber(0, 1_000_000_000)),
    value: 'credits',
    help: 'Maximum credits this process (with a shared state: all replicas; for call with a folder: all calls of a day) may spend per key; a call that could exceed them is not sent',
  },
  cacheSeconds: {
    read: withDefault(wholeNumber(0, 86_400), 900),
    value: 'seconds',
    help: 'How long paid answers are cached per key; 0 turns the cache off',
  },
  resultTokens: {
    read: withDefault(wholeNumber(1000, 100_000), 8000),
    value: 'tokens',
    help: 'Target size of the text of a result, in estimated tokens',
  },
  output: {
    read: withDefault(oneOf(['auto', 'both', 'text', 'structured'], 'must be auto, both, text or structured'), 'auto'),
    value: 'form',
    help: 'auto (what the host is known to read), both, text (no output schemas, no structuredContent) or structured (the text block is one line)',
  },
  tools: {
    read: optional(names),
    value: 'names',
    help: 'Comma-separated subset of tool names (default: all)',
  },
  readOnly: {
    title: 'Read only',
    read: withDefault(onOff, false),
    help: 'Leave out add_collection_item, the tool that writes to the service',
  },
  timeoutMs: {
    read: withDefault(wholeNumber(100, 600_000), 45_000),
    value: 'ms',
    help: 'Maximum time for one tool call, including retries and the wait for its turn',
  },
  logLevel: {
    read: withDefault(oneOf(logLevels, `must be one of ${logLevels.join(', ')}`), 'warn'),
    value: 'level',
    help: `${logLevels.join(', ')}; to stderr only`,
  },
  database: {
    only: 'library',
    read: optional(anyText),
    value: 'file',
    help: 'File of the local library (default: in memory with --demo, else ad-library.db)',
  },
  files: {
    only: 'stdio',
    title: 'Folder for files',
    // Some hosts pass on a default with names that they did not replace.
    read: (text) => (text?.includes('${') ? undefined : optional(anyText)(text)),
    value: 'folder',
    help: 'Folder that keeps the dataset between runs and receives exports (not for http; default: the dataset stays in memory, and exports go to Downloads/Ad Library or a temporary folder; call writes where it was started)',
  },
  mediaHosts: {
    title: 'Picture hosts',
    read: withDefault(mediaHosts, { public: true, listed: [] }),
    value: 'names',
    help: 'Where view_ads and the board fetch pictures: public (every public host, over https; the default), none, or hosts as name or name:port, which alone may be internal or use http',
  },
  stateUrl: {
    only: 'http',
    inFile: true,
    read: optional(stateAddress),
    value: 'url',
    help: 'Store that all replicas share: Redis 7 or Valkey at redis:// or rediss://, or PostgreSQL from 15 on at postgres:// or postgresql:// (http only; default: state is kept in the process)',
  },
  stateSecret: {
    read: optional(sealSecret),
    secret: true,
    inFile: true,
    help: 'Seals what is kept in the shared state; the same for all replicas, at least 32 characters; required with a state address',
  },
  searchFilters: {
    read: optional(filtersFile),
    value: 'file',
    help: 'JSON file that describes the filter keys of the service',
  },
});

export type SettingName = keyof typeof settings;
export type Config = { [Name in SettingName]: ReturnType<(typeof settings)[Name]['read']> };
export type Flags = Partial<Record<SettingName, string | undefined>>;
