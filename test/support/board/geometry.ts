import type { Locator } from 'playwright-core';

/**
 * What is wrong with how a page is laid out, as short sentences: texts that lie on each other, that are cut without an
 * ellipsis, or that lie beyond the edge. Runs in the page.
 */
export const faultsOf = (root: Locator): Promise<string[]> =>
  root.evaluate((html) => {
    const window = html.ownerDocument.defaultView;
    const faults: string[] = [];
    const texts: {
      element: typeof html;
      text: string;
      box: { left: number; right: number; top: number; bottom: number };
    }[] = [];
    const top = html.querySelector('dialog[open]') ?? html.querySelector('main');
    for (const element of top?.querySelectorAll('*') ?? []) {
      const style = window.getComputedStyle(element);
      const own = [...element.childNodes].filter((node) => node.nodeType === 3 && node.data.trim() !== '');
      if (own.length === 0 || style.visibility === 'hidden' || style.clipPath !== 'none') continue;
      const box = element.getBoundingClientRect();
      if (box.width === 0 || box.height === 0 || element.closest('footer, nav, option, svg')) continue;
      const text = own[0].data.trim().slice(0, 40);
      const isClamped = (one: typeof element) => {
        const { textOverflow, webkitLineClamp } = window.getComputedStyle(one);
        return textOverflow === 'ellipsis' || webkitLineClamp !== 'none';
      };
      const holders = [element, element.parentElement, element.parentElement?.parentElement].filter(Boolean);
      for (const holder of holders)
        if (window.getComputedStyle(holder).overflowX === 'hidden' && !isClamped(holder))
          if (holder.scrollWidth > holder.clientWidth + 1) faults.push(`cut: ${text}`);
      const scroller = element.closest('.compared, .strip')?.getBoundingClientRect();
      if (!scroller && box.right > html.clientWidth + 1) faults.push(`beyond the edge: ${text}`);
      for (const node of own) {
        const range = html.ownerDocument.createRange();
        range.selectNodeContents(node);
        const boxes = holders.some(isClamped) ? [box] : range.getClientRects();
        for (const { left, right, top, bottom } of boxes)
          if (!scroller || (left < scroller.right && top < scroller.bottom))
            texts.push({
              element,
              text,
              box: { left, right, top, bottom: Math.min(bottom, scroller?.bottom ?? bottom) },
            });
      }
    }
    for (const [at, one] of texts.entries())
      for (const other of texts.slice(at + 1)) {
        const width = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
        const height = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top);
        const isPart = one.element.contains(other.element) || other.element.contains(one.element);
        if (width > 2 && height > 4 && !isPart) faults.push(`on each other: ${one.text} | ${other.text}`);
      }
    return [...new Set(faults)].slice(0, 10);
  });
