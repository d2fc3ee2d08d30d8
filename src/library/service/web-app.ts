import { Hono } from 'hono';
import { libraryFilters } from '../search/filters.ts';
import {
  type ApiResponse,
  createErrorResponse,
  createNoSuchPathError,
  createRequestPresenter,
  handleApiRequest,
  type ServiceOptions,
} from './api-requests.ts';
import { createNotFoundError } from './request.ts';

/** Creates the Hono app that serves the HTTP API, the pictures and the HTML pages. */
export function createWebApp(options: ServiceOptions): Hono {
  const app = new Hono({ strict: false });
  app.all('/v1/*', async ({ req }) => toWebResponse(await handleApiRequest(req.raw, options)));
  app.get('/filters.json', () => Response.json(libraryFilters));
  // Pictures need no API key, because ads are public anyway.
  app.get('/media/:source{demo|kept}/:file', async ({ req }) => {
    const { source, file } = req.param();
    const readPicture = source === 'demo' ? options.demo?.readPicture : options.context.pictures.readPicture;
    const picture = await readPicture?.(file);
    if (picture === undefined) throw createNotFoundError('picture', file.slice(0, 100));
    return new Response(picture.bytes as Uint8Array<ArrayBuffer>, {
      headers: {
        'Content-Type': picture.mediaType,
        'X-Content-Type-Options': 'nosniff',
        'Content-Security-Policy': "default-src 'none'; sandbox",
      },
    });
  });
  const { htmlPagesPath } = options;
  for (const path of htmlPagesPath === undefined ? [] : ['', '/ads/:id', '/pages/:id'])
    app.get(`${htmlPagesPath}${path}`, ({ req }) => handleHtmlPageRequest(req.raw, req.param('id'), options));
  app.notFound(({ req }) => toWebResponse(createErrorResponse(createNoSuchPathError(req.path), options)));
  app.onError((error) => toWebResponse(createErrorResponse(error, options)));
  return app;
}

const toWebResponse = ({ status, headers, body }: ApiResponse): Response => new Response(body, { status, headers });

/**
 * Handles a request for an HTML page. `htmlPagesPath` leads to the list of ads, and the paths of single ads and
 * advertisers start with `htmlPagesPath`.
 */
async function handleHtmlPageRequest(
  request: Request,
  recordId: string | undefined,
  options: ServiceOptions,
): Promise<Response> {
  const { context, demo, htmlPagesPath = '' } = options;
  context.database.checkLock();
  const [{ contentSecurityPolicy, renderListPage, renderMissingPage }, { renderAdPage, renderAdvertiserPage }] =
    await Promise.all([import('./list-page.tsx'), import('./record-pages.tsx')]);
  const { origin, pathname, searchParams } = new URL(request.url);
  const { readItems } = createRequestPresenter(origin, options);
  const htmlPageContext = { ...context, origin, htmlPagesPath, readItems, isDemo: demo !== undefined };

  async function renderRequestedPage(): Promise<string | undefined> {
    if (recordId === undefined) return renderListPage(searchParams, htmlPageContext);
    const itemType = pathname.startsWith(`${htmlPagesPath}/pages/`) ? 'pages' : 'ads';
    const rowNumber = context.recordStore.findRowNumber(itemType, recordId);
    const [record] = rowNumber === undefined ? [] : readItems(itemType, [rowNumber]);
    if (record === undefined) return undefined;
    if (itemType === 'ads') return renderAdPage(record, htmlPageContext);
    return renderAdvertiserPage(record, htmlPageContext, searchParams);
  }

  const html = await renderRequestedPage();
  const headers = {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': `${contentSecurityPolicy}; frame-ancestors 'none'`,
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cache-Control': 'no-store',
  };
  return new Response(html ?? renderMissingPage(htmlPageContext), { status: html === undefined ? 404 : 200, headers });
}
