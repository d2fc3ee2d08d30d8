import { withDeadline } from '../api/abort.ts';
import { storePerceptualHashes } from '../dataset/picture-groups.ts';
import type { AdPicture } from '../views/ad-media.ts';
import type { ToolContext } from './tool.ts';

/** Pictures as addresses, or why there are none. In half the time that is left: a slow one must not take all others with it. */
export async function loadThumbnails(ads: readonly { adId: string; picture: AdPicture }[], context: ToolContext) {
  const adsWithoutPicture = ads.flatMap(({ picture }) => ('reason' in picture ? picture : []));
  if (adsWithoutPicture.length === ads.length) return adsWithoutPicture;
  // Pixels of a card on a dense screen; many pictures are smaller, so that more of them fit.
  const side = ads.length > 60 ? 280 : 400;
  const { signal, deadline, clock } = context;
  const pictures = await context.pictures();
  const thumbnails = await withDeadline({ signals: [signal], ms: (deadline - clock()) / 2 }, (timeUp) =>
    Promise.all(
      ads.map(async ({ adId, picture }) => ({
        adId,
        picture,
        fetched:
          'reason' in picture
            ? picture
            : await pictures.thumbnail(picture.address, { side, signal, timeUpSignal: timeUp }),
      })),
    ),
  );
  await storePerceptualHashes((await context.dataset()).userRecords, thumbnails);
  return thumbnails.map(({ fetched }) =>
    'jpeg' in fetched ? { src: `data:image/jpeg;base64,${Buffer.from(fetched.jpeg).toString('base64')}` } : fetched,
  );
}
