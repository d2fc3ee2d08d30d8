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

const listening = ['http', 'library serve'];
const forOneUser = ['stdio', 'call'];

/** Reads every setting; a flag takes precedence over its variable. Throws `SettingsError` with all problems at once. */
export function readConfig(
  environment: NodeJS.ProcessEnv,
  flags: Flags = {},
  { tools, command = '' }: ReadOptions = {},
): Config {
  const problems = new Map<SettingName, string>();
  const isFlag = (name: SettingName) => present(flags[name]) !== undefined && 'flag' in settings[name];
  const report = (name: SettingName, problem: string) => {
    const { variable, flag, title } = settings[name] as Setting;
    if (isFlag(name)) problems.set(name, `${flag} ${problem}`);
    else problems.set(name, `${variable} ${problem}${listening.includes(command) ? '' : inTheForm(title)}`);
  };
  const values = Object.entries(settings).map(([key, setting]: [string, Setting]) => {
    const name = key as SettingName;
    try {
      return [name, setting.read(present(flags[name]) ?? textOf(setting, environment))];
    } catch (error) {
      report(name, (error as Error).message);
      return [name, setting.read(undefined)];
    }
  });
  const config = Object.fromEntries(values) as Config;
  for (const [name, problem] of combinedProblems(config, command, tools))
    if (!problems.has(name)) report(name, problem);
  if (problems.size === 0) return config;
  throw new SettingsError([...problems.values()], [...problems.keys()].some(isFlag) ? undefined : config);
}

/** What is missing without which every call of a user's own server fails, by variable and by the host's form. */
export function missingSettings(config: Config): string[] {
  if (config.demo) return [];
  const needed = (['apiKey', 'baseUrl'] as const).filter((name) => config[name] === undefined);
  return needed.map((name) => `${settings[name].variable}${inTheForm(settings[name].title)}`);
}

const inTheForm = (title: string | undefined) => (title ? ` (in the host's form: "${title}")` : '');

const maxShown = 5;

/** What is wrong with settings that are fine one by one. */
function* combinedProblems(
  config: Config,
  command: string,
  tools: readonly string[] | undefined,
): Generator<[SettingName, string]> {
  const { host, allowedHosts, baseUrl, demo, files, stateUrl, stateSecret, publicUrl, signInSecret } = config;
  const http = command === 'http';
  const unknown = config.tools?.filter((tool) => tools && !tools.includes(tool)) ?? [];
  if (unknown.length > 0) {
    const shown = unknown.slice(0, maxShown).join(', ') + (unknown.length > maxShown ? ', …' : '');
    yield ['tools', `lists unknown tools: ${shown}. Tools: ${tools?.join(', ')}`];
  }
  if (listening.includes(command) && !isLoopback(host) && !allowedHosts && !(http && publicUrl)) {
    yield ['allowedHosts', `must list the host names that requests use, because ${host} is not loopback`];
  }
  if (http && baseUrl === undefined && !demo) {
    yield ['baseUrl', '(or --base-url) must be set to the base address of the API; to try it without one, use --demo'];
  }
  if (http && files !== undefined) {
    yield ['files', 'must be left out over HTTP: the folder belongs to one user, and HTTP serves many'];
  }
  if (forOneUser.includes(command) && stateUrl)
    yield ['stateUrl', 'is only for http: a server over stdio keeps its state in its process'];
  const how = 'the same for all replicas, at least 32 characters; make one with: openssl rand -base64 32';
  if (http && stateUrl && stateSecret === undefined) yield ['stateSecret', `must be set with a state address: ${how}`];
  if (http && signInSecret && publicUrl === undefined)
    yield ['publicUrl', '(or --public-url) must be set with a secret for sign-in'];
  if (http && demo && signInSecret) yield ['signInSecret', 'is not for demo data, which needs no key to sign in with'];
}

const fileSuffix = '_FILE';

/** The text of a variable, or of the file that another variable names. */
function textOf({ variable, inFile }: Setting, environment: NodeJS.ProcessEnv): string | undefined {
  const text = present(environment[variable]);
  const file = inFile && present(environment[variable + fileSuffix]);
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
function present(text: string | undefined): string | undefined {
  const trimmed = text?.trim();
  return trimmed === '' || (trimmed !== undefined && /^\$\{[^}]*\}$/.test(trimmed)) ? undefined : trimmed;
}

const prefix = 'AD_LIBRARY_';

/** What is wrong with variables that look like settings but are not: the person who set them expects an effect. */
export function unknownVariables(environment: NodeJS.ProcessEnv): string[] {
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
