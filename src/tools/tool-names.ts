import { type OperationName, operations } from '../api/call.ts';
import { listed } from '../present/safe-text.ts';

/** Whether a call of the tool may be charged. */
export const isGated = (tool: { operations: readonly OperationName[] }): boolean =>
  tool.operations.some((name) => operations[name].gated);

/** Tool names for a sentence: `search_ads, get_ad and get_page`. */
export const namesOf = (tools: readonly { name: string }[]): string => listed(tools.map(({ name }) => name));
