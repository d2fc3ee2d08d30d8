import { boardTools } from '../../src/board/board-tools.ts';
import { tools } from '../../src/tools/catalog.ts';

/** All tools in the order in which a server lists them: those for a model, and those that only the board calls. */
export const listedTools = [...tools, ...boardTools];
