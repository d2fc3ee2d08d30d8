import type { CheckedUrl, Content } from './jsx.d.ts';

/**
 * Only the components in this file may output a URL: a link to a page of this server, a picture, a form, or the link
 * back to an app after sign-in. An escaped URL is not necessarily safe, because it can still begin with `javascript:`.
 * Each component therefore accepts only URLs that match a fixed pattern.
 */

/**
 * Matches a path on this server, a query, or a fragment. Rejects `//host` and `/\host`, because they lead to another
 * host.
 */
const localUrlPattern = /^(?:\/(?![/\\])|[#?])[!-~]*$/;
/** Matches the URL of a picture: a data URL, or a path on this server. */
const pictureUrlPattern = /^(?:data:image\/(?:jpeg|png|webp);base64,[\w+/=]*|\/(?![/\\])[!-~]*)$/;

/**
 * Returns the URL as a `CheckedUrl`, the only type of URL that a page may contain.
 * @throws TypeError if the URL does not match the pattern
 */
function checkUrl(url: string, pattern: RegExp): CheckedUrl {
  if (!pattern.test(url)) throw new TypeError('A page contains a URL of a form that pages may not contain.');
  return url as CheckedUrl;
}

interface LinkProps {
  /** The target of the link: a path on this server, a query, or a fragment. */
  to: string;
  children: Content;
  class?: string;
  isCurrent?: boolean;
}

/** A link to a page of this server. */
export const Link = ({ to, children, isCurrent = false, class: className }: LinkProps) => (
  <a href={checkUrl(to, localUrlPattern)} class={className} aria-current={isCurrent ? 'page' : undefined}>
    {children}
  </a>
);

/**
 * A picture. Its alternative text is empty, because the text next to the picture already describes the ad.
 * @param url a data URL, or a path on this server
 */
export const Picture = ({ url }: { url: string }) => <img src={checkUrl(url, pictureUrlPattern)} alt="" />;

/** A form that is submitted to a path on this server. If `isPost` is false, the form is a search form. */
export const Form = ({ to, children, isPost = false }: { to: string; children: Content; isPost?: boolean }) => (
  <form
    action={checkUrl(to, localUrlPattern)}
    method={isPost ? 'post' : undefined}
    role={isPost ? undefined : 'search'}
  >
    {children}
  </form>
);

/**
 * The link that takes the user back to the app that requested the sign-in. Its URL begins with `https:`, or with
 * `http:` if the app runs on the user's own computer.
 */
export const ReturnLink = ({ to, children }: { to: string; children: Content }) => (
  <a class="button" rel="noreferrer" href={checkUrl(to, /^https?:\/\/[!-~]+$/)}>
    {children}
  </a>
);
