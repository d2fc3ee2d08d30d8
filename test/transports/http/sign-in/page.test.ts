import { createServer } from 'node:http';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import { findViolations } from '../../../support/board/axe.ts';
import { inChromium } from '../../../support/board/in-chromium.ts';
import { launchChromium } from '../../../support/board/launch-chromium.ts';
import { listenOnLoopback } from '../../../support/loopback.ts';
import {
  createAuthorizationRequest,
  createCodeGrant,
  goodKey,
  redirectUri,
  type SignInServer,
  signInTest as test,
} from '../../../support/sign-in.ts';

/** Starts a local program that receives the sign-in redirect and redirects the browser to a final page. */
async function startCallback() {
  const received: URL[] = [];
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://callback');
    if (url.pathname !== '/callback') return void response.end('<title>Done</title>');
    received.push(url);
    response.writeHead(302, { location: `http://localhost:${port}/done` }).end();
  });
  const { port, close } = await listenOnLoopback(server);
  onTestFinished(close);
  return { received, uri: `http://127.0.0.1:${port}/callback` };
}

const createPageUrl = (server: SignInServer, request: Record<string, string>) =>
  `${server.origin}/authorize?${new URLSearchParams(request)}`;

inChromium('The sign-in page', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterAll(() => browser.close());

  async function openPage(options: { colorScheme?: 'light' | 'dark' } = {}) {
    const page = await browser.newPage({ viewport: { width: 360, height: 740 }, ...options });
    onTestFinished(() => page.close());
    const consoleMessages: string[] = [];
    page.on('console', (message) => consoleMessages.push(message.text()));
    page.on('pageerror', (error) => consoleMessages.push(error.message));
    return { page, complaints: consoleMessages };
  }

  const findPageProblems = async (page: Page) => ({
    axe: await findViolations(page.locator('html')),
    isTooWide: await page.evaluate('document.documentElement.scrollWidth > innerWidth'),
    small: await page
      .locator('input:not([type=hidden]), button, a')
      .evaluateAll((all) => all.filter((one) => one.getBoundingClientRect().height < 44).map((one) => one.outerHTML)),
  });
  const noProblems = { axe: [], isTooWide: false, small: [] };

  test('a user can sign in on a phone-sized page using only the keyboard', async ({ server }) => {
    const { received, uri } = await startCallback();
    const clientId = await server.register(uri, { client_name: `Long ${'W'.repeat(70)}` });
    const { request, verifier } = createAuthorizationRequest(clientId, { redirect_uri: uri });
    const { page, complaints } = await openPage();
    await page.goto(createPageUrl(server, request));
    expect(await findPageProblems(page)).toEqual(noProblems);
    const shownFacts = await page.locator('dl').innerText();
    expect(shownFacts).toContain('a program on your own computer');
    expect(shownFacts).toMatch(/Key of\s+127\.0\.0\.1:\d+/);
    await page.keyboard.type('svc_live_wrong');
    await page.keyboard.press('Tab');
    await page.keyboard.type('250');
    await page.keyboard.press('Enter');
    await page.getByText('The service does not accept this key.').waitFor();
    expect(await findPageProblems(page)).toEqual(noProblems);
    expect(await page.title()).toMatch(/^Not connected yet/);
    const field = page.getByLabel('API key');
    expect(await field.inputValue()).toBe('');
    expect(await page.evaluate('document.activeElement.id')).toBe('api_key');
    expect(await page.getByLabel('Credit budget').inputValue()).toBe('250');
    await page.keyboard.type(goodKey);
    await page.keyboard.press('Tab');
    await page.keyboard.type('0 or so');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    // The browser itself rejects the budget, so the API key field keeps its text.
    expect(await page.evaluate('document.activeElement.id + document.activeElement.validity.patternMismatch')).toBe(
      'budgettrue',
    );
    expect(await field.inputValue()).toBe(goodKey);
    await page.keyboard.press('Control+A');
    await page.keyboard.type('250');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.title()).toBe('Done');
    expect(new URL(page.url()).hostname).toBe('localhost');
    const answer = Object.fromEntries(received[0]?.searchParams ?? []);
    expect(answer).toMatchObject({ state: 'a state', iss: server.origin });
    expect(received[0]?.href).not.toContain('good');
    expect((await server.token(createCodeGrant(clientId, answer.code ?? '', verifier, uri))).status).toBe(200);
    // Chromium logs every response with status 400 to its console.
    expect(complaints.filter((text) => !text.includes('status of 400'))).toEqual([]);
  });

  test('the sign-in page is accessible and fits a phone in dark mode', async ({ server }) => {
    const { received, uri } = await startCallback();
    const { request } = createAuthorizationRequest(await server.register(uri), { redirect_uri: uri });
    const { page } = await openPage({ colorScheme: 'dark' });
    await page.goto(createPageUrl(server, { ...request, response_type: 'token' }));
    expect(await findPageProblems(page)).toEqual(noProblems);
    await page.getByRole('link', { name: /^Back to/ }).click();
    await expect.poll(() => received[0]?.searchParams.get('error')).toBe('unsupported_response_type');
    await page.goto(createPageUrl(server, request));
    expect(await findPageProblems(page)).toEqual(noProblems);
    await page.getByRole('button', { name: 'Cancel' }).click();
    await expect.poll(() => received[1]?.searchParams.get('error')).toBe('access_denied');
  });

  test('other web pages can neither embed the sign-in page nor submit its form', async ({ server }) => {
    const name = '<script>document.title="run"</script><style>*{display:none}</style>';
    const { request } = createAuthorizationRequest(await server.register(redirectUri, { client_name: name }));
    const { page } = await openPage();
    await page.goto(createPageUrl(server, request));
    expect(await page.getByRole('heading', { level: 1 }).innerText()).toContain('<script>');
    expect(await page.title()).toMatch(/^Connect <script>/);
    const fields = Object.entries({ ...request, api_key: goodKey }).map(
      ([field, value]) => `<input name="${field}" value="${value}">`,
    );
    const evil = createServer((_, response) =>
      response.end(`<iframe src="${createPageUrl(server, request).replaceAll('&', '&amp;')}"></iframe>
        <form method="post" action="${server.origin}/authorize">${fields.join('')}<button>Win</button></form>`),
    );
    const { port, close } = await listenOnLoopback(evil);
    onTestFinished(close);
    await page.goto(`http://localhost:${port}`);
    expect(page.frames().some((frame) => frame.url().startsWith(server.origin))).toBe(false);
    await page.getByRole('button', { name: 'Win' }).click();
    await page.getByText('sent from another page').waitFor();
  });
});
