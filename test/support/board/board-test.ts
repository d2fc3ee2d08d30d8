import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import type { Config } from '../../../src/config/settings.ts';
import type { TestServer } from '../server.ts';
import { type HostOptions, openStage, type ShownBoard } from './board-host.ts';
import { type BoardService, startBoardService } from './board-service.ts';
import { launchChromium } from './launch-chromium.ts';

/** One for all tests of a file, with one page. */
let browser: Browser | undefined;
let stage: Awaited<ReturnType<typeof openStage>> | undefined;

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
      stage = await openStage(browser);
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
      if (stage === undefined) throw new Error('There is no browser yet.');
      const board = await stage.show((await server(config)).client, options);
      shown.push(board);
      return board;
    },
  };
}

export const closeBrowser = async (): Promise<void> => void (await browser?.close());

export const button = ({ board }: ShownBoard, name: string | RegExp) =>
  board.getByRole('button', { name, exact: true });
export const status = ({ board }: ShownBoard, text: string | RegExp) =>
  board.getByRole('status').getByText(text).waitFor();
export const textOf = ({ board }: ShownBoard, selector: string) => board.locator(selector).first().textContent();
/** Waits for the number of ads, which comes with the last of them. */
export const reads = ({ board }: ShownBoard, ads: string) =>
  board.locator('#count', { hasText: new RegExp(`^${ads}$`) }).waitFor();
export const pick = ({ board }: ShownBoard, title: string) =>
  board.getByLabel(new RegExp(`^Select [\\d.]+: ${title}$`));
export const chip = ({ board }: ShownBoard, name: string) =>
  board.locator('.chip', { hasText: new RegExp(`^${name}[\\d,]*$`) });
