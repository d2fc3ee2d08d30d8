/**
 * Writes the desktop bundle (MCPB), with the given URLs of privacy policies. Run it with `npm run pack:mcpb --
 * [PRIVACY_POLICY_URL…]`.
 */
import { writeFileSync } from 'node:fs';
import { findPolicyProblems, packBundle } from './bundle.ts';

const addedPolicies = process.argv.slice(2);
const problems = findPolicyProblems(addedPolicies);
if (problems.length > 0) {
  for (const problem of problems) process.stderr.write(`pack:mcpb: ${problem}\n`);
  process.exit(2);
}
const { name, bytes, policies } = packBundle(addedPolicies);
writeFileSync(name, bytes);
process.stdout.write(`${name}: ${bytes.length.toLocaleString('en')} bytes\n`);
if (policies.length === 0) {
  process.stdout.write(
    'The bundle names no privacy policy. Before other people install it, fill in privacyPolicies in package.json and run npm run docs, or run npm run pack:mcpb -- https://…/privacy\n',
  );
}
