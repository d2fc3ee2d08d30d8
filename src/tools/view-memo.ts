import type { ToolContext } from './tool-context.ts';

/** The items of an answer that were shown before in the way of that name, if they were; and how to remember them. */
export function knownItems<View>({ condensed }: ToolContext, raw: object, name: string) {
  const views = condensed.items.get(raw) ?? new Map<string, readonly unknown[]>();
  return {
    items: views.get(name) as View[] | undefined,
    remember(items: readonly View[], text: string | undefined): void {
      condensed.items.set(raw, views.set(name, items));
      if (text !== undefined) condensed.text.set(items, text);
    },
  };
}
