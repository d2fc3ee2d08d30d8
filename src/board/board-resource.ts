import { readFile } from 'node:fs/promises';

export const boardUri = 'ui://ad-library/board';
const mimeType = 'text/html;profile=mcp-app';

/** Nothing from outside: pictures come as data. A `domain` that a host does not expect keeps the view from showing. */
const meta = {
  ui: { csp: { connectDomains: [], resourceDomains: [], frameDomains: [], baseUriDomains: [] }, prefersBorder: true },
};

/** The board in `resources/list` (MCP Apps, *UI Resource Format*). */
export const boardResource = {
  uri: boardUri,
  name: 'board',
  title: 'Ad board',
  description: 'Shows ads to a person: pictures, run lengths, charts, filters.',
  mimeType,
  _meta: meta,
};

/** The build puts the page beside the bundle. */
const file = import.meta.url.endsWith('.ts')
  ? new URL('../../dist/board.html', import.meta.url)
  : new URL('./board.html', import.meta.url);

export const readBoard = async () => ({
  contents: [{ uri: boardUri, mimeType, text: await readFile(file, 'utf8'), _meta: meta }],
});
