import { byId } from './elements.ts';
import type { Host, Message } from './host.ts';

/** In a conversation the board scrolls within itself rather than push everything else away. */
const maxInline = 820;
/** The drawer needs some room even where there are few ads. */
const minInline = 560;

/** Tells the host how much room the board wants, and offers the whole window where the host can give it. */
export function followSize(host: Host): { follow(context: Message): void } {
  let max = maxInline;
  let reported = '';
  const report = () => {
    const width = Math.ceil(document.documentElement.clientWidth);
    const height = Math.min(max, Math.max(minInline, Math.ceil(document.body.getBoundingClientRect().height)));
    if (reported === `${width} ${height}`) return;
    reported = `${width} ${height}`;
    host.notify('ui/notifications/size-changed', { width, height });
  };
  new ResizeObserver(report).observe(document.body);
  const expand = byId('expand');
  let mode = 'inline';
  expand.addEventListener('click', () => {
    const wanted = mode === 'fullscreen' ? 'inline' : 'fullscreen';
    host.request('ui/request-display-mode', { mode: wanted }).then(setMode, () => {
      expand.hidden = true;
    });
  });
  const setMode = (context: Message) => {
    if (typeof context.mode === 'string') mode = context.mode;
    expand.textContent = mode === 'fullscreen' ? 'Close' : 'Expand';
  };
  return {
    follow: ({ containerDimensions, displayMode, availableDisplayModes }) => {
      const { maxHeight } = (containerDimensions as { maxHeight?: number } | undefined) ?? {};
      if (typeof maxHeight === 'number' && maxHeight > 0) max = Math.min(maxHeight, maxInline);
      if (Array.isArray(availableDisplayModes)) expand.hidden = !availableDisplayModes.includes('fullscreen');
      setMode({ mode: displayMode });
      report();
    },
  };
}
