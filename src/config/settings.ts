import * as z from 'zod';
import { logLevels } from '../log/log.ts';
import {
  baseUrl,
  filtersFile,
  hostName,
  hostNames,
  mediaHosts,
  names,
  network,
  onOff,
  origin,
  stateAddress,
  wholeNumber,
} from './setting-values.ts';

/** A setting: its environment variable, its flag if it has one, and its type. */
export interface Setting<Schema extends z.ZodType = z.ZodType> {
  variable: string;
  /** Absent for secrets, because process lists show flags. */
  flag?: string;
  schema: Schema;
  secret?: true;
  /** The name of the value in help, `--base-url <url>`. Without it, the flag is a switch. */
  value?: string;
  /** The only kind of command that takes its flag; without it, every MCP server does. */
  only?: 'stdio' | 'http' | 'library';
  /** The label of the field in a desktop host's form, for settings that the form offers. */
  title?: string;
  help: string;
}

const setting = <Schema extends z.ZodType>(record: Setting<Schema>) => record;

/** All settings. The table in docs/settings.md and `--help` are made from this record; `server.json` has a few of them. */
export const settings = {
  apiKey: setting({
    variable: 'AD_LIBRARY_API_KEY',
    title: 'API key',
    schema: z
      .string()
      .regex(/^[\x21-\x7e]+$/, 'must be the key as shown in the developer portal, without spaces')
      .optional(),
    secret: true,
    help: 'Your API key (stdio only; over HTTP, every request carries its own)',
  }),
  baseUrl: setting({
    variable: 'AD_LIBRARY_BASE_URL',
    flag: '--base-url',
    title: 'API address',
    schema: baseUrl.optional(),
    value: 'url',
    help: 'Base address of the API; may include a path prefix; must be https: unless it is loopback',
  }),
  demo: setting({
    variable: 'AD_LIBRARY_DEMO',
    flag: '--demo',
    title: 'Demo data',
    schema: onOff.default(false),
    help: 'Serve generated demo data; needs no key and no address, and costs nothing',
  }),
  host: setting({
    variable: 'AD_LIBRARY_HOST',
    flag: '--host',
    only: 'http',
    schema: hostName.default('127.0.0.1'),
    value: 'name',
    help: 'Host on which http and library serve listen',
  }),
  port: setting({
    variable: 'AD_LIBRARY_PORT',
    flag: '--port',
    only: 'http',
    schema: wholeNumber(0, 65_535).default(3000),
    value: 'number',
    help: 'Port on which http and library serve listen; 0 picks a free one',
  }),
  allowedHosts: setting({
    variable: 'AD_LIBRARY_ALLOWED_HOSTS',
    flag: '--allowed-hosts',
    only: 'http',
    schema: hostNames.optional(),
    value: 'names',
    help: 'Host names that requests may use; required unless the host is loopback (default: loopback names)',
  }),
  allowedOrigins: setting({
    variable: 'AD_LIBRARY_ALLOWED_ORIGINS',
    flag: '--allowed-origins',
    only: 'http',
    schema: hostNames.default([]),
    value: 'names',
    help: 'Host names of the browser origins allowed to call; none by default',
  }),
  metrics: setting({
    variable: 'AD_LIBRARY_METRICS',
    flag: '--metrics',
    only: 'http',
    schema: onOff.default(false),
    help: 'Serve Prometheus metrics at GET /metrics (http only)',
  }),
  callsAtOnce: setting({
    variable: 'AD_LIBRARY_CALLS_AT_ONCE',
    flag: '--calls-at-once',
    only: 'http',
    schema: wholeNumber(1, 10_000).default(256),
    value: 'calls',
    help: 'Maximum concurrent tool calls (http only)',
  }),
  callsPerKey: setting({
    variable: 'AD_LIBRARY_CALLS_PER_KEY',
    flag: '--calls-per-key',
    only: 'http',
    schema: wholeNumber(1, 10_000).default(16),
    value: 'calls',
    help: 'Maximum concurrent tool calls per key (http only)',
  }),
  callsWaiting: setting({
    variable: 'AD_LIBRARY_CALLS_WAITING',
    flag: '--calls-waiting',
    only: 'http',
    schema: wholeNumber(0, 100_000).default(1024),
    value: 'calls',
    help: 'Maximum tool calls in the queue; one key may hold an eighth of it (http only)',
  }),
  authFailuresPerMinute: setting({
    variable: 'AD_LIBRARY_REFUSALS_PER_MINUTE',
    flag: '--refusals-per-minute',
    only: 'http',
    schema: wholeNumber(0, 1_000_000).default(300),
    value: 'keys',
    help: 'Unknown keys that one address may try per minute; 0 for no limit, behind a proxy that has its own (http only)',
  }),
  trustedProxy: setting({
    variable: 'AD_LIBRARY_TRUSTED_PROXY',
    flag: '--trusted-proxy',
    only: 'http',
    schema: network.optional(),
    value: 'network',
    help: 'Address or network of a proxy whose X-Forwarded-For is believed (its last entry) when tries are counted (http only)',
  }),
  publicUrl: setting({
    variable: 'AD_LIBRARY_PUBLIC_URL',
    flag: '--public-url',
    only: 'http',
    schema: origin.optional(),
    value: 'url',
    help: 'Origin under which people reach http from outside, such as https://ads.example.com; with AD_LIBRARY_SIGN_IN_SECRET it switches on sign-in (http only)',
  }),
  signInSecret: setting({
    variable: 'AD_LIBRARY_SIGN_IN_SECRET',
    schema: z.string().min(32, 'must have at least 32 characters; make one with: openssl rand -base64 32').optional(),
    secret: true,
    help: 'Seals the tokens of sign-in; the same for all replicas, at least 32 characters; required with a public URL',
  }),
  creditBudget: setting({
    variable: 'AD_LIBRARY_CREDIT_BUDGET',
    flag: '--credit-budget',
    title: 'Credit budget',
    schema: wholeNumber(0, 1_000_000_000).optional(),
    value: 'credits',
    help: 'Maximum credits this process (with a shared state: all replicas; for call with a folder: all calls of a day) may spend per key; a call that could exceed them is not sent',
  }),
  cacheSeconds: setting({
    variable: 'AD_LIBRARY_CACHE_SECONDS',
    flag: '--cache-seconds',
    schema: wholeNumber(0, 86_400).default(900),
    value: 'seconds',
    help: 'How long paid answers are cached per key; 0 turns the cache off',
  }),
  resultTokens: setting({
    variable: 'AD_LIBRARY_RESULT_TOKENS',
    flag: '--result-tokens',
    schema: wholeNumber(1000, 100_000).default(8000),
    value: 'tokens',
    help: 'Maximum tokens of text in one result',
  }),
  output: setting({
    variable: 'AD_LIBRARY_OUTPUT',
    flag: '--output',
    schema: z.enum(['auto', 'both', 'text', 'structured'], 'must be auto, both, text or structured').default('auto'),
    value: 'form',
    help: 'auto (what the host is known to read), both, text (no output schemas, no structuredContent) or structured (the text block is one line)',
  }),
  tools: setting({
    variable: 'AD_LIBRARY_TOOLS',
    flag: '--tools',
    schema: names.optional(),
    value: 'names',
    help: 'Comma-separated subset of tool names (default: all)',
  }),
  readOnly: setting({
    variable: 'AD_LIBRARY_READ_ONLY',
    flag: '--read-only',
    title: 'Read only',
    schema: onOff.default(false),
    help: 'Leave out add_collection_item, the tool that writes to the service',
  }),
  timeoutMs: setting({
    variable: 'AD_LIBRARY_TIMEOUT_MS',
    flag: '--timeout-ms',
    schema: wholeNumber(100, 600_000).default(45_000),
    value: 'ms',
    help: 'Maximum time for one tool call, including retries and the wait for its turn',
  }),
  logLevel: setting({
    variable: 'AD_LIBRARY_LOG_LEVEL',
    flag: '--log-level',
    schema: z.enum(logLevels, `must be one of ${logLevels.join(', ')}`).default('warn'),
    value: 'level',
    help: `${logLevels.join(', ')}; to stderr only`,
  }),
  database: setting({
    variable: 'AD_LIBRARY_DATABASE',
    flag: '--database',
    only: 'library',
    schema: z.string().optional(),
    value: 'file',
    help: 'File of the local library (default: in memory with --demo, else ad-library.db)',
  }),
  files: setting({
    variable: 'AD_LIBRARY_FILES',
    flag: '--files',
    only: 'stdio',
    title: 'Folder for files',
    schema: z.string().optional(),
    value: 'folder',
    help: 'Folder that keeps the dataset between runs and receives exports (not for http; default: in memory)',
  }),
  mediaHosts: setting({
    variable: 'AD_LIBRARY_MEDIA_HOSTS',
    flag: '--media-hosts',
    title: 'Picture hosts',
    schema: mediaHosts.default({ public: true, listed: [] }),
    value: 'names',
    help: 'Where view_ads and the board fetch pictures: public (every public host, over https; the default), none, or hosts as name or name:port, which alone may be internal or use http',
  }),
  stateUrl: setting({
    variable: 'AD_LIBRARY_STATE_URL',
    flag: '--state-url',
    only: 'http',
    schema: stateAddress.optional(),
    value: 'url',
    help: 'Store that all replicas share: Redis 7 or Valkey at redis:// or rediss://, several hosts with ?cluster or ?sentinel=NAME, or PostgreSQL 15 at postgres:// or postgresql:// (http only; default: state is kept in the process)',
  }),
  stateSecret: setting({
    variable: 'AD_LIBRARY_STATE_SECRET',
    schema: z.string().min(32, 'must have at least 32 characters; make one with: openssl rand -base64 32').optional(),
    secret: true,
    help: 'Seals what is kept in the shared state; the same for all replicas, at least 32 characters; required with a state address',
  }),
  searchFilters: setting({
    variable: 'AD_LIBRARY_SEARCH_FILTERS',
    flag: '--search-filters',
    schema: filtersFile.optional(),
    value: 'file',
    help: 'JSON file that describes the filter keys of the service',
  }),
} as const;

export type SettingName = keyof typeof settings;
export type Config = { [Name in SettingName]: z.output<(typeof settings)[Name]['schema']> };
/** The texts of flags, by setting. */
export type Flags = Partial<Record<SettingName, string | undefined>>;
