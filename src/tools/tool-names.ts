import { type OperationName, operations } from '../api/call.ts';

/** Whether a call of the tool may be charged. */
export const isGated = (tool: { operations: readonly OperationName[] }): boolean =>
  tool.operations.some((name) => operations[name].gated);

/** Tool names for a sentence: `search_ads, get_ad and get_page`. */
export function namesOf(listed: readonly { name: string }[]): string {
  const names = listed.map(({ name }) => name);
  return [names.slice(0, -1).join(', '), names.at(-1)].filter(Boolean).join(' and ');
}
