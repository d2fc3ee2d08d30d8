import type { CheckedUrl, Content } from './jsx.d.ts';

/**
 * Only the components in this file output a URL: links to pages of this server, pictures, forms, and the link back to
 * an app after sign-in. Escaping alone does not make a URL safe: an escaped URL can still begin with `javascript:`.
 * Each component therefore accepts only URLs that match a fixed pattern.
 */

/** Matches a path on this server, a query or a fragment. Rejects `//host` and `/\host`, which lead to another host. */
const ownPathPattern = /^(?:\/(?![/\\])|[#?])[!-~]*$/;
/** Matches a picture as a data URL or as a path on this server. */
const ownPicturePattern = /^(?:data:image\/(?:jpeg|png|webp);base64,[\w+/=]*|\/(?![/\\])[!-~]*)$/;

/**
 * Returns the URL as a `CheckedUrl`, which a page may contain.
 * @throws TypeError if the URL does not match the pattern
 */
function checkUrl(url: string, pattern: RegExp): CheckedUrl {
  if (!pattern.test(url)) throw new TypeError('A page contains a URL of a form that pages may not contain.');
  return url as CheckedUrl;
}

interface LinkProps {
  /** Where the link leads: a path on this server, a query or a fragment. */
  to: string;
  children: Content;
  class?: string;
  isCurrent?: boolean;
}

/** A link to a page of this server. */
export const Link = ({ to, children, isCurrent = false, class: className }: LinkProps) => (
  <a href={checkUrl(to, ownPathPattern)} class={className} aria-current={isCurrent ? 'page' : undefined}>
    {children}
  </a>
);

/**
 * A picture. Its alternative text is empty, because the text next to the picture already describes the ad.
 * @param url data URL, or path on this server
 */
export const Picture = ({ url }: { url: string }) => <img src={checkUrl(url, ownPicturePattern)} alt="" />;

/** A form that is submitted to a path on this server. Without `isPost`, it is a search form. */
export const Form = ({ to, children, isPost = false }: { to: string; children: Content; isPost?: boolean }) => (
  <form action={checkUrl(to, ownPathPattern)} method={isPost ? 'post' : undefined} role={isPost ? undefined : 'search'}>
    {children}
  </form>
);

/**
 * The link with which the user returns to an app after signing in for it. Its URL begins with `https:`, or with `http:`
 * for an app on the user's own computer.
 */
export const ReturnLink = ({ to, children }: { to: string; children: Content }) => (
  <a class="button" rel="noreferrer" href={checkUrl(to, /^https?:\/\/[!-~]+$/)}>
    {children}
  </a>
);
