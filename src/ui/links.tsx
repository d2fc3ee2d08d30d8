import type { CheckedUrl, Content } from './jsx.d.ts';

/**
 * The elements in this file are the only ones that carry a URL: links to paths of this server, pictures, forms, and the
 * link that returns to an app after sign-in. Escaping does not make a URL safe, because an escaped URL can still begin
 * with `javascript:`. Each element therefore accepts only URLs of one pattern.
 */

/** Matches a path of this server, a query or a fragment. Excludes `//host` and `/\host`, which lead to another host. */
const ownPathPattern = /^(?:\/(?![/\\])|[#?])[!-~]*$/;
/** Matches a picture as a data URL, or as a path of this server. */
const ownPicturePattern = /^(?:data:image\/(?:jpeg|png|webp);base64,[\w+/=]*|\/(?![/\\])[!-~]*)$/;

/**
 * Returns the URL if it matches the pattern.
 * @throws TypeError for any other URL
 */
function checkUrl(url: string, pattern: RegExp): CheckedUrl {
  if (!pattern.test(url)) throw new TypeError('A page contains a URL of a form that pages may not contain.');
  return url as CheckedUrl;
}

interface LinkProps {
  /** A path of this server, a query or a fragment. */
  to: string;
  children: Content;
  class?: string;
  isCurrent?: boolean;
}

/** Renders a link to a page of this server. */
export const Link = ({ to, children, isCurrent = false, class: className }: LinkProps) => (
  <a href={checkUrl(to, ownPathPattern)} class={className} aria-current={isCurrent ? 'page' : undefined}>
    {children}
  </a>
);

/**
 * Renders a picture. Its alternative text is empty, because the text beside the picture already describes the ad.
 * @param url a data URL, or a path of this server
 */
export const Picture = ({ url }: { url: string }) => <img src={checkUrl(url, ownPicturePattern)} alt="" />;

/** Renders a form that is sent to a path of this server. A form that is not a POST form is a search. */
export const Form = ({ to, children, isPost = false }: { to: string; children: Content; isPost?: boolean }) => (
  <form action={checkUrl(to, ownPathPattern)} method={isPost ? 'post' : undefined} role={isPost ? undefined : 'search'}>
    {children}
  </form>
);

/**
 * Renders the link that returns to the app that asked for a sign-in. The scheme is https, or http for a program on the
 * same computer.
 */
export const ReturnLink = ({ to, children }: { to: string; children: Content }) => (
  <a class="button" rel="noreferrer" href={checkUrl(to, /^https?:\/\/[!-~]+$/)}>
    {children}
  </a>
);
