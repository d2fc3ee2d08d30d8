import { askAbout } from './ask.ts';
import { button, byId, el, refill } from './elements.ts';
import { filtered } from './facets.ts';
import { createMore } from './more.ts';
import { canSave, openSave } from './save.ts';
import { type SortName, sortNames, sortTitle } from './sorting.ts';
import type { View } from './state.ts';
import { count, day, number } from './words.ts';

/** What stands above and below the ads: title, sorting, status, and what can be done with the selected ones. */
export function createFrame(view: View): { draw(): void } {
  const more = createMore(view);
  const sort = byId<HTMLSelectElement>('sort');
  sort.append(...sortNames.map((name) => el('option', { value: name }, sortTitle(name))));
  sort.addEventListener('change', () => view.update({ sort: sort.value as SortName }));
  const modes = (['cards', 'timeline'] as const).map((mode) => {
    const control = byId(`as-${mode}`);
    control.addEventListener('click', () => view.update({ mode }));
    return { mode, control };
  });
  return {
    draw: () => {
      const { ads, chosen, selected, mode, status } = view.state;
      const shown = filtered(ads, chosen).length;
      byId('title').textContent =
        shown === ads.length ? count(ads.length, 'ad') : `${number(shown)} of ${count(ads.length, 'ad')}`;
      byId('subtitle').textContent = subtitle(view);
      byId('notice').textContent = view.state.context.notice ? 'Demo data' : '';
      byId('status').textContent = status;
      for (const each of modes) each.control.setAttribute('aria-pressed', String(each.mode === mode));
      sort.value = view.state.sort;
      byId('tools').hidden = ads.length === 0;
      const selection = byId('selection');
      selection.hidden = selected.size === 0;
      refill(selection, ...(selected.size > 0 ? selectionControls(view) : []));
      const next = more.buttons();
      refill(byId('more'), ...next);
      byId('footer').classList.toggle('idle', selected.size === 0 && next.length === 0 && status === '');
    },
  };
}

function selectionControls(view: View): HTMLElement[] {
  const ids = [...view.state.selected];
  const controls: HTMLElement[] = [
    el('span', { class: 'count' }, `${number(ids.length)} selected`),
    button('Ask about them', () => void askAbout(view, ids), { class: 'primary', 'data-key': 'ask' }),
  ];
  if (canSave(view)) controls.push(button('Save …', () => void openSave(view, ids), { 'data-key': 'save' }));
  controls.push(
    button('×', () => view.update({ selected: new Set() }), {
      class: 'quiet',
      'data-key': 'none',
      'aria-label': 'Clear the selection',
    }),
  );
  return controls;
}

/** What was searched for, how much of it is here, and when. */
function subtitle({ state }: View): string {
  const { args, gathering, context, coming, missing, asOf } = state;
  const { totalHits } = context;
  const parts = [
    ...filterWords(args.filters),
    gathering &&
      `${number(gathering.read)} read${gathering.found === null ? '' : ` of ${number(gathering.found)} found`}`,
    gathering?.found === null && !gathering.complete && 'not complete',
    gathering === undefined && totalHits !== undefined && `${number(totalHits)} found`,
    coming > 0 && `${number(coming)} more to come`,
    missing.length > 0 && `${number(missing.length)} no longer kept`,
    asOf !== '' && `as of ${day(gathering?.gatheredAt ?? asOf)}`,
  ];
  return parts.filter(Boolean).join(' · ');
}

function filterWords(filters: unknown): string[] {
  if (typeof filters !== 'object' || filters === null) return [];
  const { query, ...others } = filters as Record<string, unknown>;
  return Object.entries({ query, ...others })
    .filter(([, value]) => value !== undefined)
    .slice(0, 6)
    .map(([key, value]) =>
      key === 'query'
        ? `“${String(value).replaceAll('"', '')}”`
        : `${key} ${Array.isArray(value) ? value.join(', ') : value}`,
    )
    .map((text) => text.slice(0, 80));
}
