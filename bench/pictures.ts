/**
 * Measures sheets of twelve demo ads with the built command over stdio: the time from the call to the picture, with and
 * without cached pictures. Run it with `npm run bench:pictures`. The first sheet loads all code and is not measured.
 */
import { connectStdio } from '../test/support/clients.ts';
import { addBoundedRow, computeMedian } from './row.ts';

const sheets = 12;
const maxBytes = 200_000;
const adsEach = 12;

const client = await connectStdio('v1', ['--demo']);
let cursor: string | null | undefined;
const nextIds = async () => {
  const { data } = await client.call('search_ads', { limit: adsEach, ...(cursor && { cursor }) });
  cursor = data.cursor;
  return data.items.map(({ id }) => id);
};

async function timed(adIds: string[]): Promise<{ ms: number; bytes: number }> {
  const started = performance.now();
  const { raw, data } = await client.call('view_ads', { adIds });
  const ms = performance.now() - started;
  const shown = (data.tiles as { shown: boolean }[]).filter((tile) => tile.shown).length;
  const image = raw.content.find((block) => block.type === 'image');
  if (shown !== adsEach || image === undefined) throw new Error(`${shown} of ${adsEach} ads are shown`);
  return { ms, bytes: image.data.length * 0.75 };
}

await timed(await nextIds());
const first: number[] = [];
const again: number[] = [];
const sizes: number[] = [];
for (let sheet = 0; sheet < sheets; sheet++) {
  const ids = await nextIds();
  const { ms, bytes } = await timed(ids);
  first.push(ms);
  sizes.push(bytes);
  again.push((await timed(ids)).ms);
}
await client.close();

const say = (line: string) => process.stdout.write(`${line}\n`);
say(
  `seen again: ${computeMedian(again).toFixed(0)} ms; the largest sheet: ${Math.max(...sizes)} bytes, at most ${maxBytes}`,
);
addBoundedRow('view_ads, a sheet of 12 demo ads, median', computeMedian(first), 1000);
if (Math.max(...sizes) > maxBytes) process.exitCode = 1;
