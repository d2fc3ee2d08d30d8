/**
 * Measures how long the built server takes to draw a picture sheet (one picture that shows several ads) of twelve demo
 * ads, from the call over stdio to the picture. It measures sheets with and without cached pictures. The first sheet
 * loads all code and is not measured. Run the benchmark with `npm run bench:pictures`.
 */
import { connectStdio } from '../test/support/clients.ts';
import { computeMedian, printRowWithMaximum } from './row.ts';

const sheetCount = 12;
const maxBytes = 200_000;
const adsPerSheet = 12;

const client = await connectStdio('v1', ['--demo']);
let cursor: string | null | undefined;
const readNextAdIds = async () => {
  const { data } = await client.call('search_ads', { limit: adsPerSheet, ...(cursor && { cursor }) });
  cursor = data.cursor;
  return data.items.map(({ id }) => id);
};

async function measureSheet(adIds: string[]): Promise<{ ms: number; bytes: number }> {
  const startedAt = performance.now();
  const { raw, data } = await client.call('view_ads', { adIds });
  const ms = performance.now() - startedAt;
  const shownCount = (data.tiles as { shown: boolean }[]).filter((tile) => tile.shown).length;
  const image = raw.content.find((block) => block.type === 'image');
  if (shownCount !== adsPerSheet || image === undefined)
    throw new Error(`${shownCount} of ${adsPerSheet} ads are shown`);
  return { ms, bytes: image.data.length * 0.75 };
}

await measureSheet(await readNextAdIds());
const firstViewMs: number[] = [];
const repeatedViewMs: number[] = [];
const sheetBytes: number[] = [];
for (let sheet = 0; sheet < sheetCount; sheet++) {
  const ids = await readNextAdIds();
  const { ms, bytes } = await measureSheet(ids);
  firstViewMs.push(ms);
  sheetBytes.push(bytes);
  repeatedViewMs.push((await measureSheet(ids)).ms);
}
await client.close();

const printLine = (line: string) => process.stdout.write(`${line}\n`);
printLine(
  `seen again: ${computeMedian(repeatedViewMs).toFixed(0)} ms; the largest sheet: ${Math.max(...sheetBytes)} bytes, at most ${maxBytes}`,
);
printRowWithMaximum('view_ads, a sheet of 12 demo ads, median', computeMedian(firstViewMs), 1000);
if (Math.max(...sheetBytes) > maxBytes) process.exitCode = 1;
