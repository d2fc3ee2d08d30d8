import { type SettingName, settings } from '../../src/config/settings.ts';
import { version } from '../../src/version.ts';

/** The settings a person may want to enter where a host installs from a registry. */
const offered: SettingName[] = ['apiKey', 'baseUrl', 'demo', 'creditBudget', 'readOnly', 'files', 'mediaHosts'];

/** The parts of the registry file that the code is the author of: the version, and what its package takes. */
export const withPackage = (file: object): object => ({
  ...file,
  version,
  packages: [
    {
      registryType: 'npm',
      identifier: 'ad-library-mcp',
      version,
      runtimeHint: 'npx',
      transport: { type: 'stdio' },
      environmentVariables: offered.map((name) => {
        const { variable, help, secret } = settings[name] as { variable: string; help: string; secret?: true };
        return {
          name: variable,
          description: help,
          isRequired: false,
          format: formats[name],
          isSecret: secret === true,
        };
      }),
    },
  ],
});

const formats: Partial<Record<SettingName, string>> = {
  apiKey: 'string',
  baseUrl: 'string',
  demo: 'boolean',
  creditBudget: 'number',
  readOnly: 'boolean',
  files: 'filepath',
  mediaHosts: 'string',
};
