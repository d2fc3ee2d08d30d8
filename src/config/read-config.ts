import { readFileSync } from 'node:fs';
import { isSimilar, sortBySimilarity } from '../api/nearest.ts';
import { type LogFormat, logFormats } from '../logging/log.ts';
import { isLoopbackHost, parsePath } from './setting-values.ts';
import { type Config, type Flags, type Setting, type SettingName, settings } from './settings.ts';

/**
 * The error for invalid settings. The error lists all problems instead of only the first one, so that users can fix all
 * of them at once.
 */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
  readonly problems: readonly string[];
  /**
   * The configuration, in which defaults replace the invalid settings. A stdio server still starts with this
   * configuration and reports the problems. Undefined if a flag is invalid, because the command then exits with an
   * error.
   */
  readonly config: Config | undefined;

  constructor(problems: readonly string[], config?: Config) {
    super(problems.join('\n'));
    this.problems = problems;
    this.config = config;
  }
}

interface ReadOptions {
  /** The names of all tools, for checking the tool names in the `AD_LIBRARY_TOOLS` setting. */
  toolNames?: readonly string[];
  /** The command that reads the settings. The required settings depend on the command. */
  commandName?: string;
}

/** The commands that listen for requests on a host and port. */
const listeningCommands = ['http', 'library serve'];
/** The commands that run for a single user, whose API key is in the settings. */
const singleUserCommands = ['stdio', 'call'];

/**
 * Reads all settings from environment variables and command-line flags. A flag takes precedence over the environment
 * variable of the same setting.
 * @throws SettingsError that lists all problems
 */
export function readConfig(
  environment: NodeJS.ProcessEnv,
  flags: Flags = {},
  { toolNames, commandName = '' }: ReadOptions = {},
): Config {
  const problems = new Map<SettingName, string>();
  const hasFlag = (name: SettingName) => normalizeSettingText(flags[name]) !== undefined && 'flag' in settings[name];
  const addProblem = (name: SettingName, problem: string) => {
    const { variable, flag, title } = settings[name] as Setting;
    if (hasFlag(name)) problems.set(name, `${flag} ${problem}`);
    else
      problems.set(
        name,
        `${variable} ${problem}${listeningCommands.includes(commandName) ? '' : formatSettingsFormHint(title)}`,
      );
  };
  const values = Object.entries(settings).map(([key, setting]: [string, Setting]) => {
    const name = key as SettingName;
    try {
      return [name, setting.parse(normalizeSettingText(flags[name]) ?? readSettingText(setting, environment))];
    } catch (error) {
      addProblem(name, (error as Error).message);
      return [name, setting.parse(undefined)];
    }
  });
  const config = Object.fromEntries(values) as Config;
  for (const [name, problem] of findCombinationProblems(config, commandName, toolNames))
    if (!problems.has(name)) addProblem(name, problem);
  if (problems.size === 0) return config;
  throw new SettingsError([...problems.values()], [...problems.keys()].some(hasFlag) ? undefined : config);
}

/**
 * Returns the log format, for errors that occur before all settings are read. The flag takes precedence over the
 * environment variable. Invalid values count as missing, because `readConfig` reports them later.
 * @param argv the command line, which may be invalid
 */
export function readLogFormat(environment: NodeJS.ProcessEnv, argv: readonly string[]): LogFormat | undefined {
  const { flag = '', variable } = settings.logFormat;
  const flagValues = argv.flatMap((word, index) => {
    if (word === flag) return [argv[index + 1]];
    return word.startsWith(`${flag}=`) ? [word.slice(flag.length + 1)] : [];
  });
  const texts = [...flagValues.reverse(), environment[variable]].map(normalizeSettingText);
  return texts.map((text) => logFormats.find((format) => format === text)).find((format) => format !== undefined);
}

/**
 * Describes the settings that a stdio server needs but that are not set: the API key, the base URL of the API, or both.
 * Each text contains the environment variable and the label of the setting in the settings form of the host.
 */
export function findMissingSettings(config: Config): string[] {
  if (config.demo) return [];
  const missingNames = (['apiKey', 'baseUrl'] as const).filter((name) => config[name] === undefined);
  return missingNames.map((name) => `${settings[name].variable}${formatSettingsFormHint(settings[name].title)}`);
}

const formatSettingsFormHint = (title: string | undefined) => (title ? ` (in the host's form: "${title}")` : '');

const maxListedTools = 5;

/**
 * Yields a message for each setting whose value is valid by itself, but not together with another setting or not for
 * this command.
 */
