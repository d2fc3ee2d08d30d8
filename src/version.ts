import about from '../package.json' with { type: 'json' };

/** The package's own version: `package.json` is its only author. */
export const version = about.version;
