import { chmod, copyFile, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Page } from '../../api/schemas.ts';
import type { CampaignStart } from './market/market.ts';

/** The generated database and advertisers of a demo library. */
export interface DemoData {
  /**
   * Writes the database file to a path. The file has the data that searches need. It has full-text indexes, but no
   * other indexes, and it does not contain the JSON of ads and pages. Dates are relative to 1 January 1970, and the id
   * of an ad is its row number.
   */
  writeDatabase(path: string): Promise<void>;
  advertisers: AdvertiserSource[];
}

/** The page of an advertiser, and the data from which the ads of its campaigns can be generated again. */
export interface AdvertiserSource {
  /** The seed of the random numbers from which the campaigns of the advertiser are generated. */
  seed: number;
  /** The row number of the advertiser's first ad. The row numbers of its other ads follow without gaps. */
  firstAdRowNumber: number;
  adCount: number;
  /** The page of the advertiser. Its dates are relative to 1 January 1970. */
  page: Page;
  campaignStarts: CampaignStart[];
}

const fileNames = { database: 'demo.db', advertisers: 'demo-advertisers.json' };

/** Writes the demo data to files in a folder. The build calls this function for the folder of the bundled server. */
export async function writeDemoData({ writeDatabase, advertisers }: DemoData, folder: URL): Promise<void> {
  await writeDatabase(fileURLToPath(new URL(fileNames.database, folder)));
  await writeFile(new URL(fileNames.advertisers, folder), JSON.stringify(advertisers));
}

/**
 * Reads the demo data from the files that the build generated.
 * @param folder the folder of these files; by default, the folder of the bundled server
 */
export async function readDemoData(folder = new URL('.', import.meta.url)): Promise<DemoData> {
  return {
    advertisers: JSON.parse(await readFile(new URL(fileNames.advertisers, folder), 'utf8')),
    // Store the database uncompressed. Decompressing it would take a twentieth of the time of the first call in demo
    // mode.
    writeDatabase: async (path) => {
      await copyFile(new URL(fileNames.database, folder), path);
      // `copyFile` keeps the permissions of the installed file. It may be read-only, but SQLite must write to the copy.
      await chmod(path, 0o600);
    },
  };
}
