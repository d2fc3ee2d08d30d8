import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import type { Config } from '../../../src/config/settings.ts';
import type { TestServer } from '../server.ts';
import { type HostOptions, type ShownBoard, showBoard } from './board-host.ts';
import { type BoardService, startBoardService } from './board-service.ts';
import { launchChromium } from './launch-chromium.ts';

export interface BoardTest {
  readonly service: BoardService;
  show(options: HostOptions, config?: Partial<Config>): Promise<ShownBoard>;
}

/**
 * One browser and one service for the tests of a file. After each test nothing has left the pages, and the browser has
 * complained of nothing.
 */
export function boardTest(ads: (mediaUrl: string) => readonly object[]): BoardTest {
  let browser: Browser;
  let service: BoardService;
  let own: Promise<TestServer> | undefined;
  let shown: ShownBoard[] = [];
  beforeAll(async () => {
    [browser, service] = await Promise.all([launchChromium(), startBoardService(ads)]);
  });
  afterEach(async () => {
    const pages = shown;
    shown = [];
    for (const page of pages) await page.close();
    expect(pages.flatMap(({ requests, problems }) => [...requests, ...problems])).toEqual([]);
  });
  afterAll(async () => {
    await browser?.close();
    await service?.close();
  });
  return {
    get service() {
      return service;
    },
    show: async (options, config) => {
      own ??= service.start();
      const { client } = await (config === undefined ? own : service.start(config));
      const board = await showBoard(browser, client, options);
      shown.push(board);
      return board;
    },
  };
}
