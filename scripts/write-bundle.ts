/**
 * Writes the desktop bundle (MCPB), with the given URLs of privacy policies. Run it with `npm run pack:mcpb --
 * [PRIVACY_POLICY_URL…]`.
 */
import { writeFileSync } from 'node:fs';
import { findPolicyProblems, packBundle } from './bundle.ts';

const addedPolicyUrls = process.argv.slice(2);
const problems = findPolicyProblems(addedPolicyUrls);
if (problems.length > 0) {
  for (const problem of problems) process.stderr.write(`pack:mcpb: ${problem}\n`);
  process.exit(2);
}
const { fileName, bytes, policyUrls } = packBundle(addedPolicyUrls);
writeFileSync(fileName, bytes);
process.stdout.write(`${fileName}: ${bytes.length.toLocaleString('en')} bytes\n`);
if (policyUrls.length === 0) {
  process.stdout.write(
    'The bundle names no privacy policy. Before other people install it, fill in privacyPolicies in package.json and run npm run docs, or run npm run pack:mcpb -- https://…/privacy\n',
  );
}
