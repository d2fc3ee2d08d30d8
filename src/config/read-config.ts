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
  /** What settings are checked against that only the rest of the program knows: the names of its tools. */
  tools?: readonly string[];
  /** Whether this run listens on an address, so that where it does matters. */
  listens?: boolean;
}

/** Reads every setting, a flag before its variable. Throws `SettingsError` with all the problems at once. */
export function readConfig(environment: NodeJS.ProcessEnv, flags: Flags = {}, options: ReadOptions = {}): Config {
  const problems: string[] = [];
  const nameOf = (name: SettingName) => {
    const { variable, flag } = settings[name] as Setting;
    return present(flags[name]) === undefined || flag === undefined ? variable : flag;
  };
  const values = Object.entries(settings).map(([key, { variable, schema }]: [string, Setting]) => {
    const name = key as SettingName;
    const result = schema.safeParse(present(flags[name]) ?? present(environment[variable]));
    if (!result.success) problems.push(`${nameOf(name)} ${result.error.issues[0]?.message ?? 'is not understood'}`);
    return [name, result.data];
  });
  const config = Object.fromEntries(values) as Config;
  const unknown = config.tools?.filter((tool) => options.tools && !options.tools.includes(tool)) ?? [];
  if (unknown.length > 0) {
    problems.push(`${nameOf('tools')} names no tool: ${unknown.join(', ')}. Tools: ${options.tools?.join(', ')}`);
  }
  if (options.listens && config.host !== undefined && !isLoopback(config.host) && !config.allowedHosts?.length) {
    problems.push(
      `${settings.allowedHosts.variable} must name the hosts that requests are addressed to, because ${config.host} is not loopback`,
    );
  }
  if (problems.length > 0) throw new SettingsError(problems);
  return config;
}

/** Hosts hand over what a person left empty as '' or as the placeholder itself: both mean absent. */
function present(text: string | undefined): string | undefined {
  const trimmed = text?.trim();
  return trimmed === '' || (trimmed !== undefined && /^\$\{[^}]*\}$/.test(trimmed)) ? undefined : trimmed;
}
