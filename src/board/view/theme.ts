import type { Message } from './host.ts';

/** Variables of the host that the page's own colours and fonts fall back from. */
const hostVariable = /^--(?:color|font|border|shadow)-[a-z\d-]+$/;

/** Takes on the host's theme and colours (MCP Apps, *Theming*). Its font files would come from outside, so they do not. */
export function applyTheme({ theme, styles, safeAreaInsets }: Message): void {
  const root = document.documentElement;
  if (theme === 'light' || theme === 'dark') root.style.colorScheme = theme;
  const variables = (styles as { variables?: Record<string, unknown> } | undefined)?.variables ?? {};
  for (const [name, value] of Object.entries(variables))
    if (typeof value === 'string' && hostVariable.test(name)) root.style.setProperty(name, value);
  for (const [side, pixels] of Object.entries((safeAreaInsets as object | undefined) ?? {}))
    if (typeof pixels === 'number') document.body.style.setProperty(`padding-${side}`, `${pixels}px`);
}
