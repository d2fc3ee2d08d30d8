import { randomBytes, randomUUID } from 'node:crypto';
import { createLazyGetter } from '../../lazy-getter.ts';
import { openDatabase } from '../database/database.ts';
import type { ImportOptions } from '../import/import.ts';
import { createKeyStore } from './accounts.ts';
import { type ApiResponse, handleApiRequest } from './api-requests.ts';
import { createServiceContext, type LibraryOptions } from './context.ts';
import type { ApiRequest } from './request.ts';

/** An open library. Tests and the demo use its `context` to access the database and the stores directly. */
export type OpenLibrary = Awaited<ReturnType<typeof openLibrary>>;

/** The public interface of an open library: its HTTP API, keys, imports and pictures. */
export type Library = Omit<OpenLibrary, 'context'>;

/**
 * Opens a local library. The caller must first lock the file with `lockDatabase`, because two processes must not use it
 * at the same time.
 *
 * @throws Error if the file is not a library, was created by another version, or cannot be written
 */
export async function openLibrary(options: LibraryOptions) {
  const { now, random = { generateBytes: randomBytes, generateUuid: randomUUID } } = options;
  const { checkLock = () => {}, demo } = options;
  const dateOriginMs = demo?.dateOriginMs ?? 0;
  const database = await openDatabase(options.database, { checkLock, isTemporary: demo !== undefined, dateOriginMs });
  const context = createServiceContext(database, { now, random, demo });
  const keys = createKeyStore({ ...context, random });
  const serviceOptions = { ...options, context, keys, createRequestId: random.generateUuid };
  const getWebApp = createLazyGetter(async () => (await import('./web-app.ts')).createWebApp(serviceOptions));
  const countRecordsSql = 'SELECT (SELECT count(*) FROM ads) AS ads, (SELECT count(*) FROM pages) AS pages';
  return {
    /**
     * Handles a request to the library's HTTP API or to one of its HTML pages. Loads the web framework (Hono) on
     * the first call, because an MCP server in demo mode calls only `callApi`, unless somebody requests a picture.
     */
    fetch: async (request: Request): Promise<Response> => (await getWebApp()).fetch(request),
    /**
     * Handles a request to the HTTP API within this process. Avoids the global classes `Request` and `Response`,
     * because their first use loads Node's HTTP client. In demo mode, loading this client would take a tenth of the
     * time of the first call.
     */
    callApi: (request: ApiRequest): Promise<ApiResponse> => handleApiRequest(request, serviceOptions),
    keys,
    /** Imports ads and advertiser pages from a source in any supported format. */
    import: async (source: AsyncIterable<string | Uint8Array>, importOptions?: ImportOptions) =>
      (await import('../import/import.ts')).importRecords(context, source, importOptions),
    /** Starts an import run, which may include several files. Returns the number of the run. */
    startImportRun: async () => (await import('../import/import.ts')).startImportRun(context),
    /**
     * Marks the ads that a saved search no longer finds as gone. `questionName` is the name of the search, and
     * `runNumber` is the number of an import run that has imported all current results of the search. An ad is gone if
     * an earlier import of the search contained the ad, but this run did not.
     */
    completeQuestion: async (completion: { runNumber: number; questionName: string }) =>
      (await import('../import/questions.ts')).completeQuestion(context, completion),
    pictures: context.pictures,
    /** Returns the number of ads and of advertiser pages in the library. */
    countRecords: () => database.get<{ ads: number; pages: number }>(countRecordsSql) ?? { ads: 0, pages: 0 },
    close: database.close,
    context,
  };
}
