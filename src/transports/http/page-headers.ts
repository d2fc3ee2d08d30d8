import { createHash } from 'node:crypto';
import { buildPageStyles } from '../../ui/page.tsx';

/**
 * Creates the headers of a page of this server, and of every answer that a browser could show as a page.
 *
 * The content security policy allows only the page's own styles. It has no `form-action`, because browsers also apply
 * `form-action` to all redirects that follow a form. Hosts redirect from their own URL to their app, which a policy with
 * `form-action` would block.
 */
export function createPageHeaders(styles: string): Record<string, string> {
  const styleHash = createHash('sha256').update(buildPageStyles(styles)).digest('base64');
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': `default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'; frame-ancestors 'none'`,
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    // With `no-referrer`, browsers would send the form with `Origin: null`, and the server could not check its origin.
    'referrer-policy': 'same-origin',
    'x-robots-tag': 'noindex',
  };
}
