import { readFile } from 'node:fs/promises';
import { createLazyGetter } from '../lazy-getter.ts';

/**
 * The URI of the ad board, the page that MCP hosts show next to search results. The URI is in a separate file, because
 * a session lists resources before it loads the code of any tool.
 */
export const boardUri = 'ui://ad-library/board';
const mimeType = 'text/html;profile=mcp-app';

/**
 * The metadata of the ad board for the host. The lists of allowed domains are empty, because the page loads nothing
 * from other origins: its pictures are data URLs. `domain` is not set, because hosts that do not support this field
 * refuse to show the page.
 */
const resourceMeta = {
  ui: { csp: { connectDomains: [], resourceDomains: [], frameDomains: [], baseUriDomains: [] }, prefersBorder: true },
};

/** The entry for the board in `resources/list` (MCP Apps, *UI Resource Format*). */
export const boardResource = {
  uri: boardUri,
  name: 'board',
  title: 'Ad board',
  description: 'Shows ads to a person: pictures, run lengths, charts, filters.',
  mimeType,
  _meta: resourceMeta,
};

const pageFile = import.meta.url.endsWith('.ts')
  ? new URL('../../dist/board.html', import.meta.url)
  : new URL('./board.html', import.meta.url);

/**
 * Returns the HTML page of the ad board. Reads the file only once, because a new build may replace it while the server
 * runs. The new page would contain a different token than the page that hosts already show, so the server would not
 * recognize their calls.
 */
export const readBoardPage = createLazyGetter(() => readFile(pageFile, 'utf8'));

/** Returns the result of `resources/read` for the ad board, i.e. its HTML page. */
export const readBoardResource = async () => ({
  contents: [{ uri: boardUri, mimeType, text: await readBoardPage(), _meta: resourceMeta }],
});
