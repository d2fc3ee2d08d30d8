import type { Address, Content } from './jsx.d.ts';

/**
 * The only elements that carry an address: pictures in the page itself, paths of our own, and the way back to an app.
 * What is escaped can still be `javascript:…`, so that what has another form is refused.
 */
const ownPath = /^(?:\/(?![/\\])|[#?])[!-~]*$/;
const ownPicture = /^(?:data:image\/(?:jpeg|png|webp);base64,[\w+/=]*|\/(?![/\\])[!-~]*)$/;

function checked(address: string, form: RegExp): Address {
  if (!form.test(address)) throw new TypeError('An address in a page has a form that pages do not hold');
  return address as Address;
}

interface LinkProps {
  /** A path of this server, a query or a fragment. */
  to: string;
  children: Content;
  class?: string;
  isCurrent?: boolean;
}

export const Link = ({ to, children, isCurrent = false, class: kind }: LinkProps) => (
  <a href={checked(to, ownPath)} class={kind} aria-current={isCurrent ? 'page' : undefined}>
    {children}
  </a>
);

/** A picture that stands beside its words, as a data address or a path of this server. */
export const Picture = ({ from }: { from: string }) => <img src={checked(from, ownPicture)} alt="" />;

export const Form = ({ to, children, isPost = false }: { to: string; children: Content; isPost?: boolean }) => (
  <form action={checked(to, ownPath)} method={isPost ? 'post' : undefined} role={isPost ? undefined : 'search'}>
    {children}
  </form>
);

/** The way back to an app that asked for a sign-in: https, or http for a program of this computer. */
export const WayBack = ({ to, children }: { to: string; children: Content }) => (
  <a class="button" rel="noreferrer" href={checked(to, /^https?:\/\/[!-~]+$/)}>
    {children}
  </a>
);
