import { logFormats, logLevels } from '../logging/log.ts';
import {
  addDefaultValue,
  createChoiceParser,
  createWholeNumberParser,
  makeOptional,
  parseApiKey,
  parseBaseUrl,
  parseBoolean,
  parseHostNames,
  parseListenHost,
  parseMediaHosts,
  parseNames,
  parseOrigin,
  parsePath,
  parseSecret,
  parseStoreUrl,
  parseTrustedProxy,
  readFiltersFile,
} from './setting-values.ts';

/** The definition of a setting. `addNames` adds the names of the environment variable and the command-line flag. */
interface SettingDefinition {
  /**
   * Parses the text of the environment variable or flag. If the setting is missing, `settingText` is undefined, and the
   * function returns the default value.
   * @throws Error whose message continues the name of the setting, e.g. `must be true or false`
   */
  parse(settingText: string | undefined): unknown;
  /** True if the value is a secret. Secrets have no flag, because flags are visible in process lists. */
  isSecret?: true;
  /**
   * True if the server can also read the value from a file, because containers pass secrets as files. The environment
   * variable with the suffix `_FILE` then contains the path of the file.
   */
  canBeReadFromFile?: true;
  /**
   * The placeholder for the flag's value in the help text, e.g. `url` in `--base-url <url>`. Undefined for flags
   * without a value.
   */
  valueName?: string;
  /**
   * The only kind of command that accepts the flag. If this is undefined, all commands that serve MCP accept the flag.
   * `cli/parse.ts` lists the flags of the `library` commands.
   */
  onlyFor?: 'stdio' | 'http' | 'library';
  /**
   * The label of the setting in the settings forms of hosts. Only settings with a title appear in these forms. The
   * label is also published in `server.json` for the MCP registry and in `manifest.json` for desktop hosts.
   */
  title?: string;
  /** A description of the setting for the output of `--help`, the documentation and the settings forms of hosts. */
  help: string;
}

/** A setting together with the names of its environment variable and its command-line flag. */
export interface Setting extends SettingDefinition {
  /** The environment variable, e.g. `AD_LIBRARY_BASE_URL`. */
  variable: string;
  /** The flag, e.g. `--base-url`. Undefined for secrets, because flags are visible in process lists. */
  flag?: string;
}

/**
 * Adds the names of the environment variable and the flag to each setting. For example, `creditBudget` gets
 * `AD_LIBRARY_CREDIT_BUDGET` and `--credit-budget`.
 */
function addNames<Definitions extends Record<string, SettingDefinition>>(definitions: Definitions) {
  const namedSettings = Object.entries(definitions).map(([name, definition]): [string, Setting] => {
    const flag = `--${name.replace(/[A-Z]/g, '-$&').toLowerCase()}`;
    const variable = `AD_LIBRARY${flag.slice(1).replaceAll('-', '_').toUpperCase()}`;
    return [name, { ...definition, variable, ...(!definition.isSecret && { flag }) }];
  });
  return Object.fromEntries(namedSettings) as {
    [Name in keyof Definitions]: Definitions[Name] & Omit<Setting, 'parse'>;
  };
}

/**
 * All settings. The table in `docs/settings.md`, the output of `--help`, and the settings forms in `server.json` and
 * `manifest.json` are generated from this record.
 */