function* findCombinationProblems(
  config: Config,
  commandName: string,
  toolNames: readonly string[] | undefined,
): Generator<[SettingName, string]> {
  const { host, allowedHosts, baseUrl, demo, database, files, stateUrl, stateSecret, publicUrl, signInSecret } = config;
  const isHttpCommand = commandName === 'http';
  const unknownTools = config.tools?.filter((tool) => toolNames && !toolNames.includes(tool)) ?? [];
  if (unknownTools.length > 0) {
    const ellipsis = unknownTools.length > maxListedTools ? ', …' : '';
    const listedTools = unknownTools.slice(0, maxListedTools).join(', ') + ellipsis;
    yield ['tools', `lists unknown tools: ${listedTools}. Tools: ${toolNames?.join(', ')}`];
  }
  if (
    listeningCommands.includes(commandName) &&
    !isLoopbackHost(host) &&
    !allowedHosts &&
    !(isHttpCommand && publicUrl)
  ) {
    yield ['allowedHosts', `must list the host names that requests use, because ${host} is not a loopback address`];
  }
  if (isHttpCommand && baseUrl === undefined && !demo) {
    yield [
      'baseUrl',
      '(or --base-url) must be set to the base address of the API. To try the server without an API, use --demo',
    ];
  }
  if (isHttpCommand && files !== undefined) {
    yield ['files', 'must be left out over HTTP, because the folder belongs to one user and HTTP serves many'];
  }
  if (commandName === 'library serve' && demo && database !== undefined) {
    yield [
      'database',
      'must be left out with demo data, because demo data is served from memory. To serve the database, leave out --demo',
    ];
  }
  if (singleUserCommands.includes(commandName) && stateUrl)
    yield ['stateUrl', 'is only for http. A server over stdio keeps its state in memory'];
  const secretHint = 'the same for all replicas, at least 32 characters; make one with: openssl rand -base64 32';
  if (isHttpCommand && stateUrl && stateSecret === undefined)
    yield ['stateSecret', `must be set with a state address: ${secretHint}`];
  // Without this check, each replica would start with a state and a credit budget of its own.
  if (isHttpCommand && stateSecret && stateUrl === undefined)
    yield ['stateUrl', '(or --state-url) must be set, because AD_LIBRARY_STATE_SECRET is set'];
  if (isHttpCommand && signInSecret && publicUrl === undefined)
    yield ['publicUrl', '(or --public-url) must be set, because AD_LIBRARY_SIGN_IN_SECRET is set'];
  if (isHttpCommand && demo && signInSecret)
    yield ['signInSecret', 'must be left out with demo data, because demo data needs no key and no sign-in'];
}

const fileSuffix = '_FILE';

/**
 * Returns the text of a setting: the value of its environment variable, or the content of the file whose path is in the
 * variable with the suffix `_FILE`.
 */
function readSettingText({ variable, canBeReadFromFile }: Setting, environment: NodeJS.ProcessEnv): string | undefined {
  const variableText = normalizeSettingText(environment[variable]);
  const filePath = canBeReadFromFile && normalizeSettingText(environment[variable + fileSuffix]);
  if (!filePath) return variableText;
  if (variableText !== undefined) throw new Error(`must be left out if ${variable}${fileSuffix} is set`);
  // Do not mention the path, because a user may have set this variable to the secret itself by mistake.
  const fileDescription = `the file of ${variable}${fileSuffix}`;
  let content: string;
  try {
    content = readFileSync(parsePath(filePath), 'utf8');
  } catch (error) {
    throw new Error(`cannot be read from ${fileDescription}: ${(error as NodeJS.ErrnoException).code}`);
  }
  if (content.trim() === '') throw new Error(`is empty in ${fileDescription}`);
  return content.trim();
}

/**
 * Trims the text of a setting. Returns undefined if the text is empty or an unexpanded placeholder such as
 * `${user_config.api_key}`. An MCP host passes such a text if the user leaves a field of its settings form empty.
 */
function normalizeSettingText(settingText: string | undefined): string | undefined {
  const trimmedText = settingText?.trim();
  return trimmedText === '' || (trimmedText !== undefined && /^\$\{[^}]*\}$/.test(trimmedText))
    ? undefined
    : trimmedText;
}

const variablePrefix = 'AD_LIBRARY_';

/**
 * Returns a sentence for each variable that has a value and that is not a setting although its name starts with
 * `AD_LIBRARY_`, because users would otherwise not notice a typo. The sentence suggests a similar setting if there is one.
 */
export function findUnknownVariables(environment: NodeJS.ProcessEnv): string[] {
  const knownShortNames = Object.values<Setting>(settings).flatMap(({ variable, canBeReadFromFile }) => {
    const shortName = variable.slice(variablePrefix.length);
    return canBeReadFromFile ? [shortName, shortName + fileSuffix] : [shortName];
  });
  const usedShortNames = Object.entries(environment).flatMap(([name, value]) =>
    value && name.startsWith(variablePrefix) ? [name.slice(variablePrefix.length)] : [],
  );
  return usedShortNames.flatMap((shortName) => {
    if (knownShortNames.includes(shortName)) return [];
    const [mostSimilar = ''] = sortBySimilarity(shortName, knownShortNames);
    const hint = isSimilar(shortName, mostSimilar) ? `; did you mean ${variablePrefix}${mostSimilar}?` : '';
    return [`${variablePrefix}${shortName} is not a setting and has no effect${hint}`];
  });
}
