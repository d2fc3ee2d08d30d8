import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { withPackage } from '../../scripts/docs/registry-file.ts';

const read = (file: string) => JSON.parse(readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8'));
const file = read('server.json');

/**
 * The rules of the registry's schema for what this file uses (server.json, 2025-12-11), written out here because no
 * npm package carries that schema. Closed objects, so that a misspelt key is found.
 */
const exactVersion = z.string().regex(/^\d+\.\d+\.\d+(-[\w.]+)?$/);
const variable = z.strictObject({
  name: z.string().min(1),
  description: z.string(),
  isRequired: z.boolean(),
  isSecret: z.boolean(),
  format: z.enum(['string', 'number', 'boolean', 'filepath']),
});
const packaged = z.strictObject({
  registryType: z.literal('npm'),
  identifier: z.string(),
  version: exactVersion,
  runtimeHint: z.literal('npx'),
  transport: z.strictObject({ type: z.literal('stdio') }),
  environmentVariables: z.array(variable),
});
const registryFile = z.strictObject({
  $schema: z.literal('https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json'),
  name: z
    .string()
    .min(3)
    .max(200)
    .regex(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/),
  title: z.string().min(1).max(100),
  description: z.string().min(1).max(100),
  version: exactVersion,
  packages: z.array(packaged),
});

test('server.json is as the registry wants it', () => {
  expect(registryFile.safeParse(file).error?.issues ?? []).toEqual([]);
});

test('server.json matches the code and the package name (npm run docs writes it)', () => {
  expect(withPackage(file)).toEqual(file);
  const { name, mcpName } = read('package.json');
  expect(file.packages[0].identifier).toBe(name);
  expect(file.name).toBe(mcpName);
});
