import { readFileSync } from 'node:fs';
import { isNear, nearestFirst } from '../api/nearest.ts';
import { isLoopback } from './setting-values.ts';
import { type Config, type Flags, type Setting, type SettingName, settings } from './settings.ts';

export class SettingsError extends Error {
  override readonly name = 'SettingsError';
  readonly problems: readonly string[];
  /** With defaults for those that could not be read; undefined if a flag is wrong, because that ends the command. */
  readonly config: Config | undefined;

  constructor(problems: readonly string[], config?: Config) {
    super(problems.join('\n'));
    this.problems = problems;
    this.config = config;
  }
}

interface ReadOptions {
  /** The names of all tools, to check the setting that lists some. */
  tools?: readonly string[];
  /** The command that reads the settings: what it needs of them depends on it. */
  command?: string;
}

const listeningCommands = ['http', 'library serve'];
const singleUserCommands = ['stdio', 'call'];

/** Reads every setting; a flag takes precedence over its variable. Throws `SettingsError` with all problems at once. */
export function readConfig(
  environment: NodeJS.ProcessEnv,
  flags: Flags = {},
  { tools, command = '' }: ReadOptions = {},
): Config {
  const problems = new Map<SettingName, string>();
  const hasFlag = (name: SettingName) => normalizeText(flags[name]) !== undefined && 'flag' in settings[name];
  const addProblem = (name: SettingName, problem: string) => {
    const { variable, flag, title } = settings[name] as Setting;
    if (hasFlag(name)) problems.set(name, `${flag} ${problem}`);
    else
      problems.set(name, `${variable} ${problem}${listeningCommands.includes(command) ? '' : formatFormHint(title)}`);
  };
  const values = Object.entries(settings).map(([key, setting]: [string, Setting]) => {
    const name = key as SettingName;
    try {
      return [name, setting.parse(normalizeText(flags[name]) ?? readSettingText(setting, environment))];
    } catch (error) {
      addProblem(name, (error as Error).message);
      return [name, setting.parse(undefined)];
    }
  });
  const config = Object.fromEntries(values) as Config;
  for (const [name, problem] of findCombinationProblems(config, command, tools))
    if (!problems.has(name)) addProblem(name, problem);
  if (problems.size === 0) return config;
  throw new SettingsError([...problems.values()], [...problems.keys()].some(hasFlag) ? undefined : config);
}

/** What is missing without which every call of a user's own server fails, by variable and by the host's form. */
export function findMissingSettings(config: Config): string[] {
  if (config.demo) return [];
  const missingNames = (['apiKey', 'baseUrl'] as const).filter((name) => config[name] === undefined);
  return missingNames.map((name) => `${settings[name].variable}${formatFormHint(settings[name].title)}`);
}

const formatFormHint = (title: string | undefined) => (title ? ` (in the host's form: "${title}")` : '');

const maxListedTools = 5;

/** What is wrong with settings that are fine one by one. */
function* findCombinationProblems(
  config: Config,
  command: string,
  tools: readonly string[] | undefined,
): Generator<[SettingName, string]> {
  const { host, allowedHosts, baseUrl, demo, files, stateUrl, stateSecret, publicUrl, signInSecret } = config;
  const isHttp = command === 'http';
  const unknownTools = config.tools?.filter((tool) => tools && !tools.includes(tool)) ?? [];
  if (unknownTools.length > 0) {
    const shown =
      unknownTools.slice(0, maxListedTools).join(', ') + (unknownTools.length > maxListedTools ? ', …' : '');
    yield ['tools', `lists unknown tools: ${shown}. Tools: ${tools?.join(', ')}`];
  }
  if (listeningCommands.includes(command) && !isLoopback(host) && !allowedHosts && !(isHttp && publicUrl)) {
    yield ['allowedHosts', `must list the host names that requests use, because ${host} is not loopback`];
  }
  if (isHttp && baseUrl === undefined && !demo) {
    yield ['baseUrl', '(or --base-url) must be set to the base address of the API; to try it without one, use --demo'];
  }
  if (isHttp && files !== undefined) {
    yield ['files', 'must be left out over HTTP: the folder belongs to one user, and HTTP serves many'];
  }
  if (singleUserCommands.includes(command) && stateUrl)
    yield ['stateUrl', 'is only for http: a server over stdio keeps its state in its process'];
  const secretHint = 'the same for all replicas, at least 32 characters; make one with: openssl rand -base64 32';
  if (isHttp && stateUrl && stateSecret === undefined)
    yield ['stateSecret', `must be set with a state address: ${secretHint}`];
  if (isHttp && signInSecret && publicUrl === undefined)
    yield ['publicUrl', '(or --public-url) must be set with a secret for sign-in'];
  if (isHttp && demo && signInSecret)
    yield ['signInSecret', 'is not for demo data, which needs no key to sign in with'];
}

const fileSuffix = '_FILE';

/** The text of a variable, or of the file that another variable names. */
function readSettingText({ variable, inFile }: Setting, environment: NodeJS.ProcessEnv): string | undefined {
  const text = normalizeText(environment[variable]);
  const file = inFile && normalizeText(environment[variable + fileSuffix]);
  if (!file) return text;
  if (text !== undefined) throw new Error(`must be left out where ${variable}${fileSuffix} is set`);
  const where = `${file}, the file of ${variable}${fileSuffix}`;
  let content: string;
  try {
    content = readFileSync(file, 'utf8');
  } catch (error) {
    throw new Error(`cannot be read from ${where}: ${(error as NodeJS.ErrnoException).code}`);
  }
  if (content.trim() === '') throw new Error(`is empty in ${where}`);
  return content.trim();
}

/** Hosts pass a field that the user left empty as '' or as the placeholder itself: both mean absent. */
function normalizeText(text: string | undefined): string | undefined {
  const trimmed = text?.trim();
  return trimmed === '' || (trimmed !== undefined && /^\$\{[^}]*\}$/.test(trimmed)) ? undefined : trimmed;
}

const prefix = 'AD_LIBRARY_';

/** What is wrong with variables that look like settings but are not: the person who set them expects an effect. */
export function findUnknownVariables(environment: NodeJS.ProcessEnv): string[] {
  const variables = Object.values<Setting>(settings).flatMap(({ variable, inFile }) => {
    const name = variable.slice(prefix.length);
    return inFile ? [name, name + fileSuffix] : [name];
  });
  const names = Object.keys(environment).flatMap((name) =>
    name.startsWith(prefix) ? [name.slice(prefix.length)] : [],
  );
  return names.flatMap((name) => {
    if (variables.includes(name)) return [];
    const [nearest = ''] = nearestFirst(name, variables);
    const hint = isNear(name, nearest) ? `; did you mean ${prefix}${nearest}?` : '';
    return [`${prefix}${name} is not a setting and has no effect${hint}`];
  });
}
