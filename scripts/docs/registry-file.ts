import { version } from '../../src/app.ts';
import { type Setting, settings } from '../../src/config/settings.ts';

/** The settings that a person may want to enter when installing: a desktop host's form offers them, too. */
const offered = Object.values<Setting>(settings).filter(({ title }) => title !== undefined);

/** Of the format, by what help calls the value. */
const formats: Record<string, string> = { credits: 'number', folder: 'filepath' };

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
      environmentVariables: offered.map(({ variable, help, secret, value = '' }) => ({
        name: variable,
        description: help,
        isRequired: false,
        format: value === '' && !secret ? 'boolean' : (formats[value] ?? 'string'),
        isSecret: secret === true,
      })),
    },
  ],
});
