import { Agent, request } from 'undici';
import { createAdViews } from '../src/tools/pager.ts';

const dispatcher = new Agent({ connections: 64 });
const viewOptions = { now: Date.now(), maxTextTokens: 8000, maxTextBytes: Number.POSITIVE_INFINITY };

interface AdPage {
  items: object[];
  cursor: string | null;
  hasMore: boolean;
}

/**
 * Fetches a page of ads and shortens the ads for a model. All servers that the benchmark compares with ours call this
 * function, so that they do the same work with the same code.
 */
export async function fetchAndCondense(baseUrl: string, toolName: string, args: object, authorization: string) {
  const headers = { authorization, 'content-type': 'application/json' };
  const { body } =
    toolName === 'whoami'
      ? await request(`${baseUrl}/v1/whoami`, { headers, dispatcher })
      : await request(`${baseUrl}/v1/ads/search`, {
          method: 'POST',
          headers,
          body: JSON.stringify(args),
          dispatcher,
        });
  const responseBody = JSON.parse(await body.text());
  const structuredContent: Record<string, unknown> = toolName === 'whoami' ? responseBody : condensePage(responseBody);
  const text =
    toolName === 'whoami'
      ? JSON.stringify(responseBody)
      : createAdViews('brief', viewOptions).formatList(structuredContent as never);
  return { content: [{ type: 'text' as const, text }], structuredContent };
}

function condensePage({ items: ads, ...paging }: AdPage) {
  const views = createAdViews('brief', viewOptions);
  return { items: ads.map(views.buildItemView), ...paging, ...views.findSharedFacts?.(ads) };
}
