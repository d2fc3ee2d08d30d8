import { readFile } from 'node:fs/promises';

/**
 * The URI of the board's page. The page has a module of its own, because a session lists resources before it loads any
 * tool.
 */
export const boardUri = 'ui://ad-library/board';
const mimeType = 'text/html;profile=mcp-app';

/**
 * The metadata of the page. The page loads nothing from other origins, because its pictures are data URLs. There is no
 * `domain`, because a host that does not expect one does not show the page.
 */
const resourceMeta = {
  ui: { csp: { connectDomains: [], resourceDomains: [], frameDomains: [], baseUriDomains: [] }, prefersBorder: true },
};

/** The entry of the board in `resources/list` (MCP Apps, *UI Resource Format*). */
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

let pageHtml: Promise<string> | undefined;

/**
 * Returns the HTML of the board's page. The file is read only once, so that the page token that the server checks always
 * belongs to the page that hosts receive. A new build may replace the file while the server runs.
 */
export function readBoardPage(): Promise<string> {
  pageHtml ??= readFile(pageFile, 'utf8').catch((error) => {
    pageHtml = undefined;
    throw error;
  });
  return pageHtml;
}

/** Returns the answer to `resources/read` for the board. */
export const readBoardResource = async () => ({
  contents: [{ uri: boardUri, mimeType, text: await readBoardPage(), _meta: resourceMeta }],
});
