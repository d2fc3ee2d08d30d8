import { withDeadline } from '../api/abort.ts';
import { storePerceptualHashes } from '../dataset/picture-groups.ts';
import { isPastDeadline } from '../dataset/stops.ts';
import type { AdPicture } from '../views/ad-media.ts';
import type { ToolContext } from './tool.ts';

/**
 * Loads the pictures of ads as data URLs. For a missing picture, returns the reason. Stops after half of the remaining
 * time, so that a slow picture does not use up the time of the call. After the deadline, only cached pictures are
 * returned, and all others are reported as late.
 */
export async function loadThumbnails(ads: readonly { adId: string; picture: AdPicture }[], context: ToolContext) {
  const missingPictures = ads.flatMap(({ picture }) => ('reason' in picture ? picture : []));
  if (missingPictures.length === ads.length) return missingPictures;
  // 400 pixels look sharp on high-density screens. With more than 60 pictures, use only 280 pixels, so that all
  // pictures fit in the file.
  const sideLengthPx = ads.length > 60 ? 280 : 400;
  const { deadline, getTime } = context;
  const pictureLoader = await context.loadPictures();
  // A call that has reached its deadline still returns the ads that it has read. Ignore its aborted signal here, so
  // that missing pictures are reported as late instead of ending the call.
  const signal = isPastDeadline(context.signal) ? new AbortController().signal : context.signal;
  const timeoutMs = Math.max(1, (deadline - getTime()) / 2);
  const thumbnails = await withDeadline({ signals: [signal], timeoutMs }, (pictureDeadlineSignal) =>
    Promise.all(
      ads.map(async ({ adId, picture }) => ({
        adId,
        picture,
        fetchResult:
          'reason' in picture
            ? picture
            : await pictureLoader.loadThumbnail(picture.url, { maxSide: sideLengthPx, signal, pictureDeadlineSignal }),
      })),
    ),
  );
  await storePerceptualHashes((await context.openDataset()).userRecords, thumbnails);
  return thumbnails.map(({ fetchResult }) =>
    'jpeg' in fetchResult
      ? { src: `data:image/jpeg;base64,${Buffer.from(fetchResult.jpeg).toString('base64')}` }
      : fetchResult,
  );
}
