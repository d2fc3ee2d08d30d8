/**
 * JSX types for pages that the server renders. Preact renders these pages, but its own types would make browser globals
 * such as `window` available in all server code.
 *
 * Pages can contain only the elements and attributes declared here. Raw HTML, inline styles, inline scripts and
 * unchecked URLs are type errors.
 */

/** An element of a page that Preact can render. */
export interface VNode {
  readonly type: unknown;
  readonly props: object;
}

/** Anything that an element of a page can contain. */
export type Content = VNode | string | number | boolean | null | undefined | readonly Content[];

/** A URL that has been checked against an allowed pattern. Only `links.tsx` creates values of this type. */
export type CheckedUrl = string & { readonly isChecked: true };

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
  /** A click handler. Only the ad board runs scripts, so handlers have no effect in pages that the server renders. */
  onClick?: (() => void) | undefined;
  href?: CheckedUrl;
  src?: CheckedUrl;
  action?: CheckedUrl;
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

/** Elements that have no attributes besides the common ones, such as `class`. */
type PlainElements = Record<
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
  export interface IntrinsicElements extends PlainElements {
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

/** Renders an element as HTML (`preact-render-to-string`). */
export declare function renderToString(element: VNode): string;
