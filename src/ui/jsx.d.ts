/**
 * The elements of pages as Preact writes them, in place of its own types, which bring the names of a browser into the
 * whole server. What is not named here cannot be written: no markup as text, no style or script in an attribute, and
 * no address but a checked one.
 */
export interface VNode {
  readonly type: unknown;
  readonly props: object;
}

export type Content = VNode | string | number | boolean | null | undefined | readonly Content[];

/** Only `addresses.tsx` makes one. */
export type Address = string & { readonly isChecked: true };

interface Attributes {
  [name: `aria-${string}`]: string | boolean | undefined;
  [name: `data-${string}`]: string | undefined;
  [name: `stroke-${string}`]: string | number | undefined;
  children?: Content;
  class?: string | undefined;
  dir?: 'auto';
  hidden?: boolean;
  id?: string;
  role?: string | undefined;
  tabIndex?: 0;
  /** Only a page with a script of its own has one; what is written as text leaves it out. */
  onClick?: (() => void) | undefined;
  href?: Address;
  src?: Address;
  action?: Address;
}

interface InputAttributes extends Attributes {
  autocapitalize?: 'none';
  autocomplete?: 'off';
  autofocus?: boolean;
  inputmode?: 'numeric';
  maxLength?: number;
  name: string;
  pattern?: string;
  readOnly?: boolean;
  required?: boolean;
  spellcheck?: false;
  title?: string;
  type?: 'date' | 'hidden' | 'password' | 'search' | 'text';
  value?: string;
}

interface ShapeAttributes extends Attributes {
  x?: number;
  y?: number;
  width?: number;
  height?: number;
  rx?: number | undefined;
  points?: string;
  'font-size'?: number;
  'font-weight'?: number | undefined;
  'text-anchor'?: string;
}

type Plain = Record<
  | ('head' | 'title' | 'style' | 'body' | 'main' | 'header' | 'footer' | 'nav' | 'section' | 'div' | 'span' | 'p')
  | ('h1' | 'h2' | 'h3' | 'ul' | 'li' | 'dl' | 'dt' | 'dd' | 'b' | 'bdi' | 'pre' | 'code' | 'details' | 'summary')
  | ('figure' | 'figcaption' | 'table' | 'thead' | 'tbody' | 'tr' | 'td'),
  Attributes
>;

export namespace JSX {
  export type Element = VNode;
  export type ElementType = keyof IntrinsicElements | ((props: never) => Content);
  export interface ElementChildrenAttribute {
    children: object;
  }
  export interface IntrinsicElements extends Plain {
    html: Attributes & { lang: string };
    meta: { charset?: string; name?: string; content?: string; 'http-equiv'?: 'Content-Security-Policy' };
    a: Attributes & { rel?: 'noreferrer' };
    img: Attributes & { alt: string };
    ol: Attributes & { start?: number | undefined };
    th: Attributes & { scope: 'col' | 'row' };
    time: Attributes & { dateTime: string };
    form: Attributes & { method?: 'post' | undefined };
    label: Attributes & { for?: string };
    input: InputAttributes;
    textarea: InputAttributes;
    button: Attributes & {
      type: 'button' | 'submit';
      title?: string;
      name?: string;
      value?: string;
      formnovalidate?: boolean;
    };
    select: Attributes & { name: string };
    option: Attributes & { value: string; selected?: boolean };
    svg: Attributes & { viewBox: string; preserveAspectRatio?: 'none' };
    rect: ShapeAttributes;
    polyline: ShapeAttributes;
    text: ShapeAttributes;
  }
}

export declare const Fragment: (props: { children?: Content }) => VNode;
export declare const jsx: unknown;
export declare const jsxs: unknown;

/** Of `preact-render-to-string`. */
export declare function renderToString(element: VNode): string;
