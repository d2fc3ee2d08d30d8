import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import type { Config } from '../../../src/config/settings.ts';
import type { TestServer } from '../server.ts';
import { type HostOptions, openHostPage, type ShownBoard } from './board-host.ts';
import { type BoardService, startBoardService } from './board-service.ts';
import { launchChromium } from './launch-chromium.ts';

/** The browser and the page that all tests of a file share. */
let browser: Browser | undefined;
let hostPage: Awaited<ReturnType<typeof openHostPage>> | undefined;

/**
 * Starts one service for a group of tests. After each test, verifies that the page requested nothing from other hosts and
 * that the browser reported no errors.
 */
export function boardTest(ads: (mediaUrl: string) => readonly object[]) {
  let service: BoardService;
  const servers = new Map<string, Promise<TestServer>>();
  let shownBoards: ShownBoard[] = [];
  beforeAll(async () => {
    service = await startBoardService(ads);
    if (browser?.isConnected() !== true) {
      browser = await launchChromium();
      hostPage = await openHostPage(browser);
    }
  });
  afterEach(() => {
    const problems = shownBoards.flatMap(({ requests, problems }) => [...requests, ...problems]);
    shownBoards = [];
    expect(problems).toEqual([]);
  });
  afterAll(() => service?.close());
  /** Returns a server with these settings, which all tests of the group share. */
  const server = (config: Partial<Config> = {}): Promise<TestServer> => {
    const key = JSON.stringify(config);
    const runningServer = servers.get(key) ?? service.start(config);
    servers.set(key, runningServer);
    return runningServer;
  };
  return {
    get service() {
      return service;
    },
    server,
    async show(options: HostOptions, config?: Partial<Config>): Promise<ShownBoard> {
      if (hostPage === undefined) throw new Error('The browser has not started yet.');
      const board = await hostPage.show((await server(config)).client, options);
      shownBoards.push(board);
      return board;
    },
  };
}

/** Closes the browser that the tests of this file share. */
export const closeBrowser = async (): Promise<void> => void (await browser?.close());

/** Finds a button on the ad board by its name. */
export const getButton = ({ board }: ShownBoard, name: string | RegExp) =>
  board.getByRole('button', { name, exact: true });
/** Waits until the status line of the board shows this text. */
export const waitForStatus = ({ board }: ShownBoard, text: string | RegExp) =>
  board.getByRole('status').getByText(text).waitFor();
/** Reads the text of the first element that matches the selector. */
export const readText = ({ board }: ShownBoard, selector: string) => board.locator(selector).first().textContent();
/** Waits until the board shows this ad count, which appears together with the last ad. */
export const waitForAdCount = ({ board }: ShownBoard, ads: string) =>
  board.locator('#count', { hasText: new RegExp(`^${ads}$`) }).waitFor();
/** Finds the checkbox that selects an ad. */
export const getCheckbox = ({ board }: ShownBoard, title: string) =>
  board.getByLabel(new RegExp(`^Select [\\d.]+: ${title}$`));
/** Finds a filter chip by its name. */
export const getChip = ({ board }: ShownBoard, name: string) =>
  board.locator('.chip', { hasText: new RegExp(`^${name}[\\d,]*$`) });
