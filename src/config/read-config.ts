import { isLoopback } from './setting-values.ts';
import { type Config, type Flags, type Setting, type SettingName, settings } from './settings.ts';

export class SettingsError extends Error {
  override readonly name = 'SettingsError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

export interface ReadOptions {
  /** The names of all tools, to check the setting that lists some. */
  tools?: readonly string[];
  /** Whether this run listens on an address, so that the host is checked. */
  listens?: boolean;
}

/** Reads every setting; a flag takes precedence over its variable. Throws `SettingsError` with all problems at once. */
export function readConfig(environment: NodeJS.ProcessEnv, flags: Flags = {}, options: ReadOptions = {}): Config {
  const problems: string[] = [];
  const nameOf = (name: SettingName) => {
    const { variable, flag } = settings[name] as Setting;
    return present(flags[name]) === undefined || flag === undefined ? variable : flag;
  };
  const values = Object.entries(settings).map(([key, { variable, schema }]: [string, Setting]) => {
    const name = key as SettingName;
    const result = schema.safeParse(present(flags[name]) ?? present(environment[variable]));
    if (!result.success) problems.push(`${nameOf(name)} ${result.error.issues[0]?.message ?? 'is not valid'}`);
    return [name, result.data];
  });
  const config = Object.fromEntries(values) as Config;
  const unknown = config.tools?.filter((tool) => options.tools && !options.tools.includes(tool)) ?? [];
  if (unknown.length > 0) {
    problems.push(`${nameOf('tools')} lists unknown tools: ${unknown.join(', ')}. Tools: ${options.tools?.join(', ')}`);
  }
  if (options.listens && config.host !== undefined && !isLoopback(config.host) && !config.allowedHosts?.length) {
    problems.push(
      `${settings.allowedHosts.variable} must list the host names that requests use, because ${config.host} is not loopback`,
    );
  }
  if (problems.length > 0) throw new SettingsError(problems);
  return config;
}

/** Hosts pass a field that the user left empty as '' or as the placeholder itself: both mean absent. */
function present(text: string | undefined): string | undefined {
  const trimmed = text?.trim();
  return trimmed === '' || (trimmed !== undefined && /^\$\{[^}]*\}$/.test(trimmed)) ? undefined : trimmed;
}
