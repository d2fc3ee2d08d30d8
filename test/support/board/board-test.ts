import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import type { Config } from '../../../src/config/settings.ts';
import type { TestServer } from '../server.ts';
import { type HostOptions, type ShownBoard, showBoard } from './board-host.ts';
import { type BoardService, startBoardService } from './board-service.ts';
import { launchChromium } from './launch-chromium.ts';

export interface BoardTest {
  readonly service: BoardService;
  /** In front of it, where a test asks for no other. */
  readonly server: Promise<TestServer>;
  show(options: HostOptions, config?: Partial<Config>): Promise<ShownBoard>;
}

/** One for all tests of a file. */
let browser: Promise<Browser> | undefined;
async function openBrowser(): Promise<Browser> {
  if ((await browser)?.isConnected() !== true) browser = launchChromium();
  return browser as Promise<Browser>;
}
afterAll(async () => (await browser)?.close());

/**
 * One service for the tests of a group. After each test nothing has left the pages, and the browser has complained of
 * nothing.
 */
export function boardTest(ads: (mediaUrl: string) => readonly object[]): BoardTest {
  let service: BoardService;
  let own: Promise<TestServer> | undefined;
  let shown: ShownBoard[] = [];
  beforeAll(async () => {
    [service] = await Promise.all([startBoardService(ads), openBrowser()]);
  });
  afterEach(async () => {
    const pages = shown;
    shown = [];
    for (const page of pages) await page.close();
    expect(pages.flatMap(({ requests, problems }) => [...requests, ...problems])).toEqual([]);
  });
  afterAll(async () => {
    await service?.close();
  });
  return {
    get service() {
      return service;
    },
    get server() {
      own ??= service.start();
      return own;
    },
    async show(options, config) {
      const { client } = await (config === undefined ? this.server : service.start(config));
      const board = await showBoard(await openBrowser(), client, options);
      shown.push(board);
      return board;
    },
  };
}

export const button = ({ board }: ShownBoard, name: string | RegExp) =>
  board.getByRole('button', { name, exact: true });
export const status = ({ board }: ShownBoard, text: string | RegExp) =>
  board.getByRole('status').getByText(text).waitFor();
/** Waits for the number of ads, which comes with the last of them. */
export const reads = ({ board }: ShownBoard, ads: string) =>
  board.locator('#count', { hasText: new RegExp(`^${ads}$`) }).waitFor();
/** The checkbox of an ad by its title. */
export const pick = ({ board }: ShownBoard, title: string) => board.getByLabel(new RegExp(`^Select \\d+: ${title}$`));
