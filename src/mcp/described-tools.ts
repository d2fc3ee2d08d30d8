import { allTools } from '../board/board-tools.ts';
import { type DescribedTool, describeTool } from './describe-tool.ts';

/**
 * Every tool, without its code. The build puts the values in place of this module, so that a process can list its tools
 * before it has loaded any of them.
 */
export const describedTools: readonly DescribedTool[] = allTools.map(describeTool);
