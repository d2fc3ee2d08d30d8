import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import type { Config } from '../../../src/config/settings.ts';
import type { TestServer } from '../server.ts';
import { type HostOptions, openHostPage, type ShownBoard } from './board-host.ts';
import { type BoardService, startBoardService } from './board-service.ts';
import { launchChromium } from './launch-chromium.ts';

/** One for all tests of a file, with one page. */
let browser: Browser | undefined;
let hostPage: Awaited<ReturnType<typeof openHostPage>> | undefined;

/**
 * One service for the tests of a group. After each test nothing has left the pages, and the browser has complained of
 * nothing.
 */
export function boardTest(ads: (mediaUrl: string) => readonly object[]) {
  let service: BoardService;
  const servers = new Map<string, Promise<TestServer>>();
  let shown: ShownBoard[] = [];
  beforeAll(async () => {
    service = await startBoardService(ads);
    if (browser?.isConnected() !== true) {
      browser = await launchChromium();
      hostPage = await openHostPage(browser);
    }
  });
  afterEach(() => {
    const problems = shown.flatMap(({ requests, problems }) => [...requests, ...problems]);
    shown = [];
    expect(problems).toEqual([]);
  });
  afterAll(() => service?.close());
  /** The server in front of it with such settings: the same for all tests of the group. */
  const server = (config: Partial<Config> = {}): Promise<TestServer> => {
    const key = JSON.stringify(config);
    const known = servers.get(key) ?? service.start(config);
    servers.set(key, known);
    return known;
  };
  return {
    get service() {
      return service;
    },
    server,
    async show(options: HostOptions, config?: Partial<Config>): Promise<ShownBoard> {
      if (hostPage === undefined) throw new Error('There is no browser yet.');
      const board = await hostPage.show((await server(config)).client, options);
      shown.push(board);
      return board;
    },
  };
}

export const closeBrowser = async (): Promise<void> => void (await browser?.close());

export const getButton = ({ board }: ShownBoard, name: string | RegExp) =>
  board.getByRole('button', { name, exact: true });
export const waitForStatus = ({ board }: ShownBoard, text: string | RegExp) =>
  board.getByRole('status').getByText(text).waitFor();
export const readText = ({ board }: ShownBoard, selector: string) => board.locator(selector).first().textContent();
/** Waits for the number of ads, which comes with the last of them. */
export const waitForAdCount = ({ board }: ShownBoard, ads: string) =>
  board.locator('#count', { hasText: new RegExp(`^${ads}$`) }).waitFor();
export const getCheckbox = ({ board }: ShownBoard, title: string) =>
  board.getByLabel(new RegExp(`^Select [\\d.]+: ${title}$`));
export const getChip = ({ board }: ShownBoard, name: string) =>
  board.locator('.chip', { hasText: new RegExp(`^${name}[\\d,]*$`) });