export const settings = addNames({
  apiKey: {
    title: 'API key',
    parse: makeOptional(parseApiKey),
    isSecret: true,
    canBeReadFromFile: true,
    help: 'Your API key (stdio only; over HTTP, every request carries its own)',
  },
  baseUrl: {
    title: 'API address',
    parse: makeOptional(parseBaseUrl),
    valueName: 'url',
    help: 'Base address of the API; may include a path prefix; must begin with https: unless the host is loopback',
  },
  demo: {
    title: 'Demo data',
    parse: addDefaultValue(parseBoolean, false),
    help: 'Serve generated demo data; needs no key and no address, and costs nothing',
  },
  host: {
    onlyFor: 'http',
    parse: addDefaultValue(parseListenHost, '127.0.0.1'),
    valueName: 'name',
    help: 'Host on which http and library serve listen',
  },
  port: {
    onlyFor: 'http',
    parse: addDefaultValue(createWholeNumberParser(0, 65_535), 3000),
    valueName: 'number',
    help: 'Port on which http and library serve listen; 0 picks a free port',
  },
  allowedHosts: {
    onlyFor: 'http',
    parse: makeOptional(parseHostNames),
    valueName: 'names',
    help: 'Host names that requests may use; required unless the host is loopback (default: loopback names)',
  },
  allowedOrigins: {
    onlyFor: 'http',
    parse: addDefaultValue(parseHostNames, []),
    valueName: 'names',
    help: 'Host names of the web pages that may call the server; none by default',
  },
  metrics: {
    onlyFor: 'http',
    parse: addDefaultValue(parseBoolean, false),
    help: 'Serve Prometheus metrics at GET /metrics (http only)',
  },
  callsAtOnce: {
    onlyFor: 'http',
    parse: addDefaultValue(createWholeNumberParser(1, 10_000), 256),
    valueName: 'calls',
    help: 'Maximum concurrent tool calls (http only)',
  },
  callsPerKey: {
    onlyFor: 'http',
    parse: addDefaultValue(createWholeNumberParser(1, 10_000), 16),
    valueName: 'calls',
    help: 'Maximum concurrent tool calls per key (http only)',
  },
  callsWaiting: {
    onlyFor: 'http',
    parse: addDefaultValue(createWholeNumberParser(0, 100_000), 1024),
    valueName: 'calls',
    help: 'Maximum waiting tool calls; if more arrive, the newest call of the key with the most waiting calls is refused (http only)',
  },
  refusalsPerMinute: {
    onlyFor: 'http',
    parse: addDefaultValue(createWholeNumberParser(0, 1_000_000), 300),
    valueName: 'keys',
    help: 'Unknown keys that one IP address may try per minute; 0 for no limit, if a proxy in front of the server limits them (http only)',
  },
  trustedProxy: {
    onlyFor: 'http',
    parse: makeOptional(parseTrustedProxy),
    valueName: 'network',
    help: 'IP address or network of the proxy in front of the server, or none; the last entry of its X-Forwarded-For header is then the address of the caller (http only)',
  },
  publicUrl: {
    onlyFor: 'http',
    parse: makeOptional(parseOrigin),
    valueName: 'url',
    help: 'Origin under which people reach the server from outside, such as https://ads.example.com; links to exported files begin with it; together with AD_LIBRARY_SIGN_IN_SECRET it switches on sign-in (http only)',
  },
  fileLinks: {
    onlyFor: 'http',
    parse: addDefaultValue(createChoiceParser(['on', 'off'], 'must be on or off'), 'on'),
    valueName: 'on|off',
    help: 'Whether results over HTTP contain links to exported files (http only)',
  },
  signInSecret: {
    parse: makeOptional(parseSecret),
    isSecret: true,
    canBeReadFromFile: true,
    help: 'Secret that encrypts the tokens of sign-in; the same for all replicas; at least 32 characters; requires a public URL',
  },
  creditBudget: {
    title: 'Credit budget',
    parse: makeOptional(createWholeNumberParser(0, 1_000_000_000)),
    valueName: 'credits',
    help: 'Maximum credits that each API key may spend in this process (with a shared state: in all replicas; for call with a folder: on one day in UTC); a call that could exceed the maximum is not sent',
  },
  confirmCredits: {
    title: 'Confirm credits',
    parse: makeOptional(createWholeNumberParser(0, 1_000_000_000)),
    valueName: 'credits',
    help: 'Ask the person before a call that may cost more credits than this, in hosts that can show forms; by default, no call is confirmed',
  },
  cacheSeconds: {
    parse: addDefaultValue(createWholeNumberParser(0, 86_400), 900),
    valueName: 'seconds',
    help: 'How long paid answers are cached per key; 0 turns the cache off',
  },
  resultTokens: {
    parse: addDefaultValue(createWholeNumberParser(1000, 100_000), 8000),
    valueName: 'tokens',
    help: 'Target size of the text of a result, in estimated tokens',
  },
  output: {
    parse: addDefaultValue(
      createChoiceParser(['auto', 'both', 'text', 'structured'], 'must be auto, both, text or structured'),
      'auto',
    ),
    valueName: 'form',
    help: 'Form of results: auto (the form that the host is known to read), both, text (no output schemas and no structuredContent) or structured (the text block is one line)',
  },
  tools: {
    parse: makeOptional(parseNames),
    valueName: 'names',
    help: 'Comma-separated subset of tool names (default: all)',
  },
  readOnly: {
    title: 'Read only',
    parse: addDefaultValue(parseBoolean, false),
    help: 'Leave out add_collection_item, the tool that writes to the service',
  },
  timeoutMs: {
    parse: addDefaultValue(createWholeNumberParser(100, 600_000), 45_000),
    valueName: 'ms',
    help: 'Maximum time for one tool call in milliseconds, including retries and waiting in the queue',
  },
  logLevel: {
    parse: addDefaultValue(createChoiceParser(logLevels, `must be one of ${logLevels.join(', ')}`), 'warn'),
    valueName: 'level',
    help: `Lowest level of log lines: ${logLevels.join(', ')}; the log goes to stderr only`,
  },
  logFormat: {
    parse: makeOptional(createChoiceParser(logFormats, `must be ${logFormats.join(' or ')}`)),
    valueName: 'format',
    help: 'Form of log lines: text or json; with json, the messages at the start and errors are JSON, too (default: text; for http, json for events and text for the other messages)',
  },
  database: {
    onlyFor: 'library',
    parse: makeOptional(parsePath),
    valueName: 'file',
    help: 'File of the local library; ~ stands for your home folder (default: in memory with --demo, else ad-library.db)',
  },
  files: {
    onlyFor: 'stdio',
    title: 'Folder for files',
    // Treat a text with a placeholder as a missing setting. Some hosts pass the default value of their settings form
    // without replacing its placeholders, e.g. `${DOCUMENTS}/Ad Library`.
    parse: (settingText) => (settingText?.includes('${') ? undefined : makeOptional(parsePath)(settingText)),
    valueName: 'folder',
    help: 'Folder that stores the dataset between runs and receives exports; ~ stands for your home folder (not for http; default: the dataset stays in memory, and exports go to Downloads/Ad Library or a temporary folder; call writes exports to the current folder)',
  },
  mediaHosts: {
    title: 'Picture hosts',
    parse: addDefaultValue(parseMediaHosts, { allowsPublicHosts: true, listedHosts: [] }),
    valueName: 'names',
    help: 'Hosts from which view_ads and the board fetch pictures: public (every public host, over https; the default), none, or a list of name or name:port; only listed hosts may be internal or use http',
  },
  stateUrl: {
    onlyFor: 'http',
    canBeReadFromFile: true,
    parse: makeOptional(parseStoreUrl),
    valueName: 'url',
    help: 'Store that all replicas share: Redis 7 or Valkey at redis:// or rediss://, or PostgreSQL 15 or later at postgres:// or postgresql:// (http only; default: the state is in the memory of the process)',
  },
  stateSecret: {
    parse: makeOptional(parseSecret),
    isSecret: true,
    canBeReadFromFile: true,
    help: 'Secret that encrypts the shared state; the same for all replicas; at least 32 characters; required with a state address',
  },
  searchFilters: {
    parse: makeOptional(readFiltersFile),
    valueName: 'file',
    help: 'JSON file that describes the filter keys of the service',
  },
});

/** The name of a setting in the code, e.g. `creditBudget` for the `AD_LIBRARY_CREDIT_BUDGET` variable. */
export type SettingName = keyof typeof settings;
/** The parsed values of all settings, by their names in the code. */
export type Config = { [Name in SettingName]: ReturnType<(typeof settings)[Name]['parse']> };
/** The texts of the command-line flags before parsing, by the name of the setting. */
export type Flags = Partial<Record<SettingName, string | undefined>>;
