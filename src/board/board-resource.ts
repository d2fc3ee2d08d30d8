import { readFile } from 'node:fs/promises';

/** The page of the board, apart from its tools: a session lists it before any tool is loaded. */
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

const file = import.meta.url.endsWith('.ts')
  ? new URL('../../dist/board.html', import.meta.url)
  : new URL('./board.html', import.meta.url);

/** Read once: the page that hosts get and the word that it is known by belong to one build. */
let html: Promise<string> | undefined;
export function readPage(): Promise<string> {
  html ??= readFile(file, 'utf8').catch((error) => {
    html = undefined;
    throw error;
  });
  return html;
}

export const readBoard = async () => ({
  contents: [{ uri: boardUri, mimeType, text: await readPage(), _meta: meta }],
});
