import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { ExportedFile, ExportStore, TenantExports } from '../../src/storage/exports.ts';

/** Exports a file that is written in several chunks. */
export const exportFile = (exports: TenantExports, name: string, ...chunks: readonly (string | Uint8Array)[]) =>
  exports.create({
    name,
    mimeType: 'text/csv',
    write: async (take) => {
      for (const chunk of chunks) await take(Buffer.from(chunk));
    },
  });

const readText = async (exports: TenantExports, uri: string) => {
  const file = await exports.find(uri);
  return file && Buffer.from(await file.readContent()).toString();
};

/** Defines the tests of a store for exported files. */
export function testExports(name: string, open: () => Promise<ExportStore>): void {
  describe(`Exported files ${name}`, () => {
    test('exported files are listed newest first, and their contents can be read back unchanged', async () => {
      const exports = (await open()).forTenant('a');
      const first = await exportFile(exports, 'ads.csv', 'id\n', 'ä\n');
      const empty = await exportFile(exports, 'ads.csv');
      expect(first).toMatchObject({ name: 'ads.csv', mimeType: 'text/csv', bytes: 6 });
      expect(first.uri).not.toBe(empty.uri);
      expect((await exports.list()).map(({ uri, bytes }) => [uri, bytes])).toEqual([
        [empty.uri, 0],
        [first.uri, 6],
      ]);
      expect(await readText(exports, first.uri)).toBe('id\nä\n');
      expect(await readText(exports, empty.uri)).toBe('');
    });

    test('an exported file is not listed if writing the file fails', async () => {
      const exports = (await open()).forTenant('a');
      const failing = exports.create({
        name: 'x.csv',
        mimeType: 'text/csv',
        write: async (take) => {
          await take(Buffer.from('half'));
          throw new Error('the rows ended');
        },
      });
      await expect(failing).rejects.toThrow('the rows ended');
      expect(await exports.list()).toEqual([]);
    });

    test('the links of the last fifty exported files work until the API rejects the API key', async () => {
      const { forTenant, links } = await open();
      const linkOf = ({ linkPath = '' }: ExportedFile) => linkPath.split('/')[2] ?? '';
      const linkPaths: string[] = [];
      for (let count = 0; count < 51; count++)
        linkPaths.unshift(linkOf(await exportFile(forTenant('a'), 'x.csv', `${count}`)));
      const [newest = '', oldest = ''] = [linkPaths[0], linkPaths.at(-1)];
      const foundFile = await links?.find(newest, 'x.csv');
      if (foundFile === undefined || foundFile === 'ended') throw new Error('The link leads nowhere.');
      expect([foundFile.tenantId, String(await foundFile.file.readContent())]).toEqual(['a', '50']);
      expect(await links?.find(oldest, 'x.csv')).toBe('ended');
      for (const [link, name] of [
        [newest, 'y.csv'],
        ['', 'x.csv'],
        [`${newest}x`, 'x.csv'],
      ] as const)
        expect(await links?.find(link, name)).toBeUndefined();
      await links?.disable('b', true);
      expect(await links?.find(newest, 'x.csv')).not.toBe('ended');
      await links?.disable('a', true);
      expect(await links?.find(newest, 'x.csv')).toBe('ended');
      expect(await forTenant('a').list()).toHaveLength(50);
    });

    test('an exported file gets no link if the API rejects the API key while the file is written', async () => {
      const { forTenant, links } = await open();
      const call = forTenant('a');
      const rejectAndWrite = (exports: TenantExports) =>
        exports.create({
          name: 'x.csv',
          mimeType: 'text/csv',
          write: async (take) => {
            await take(Buffer.from('half'));
            await links?.disable('a', true);
            await take(Buffer.from('rest'));
          },
        });
      for (const make of [() => rejectAndWrite(call), () => exportFile(call, 'x.csv', 'x')]) {
        const file = await make();
        expect(file.linkPath).toBeUndefined();
        expect((await file.readContent()).length).toBeGreaterThan(0);
      }
      // Wait, because a clock may count only whole milliseconds.
      await delay(5);
      const { linkPath = '' } = await exportFile(forTenant('a'), 'x.csv', 'x');
      expect(await links?.find(linkPath.split('/')[2] ?? '', 'x.csv')).not.toBe('ended');
    });

    test('exported files are visible only to the API key that created them', async () => {
      const store = await open();
      const [ownExports, otherExports] = [store.forTenant('a'), store.forTenant('b')];
      const { uri } = await exportFile(ownExports, 'x.csv', 'own');
      await exportFile(otherExports, 'x.csv', 'other');
      expect(await otherExports.find(uri)).toBeUndefined();
      for (const unknownUri of ['', 'x', `${uri}x`, uri.replace('x.csv', '..'), 'ad-library://exports/'])
        expect(await ownExports.find(unknownUri)).toBeUndefined();
      expect(await ownExports.list()).toHaveLength(1);
      expect(await otherExports.list()).toHaveLength(1);
    });
  });
}
