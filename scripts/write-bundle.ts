/** `npm run pack:mcpb [-- PRIVACY_POLICY_ADDRESS…]` writes the desktop bundle, with the policies of the service it is for. */
import { writeFileSync } from 'node:fs';
import { packBundle, policyProblems } from './bundle.ts';

const added = process.argv.slice(2);
const problems = policyProblems(added);
if (problems.length > 0) {
  for (const problem of problems) process.stderr.write(`pack:mcpb: ${problem}\n`);
  process.exit(2);
}
const { name, bytes, policies } = packBundle(added);
writeFileSync(name, bytes);
process.stdout.write(`${name}: ${bytes.length.toLocaleString('en')} bytes\n`);
if (policies.length === 0) {
  process.stdout.write(
    'It names no privacy policy. For others to install: fill in privacyPolicies in package.json and run npm run docs, or npm run pack:mcpb -- https://…/privacy\n',
  );
}
