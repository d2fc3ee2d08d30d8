import type { OwnPictures } from './fetch-picture.ts';
import type { MediaHosts } from './media-rule.ts';
import type { Pictures } from './pictures.ts';
import type { Resolve } from './resolve.ts';

export interface PictureOptions {
  hosts: MediaHosts;
  own?: OwnPictures | undefined;
  userAgent: string;
  now: () => number;
  random: () => number;
  resolve?: Resolve | undefined;
}

/** Pictures for all callers, until it is closed. */
export interface OpenPictures {
  of(tenantId: string): Pictures;
  close(): Promise<void>;
}

export function openPictures(_: PictureOptions): OpenPictures {
  const reason = 'pictures are not built yet';
  return {
    of: () => ({
      thumbnail: async () => ({ reason }),
      sheet: async (tiles) => ({ jpeg: new Uint8Array(), tiles: tiles.map(({ number }) => ({ number, reason })) }),
    }),
    close: async () => {},
  };
}
