type Child = Node | string | false | undefined;
type Attributes = Record<string, string | number | boolean | undefined>;

/** An element. Texts become text nodes, so that nothing an advertiser wrote is read as markup. */
export function el<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  return filled(document.createElement(tag), attributes, children);
}

export const svg = (tag: string, attributes: Attributes, ...children: Child[]): SVGElement =>
  filled(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);

function filled<Kind extends Element>(element: Kind, attributes: Attributes, children: readonly Child[]): Kind {
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : String(value));
  element.append(...children.filter((child) => child !== false && child !== undefined));
  return element;
}

export function button(
  label: string,
  onClick: (event: MouseEvent) => void,
  attributes: Attributes = {},
): HTMLButtonElement {
  const element = el('button', { type: 'button', ...attributes }, label);
  element.addEventListener('click', onClick);
  return element;
}

/** An element of the page's own markup. */
export function byId<Kind extends HTMLElement = HTMLElement>(id: string): Kind {
  return document.getElementById(id) as Kind;
}

/** Replaces what is in an element, and leaves the focus on the control of the same key. */
export function refill(container: Element, ...children: Node[]): void {
  const focused = document.activeElement;
  const key = container.contains(focused) && focused instanceof HTMLElement ? focused.dataset.key : undefined;
  container.replaceChildren(...children);
  if (key !== undefined)
    container.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}
