import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');

test('the bill of materials has the packages whose licences are bundled, and only those', () => {
  const bill = JSON.parse(read('dist/sbom.cdx.json'));
  expect(bill).toMatchObject({ bomFormat: 'CycloneDX', metadata: { component: { name: 'ad-library-mcp' } } });
  const licensed = [...read('dist/THIRD-PARTY-LICENSES').matchAll(/(?:^|-{80}\n\n)(\S+) (\S+) \([^)\n]+\)\n\n/g)];
  const packages = licensed.map(([, name, version]) => `${name}@${version}`);
  expect(packages.length).toBeGreaterThan(20);
  expect(bill.components.map((component: { 'bom-ref': string }) => component['bom-ref']).sort()).toEqual(
    packages.sort(),
  );
  for (const { hashes, licenses } of bill.components) expect([hashes.length, licenses.length]).toEqual([1, 1]);
  expect(bill.dependencies[0].dependsOn).toHaveLength(packages.length);
});

test('it has nothing that changes from one build of the same files to the next', () => {
  expect(JSON.parse(read('dist/sbom.cdx.json'))).not.toHaveProperty('serialNumber');
  expect(read('dist/sbom.cdx.json')).not.toMatch(/"timestamp"|"tools"/);
});
