import { register } from 'node:module';

/*
 * The runner imports `globSync` from `fs`, which Node has from 22 on, for a command that is not used here. On Node 20
 * its `fs` is one that has the name. `node --import glob-sync.mjs <runner>`
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
