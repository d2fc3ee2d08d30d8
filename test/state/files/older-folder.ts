import { hash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Of all accounts in these tests. */
export const baseUrl = 'https://api.example.com/v2';

/** Where earlier versions kept the dataset of an account. */
export const olderFolder = (files: string, userId: string): string =>
  join(files, 'datasets', hash('sha256', `${baseUrl}\n${userId}`).slice(0, 32));

/** Writes a dataset as earlier versions kept it: a folder of files that each hold some lines. Returns their paths. */
export async function writeOlder(folder: string, ...segments: readonly (readonly string[])[]) {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'dataset.json'), `${JSON.stringify({ format: 1, generation: 'g', baseUrl })}\n`);
  const paths = segments.map((_, index) =>
    join(folder, `${String(index).padStart(15, '0')}-00000000-0000-4000-8000-00000000000${index}.jsonl`),
  );
  for (const [index, path] of paths.entries()) await writeFile(path, (segments[index] ?? []).join('\n').concat('\n'));
  return paths;
}

/** An ad as such a line: `at` is its time, and where the version wrote it, its place. */
export const olderAd = (at: number, item: { id: string; [name: string]: unknown }, order?: number): string => {
  const places = order === undefined ? {} : { order, sinceOrder: order };
  const head = { kind: 'ads', id: item.id, since: at, at, ...places, listedBy: 'searchAds', requestId: null };
  return JSON.stringify({ ...head, item });
};

export const olderGathering = (id: string, adIds: readonly string[]): string =>
  JSON.stringify({
    ...{ kind: 'gathering', id, question: 'q', filters: {}, collectionId: null, parts: [], found: 2, ended: true },
    ...{ cursor: null, startedAt: 1, gatheredAt: 2, adIds },
  });

export const mergedLine = (...segments: readonly string[]): string => JSON.stringify({ kind: 'merged', segments });
