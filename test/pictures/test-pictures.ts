import { type OpenPictures, openPictures, type PictureOptions } from '../../src/pictures/pictures.ts';

/** Pictures under the rule `public` and the given hosts. Nothing is found in the DNS. */
export const openTestPictures = (
  listed: PictureOptions['hosts']['listed'],
  limits: PictureOptions['limits'] = {},
  options: Partial<PictureOptions> = {},
): OpenPictures =>
  openPictures({
    hosts: { public: true, listed },
    userAgent: 'ad-library-mcp/test',
    now: Date.now,
    random: () => 0,
    resolve: async () => [],
    limits,
    ...options,
  });
