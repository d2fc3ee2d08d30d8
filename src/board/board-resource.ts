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

/** Read once: the page that hosts get and the word that it is known by belong to one build. */
let page: Promise<string> | undefined;
function readPage(): Promise<string> {
  page ??= readFile(file, 'utf8').catch((error) => {
    page = undefined;
    throw error;
  });
  return page;
}

export const readBoard = async () => ({
  contents: [{ uri: boardUri, mimeType, text: await readPage(), _meta: meta }],
});

/** Whether the page calls: only it has the word that the build gave it. This keeps data from models; the key guards it. */
export async function isOfPage(word: string | undefined): Promise<boolean> {
  return word !== undefined && /<meta name="ad-library-page" content="(\w+)"/.exec(await readPage())?.[1] === word;
}
