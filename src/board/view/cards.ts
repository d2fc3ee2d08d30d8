import type { BoardAd } from '../payload.ts';
import { formatOf, monogramOf, runOf, stateOf, titleOf } from './ad-words.ts';
import { button, el } from './elements.ts';
import type { View } from './state.ts';
import { barOf, type TimeAxis } from './time-axis.ts';
import { number } from './words.ts';

/** An ad as a card. The whole card opens it, and its checkbox selects it. */
export function adCard(ad: BoardAd, view: View): HTMLLIElement {
  const format = formatOf(ad);
  const title = titleOf(ad);
  const line = ad.firstLine === title ? undefined : ad.firstLine;
  return el(
    'li',
    { class: 'card', 'data-ad': ad.id },
    el('div', { class: 'picture' }, frameOf(ad, view), format !== '' && el('span', { class: 'badge' }, format)),
    selectBox(ad, view),
    runBar(ad, view.state.axis),
    el('p', { class: 'page', dir: 'auto' }, ad.pageName ?? 'Unknown advertiser'),
    button(title, () => view.openAd(ad), { class: 'open', dir: 'auto', 'data-key': ad.id }),
    line !== undefined && el('p', { class: 'line', dir: 'auto' }, line),
    runFacts(ad),
  );
}

/** An ad as a row of the timeline. */
export function adRow(ad: BoardAd, view: View): HTMLLIElement {
  return el(
    'li',
    { class: 'row', 'data-ad': ad.id },
    selectBox(ad, view),
    el('div', { class: 'picture' }, frameOf(ad, view)),
    el(
      'div',
      { class: 'names' },
      el('p', { class: 'page', dir: 'auto' }, ad.pageName ?? 'Unknown advertiser'),
      button(titleOf(ad), () => view.openAd(ad), { class: 'open', dir: 'auto', 'data-key': ad.id }),
    ),
    runBar(ad, view.state.axis),
    runFacts(ad),
  );
}

function frameOf(ad: BoardAd, { pictures }: View): HTMLElement {
  const { initial, hue } = monogramOf(ad);
  return pictures.frame(ad.id, hue, initial);
}

function selectBox(ad: BoardAd, view: View): HTMLElement {
  const box = el('input', { type: 'checkbox', 'aria-label': `Select: ${titleOf(ad)}` });
  box.checked = view.state.selected.has(ad.id);
  box.addEventListener('change', () => {
    const selected = new Set(view.state.selected);
    if (box.checked) selected.add(ad.id);
    else selected.delete(ad.id);
    view.update({ selected });
  });
  return el('label', { class: 'pick' }, box);
}

function runFacts(ad: BoardAd): HTMLElement {
  const { duplicates = 0 } = ad;
  return el(
    'p',
    { class: `facts ${stateOf(ad)}` },
    el('b', {}, runOf(ad)),
    el('span', {}, stateOf(ad)),
    duplicates > 1 && el('span', { class: 'copies', title: 'Copies of this ad' }, `×${number(duplicates)}`),
  );
}

export function runBar(ad: BoardAd, axis: TimeAxis): HTMLElement {
  const track = el('div', { class: `track ${stateOf(ad)}`, 'aria-hidden': 'true' });
  const bar = barOf(ad, axis);
  if (bar === undefined) return track;
  const run = el('i', { class: bar.isCut ? 'cut' : undefined });
  run.style.insetInlineStart = `${100 * bar.start}%`;
  run.style.width = `${100 * bar.length}%`;
  track.append(run);
  return track;
}
