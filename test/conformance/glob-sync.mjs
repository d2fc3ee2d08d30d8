import { register } from 'node:module';

/*
 * The runner of the conformance suite imports `globSync` from `fs` for a command that these tests do not use. Node has
 * `globSync` since version 22. For Node 20, this module replaces the runner's `fs` with a module that exports the name.
 * Usage: `node --import glob-sync.mjs <runner>`
 */
const fs = `
  export * from 'node:fs';
  export const globSync = () => { throw new Error('globSync needs Node 22'); };
`;
const hook = `
  export const resolve = (specifier, context, next) =>
    specifier === 'fs' && context.parentURL?.includes('/conformance/')
      ? { url: ${JSON.stringify(`data:text/javascript,${encodeURIComponent(fs)}`)}, shortCircuit: true }
      : next(specifier, context);
`;
if (Number(process.versions.node.split('.')[0]) < 22) register(`data:text/javascript,${encodeURIComponent(hook)}`);
