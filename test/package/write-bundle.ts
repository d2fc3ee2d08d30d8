/** `npm run pack:mcpb [-- PRIVACY_POLICY_ADDRESS…]` writes the desktop bundle, with the policies of the service it is for. */
import { writeFileSync } from 'node:fs';
import { packBundle } from './pack.ts';

const { name, bytes } = packBundle(process.argv.slice(2));
writeFileSync(name, bytes);
process.stdout.write(`${name}: ${bytes.length.toLocaleString('en')} bytes\n`);
