import { hash, randomUUID } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Send } from '../api/call.ts';
import { AdLibraryError, type Failure } from '../api/errors.ts';
import { parseJson } from '../api/json.ts';
import { readSearchFilters, type SearchFilters } from '../api/search-filters.ts';
import { ignoring, makeFolder } from '../storage/drivers/file.ts';
import { isObject } from '../views/view.ts';
import { isName } from './served-filters.ts';

/** Keys of one search; a name has 40 characters. */
const maxKeys = 100;
const searches: Record<string, 'ads' | 'pages'> = { searchAds: 'ads', searchPages: 'pages' };

interface LearnedOptions {
  folder: string | undefined;
  baseUrl: string;
  warn(message: string, fields: Record<string, unknown>): void;
}

export type LearnedFilters = ReturnType<typeof openLearnedFilters>;

/** The filter keys that a service named when it refused a search (422): its document shows none. */
export function openLearnedFilters({ folder, baseUrl, warn }: LearnedOptions) {
  const path = folder === undefined ? undefined : learnedPath(folder, baseUrl);
  const failed = (error: Error) => warn('learned filter keys are not kept', { file: path, error: error.message });
  let filters: Promise<SearchFilters | undefined> | undefined;
  const read = () => {
    filters ??=
      path === undefined ? Promise.resolve(undefined) : readLearned(path).catch((error) => void failed(error));
    return filters;
  };
  async function learn(kind: 'ads' | 'pages', keys: readonly string[]): Promise<void> {
    const before = (await read()) ?? { ads: [], pages: [] };
    const others = keys.filter((key) => before[kind].every((one) => one.key !== key)).map((key) => ({ key }));
    if (others.length === 0 || before[kind].length >= maxKeys) return;
    const learned = { ...before, [kind]: [...before[kind], ...others].slice(0, maxKeys) };
    filters = Promise.resolve(learned);
    if (path !== undefined) await write(path, `${JSON.stringify(learned, null, 2)}\n`);
  }
  return {
    /** The same object until more is learned; undefined where nothing is. */
    read,
    from:
      (send: Send): Send =>
      async (call) => {
        try {
          return await send(call);
        } catch (error) {
          const kind = searches[call.operation.name];
          if (kind !== undefined && error instanceof AdLibraryError && error.failure.status === 422)
            await learn(kind, namedKeys(error.failure, call.body)).catch(failed);
          throw error;
        }
      },
  };
}

export const learnedPath = (folder: string, baseUrl: string): string =>
  join(resolve(folder), 'filters', `${hash('sha256', baseUrl).slice(0, 32)}.json`);

/** @throws Error where a file that is there cannot be read */
export async function readLearned(path: string): Promise<SearchFilters | undefined> {
  const text = await readFile(path, 'utf8').catch(ignoring('ENOENT'));
  return text === undefined ? undefined : readSearchFilters(parseJson(text));
}

/** Whole or not at all: other processes read it, too. */
async function write(path: string, text: string): Promise<void> {
  await makeFolder(dirname(path));
  const part = `${path}.${randomUUID()}`;
  await writeFile(part, text, { mode: 0o600 });
  await rename(part, path);
}

const listName =
  /^(?:known|allowed|valid|supported|accepted|available)_?(?:filter_?)?(?:keys|filters|fields|parameters)$/i;
const listPhrase =
  /\b(?:known|allowed|valid|supported|accepted|available) (?:filter )?(?:keys|filters|fields|parameters)(?: are)?:/i;
const maxList = 8000;

/** A message may repeat what the search asked for: where that could pose as such a list, it teaches nothing. */
function namedKeys({ details, serviceMessage = '' }: Failure, filters: unknown): string[] {
  const lists = isObject(details) ? Object.entries(details).filter(([name]) => listName.test(name)) : [];
  const detailed = lists.flatMap(([, list]) => (Array.isArray(list) ? list : []));
  const named = detailed.length > 0 || listPhrase.test(JSON.stringify(filters)) ? detailed : listIn(serviceMessage);
  return named.filter((key) => typeof key === 'string' && isName(key) && key !== 'cursor' && key !== 'limit');
}

/** `… Known keys: query, "countries" and active.` */
function listIn(message: string): string[] {
  const [phrase = message] = listPhrase.exec(message) ?? [];
  const [, list = ''] = message.slice(0, maxList).split(phrase, 2);
  const [sentence = ''] = list.split(/\.(?:\s|$)|[\n;]/, 1);
  return sentence.split(/,| and /).map((word) => word.replace(/["'`]/g, '').trim());
}
