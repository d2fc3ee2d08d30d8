import { tools } from '../tools/catalog.ts';
import type { Tool } from '../tools/define-tool.ts';
import { boardAds } from './board-ads.ts';
import { boardPictures } from './board-pictures.ts';

/** The tools that only the board calls, offered with any tool that shows it. */
export const boardTools: readonly Tool[] = [boardAds, boardPictures];

/** All tools in the order in which a server lists them: those for a model, and those that only the board calls. */
export const allTools: readonly Tool[] = [...tools, ...boardTools];
