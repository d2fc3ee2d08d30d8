import { createHash } from 'node:crypto';
import { buildPageStyles } from '../../ui/page.tsx';

/**
 * The headers of a page of this server, and of every answer that could be shown as one. The policy allows only the
 * page's own style. It has no `form-action`: browsers apply that to all redirects after a form, and hosts redirect from
 * their own address to their app.
 */
export function pageHeaders(styles: string): Record<string, string> {
  const style = createHash('sha256').update(buildPageStyles(styles)).digest('base64');
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': `default-src 'none'; style-src 'sha256-${style}'; base-uri 'none'; frame-ancestors 'none'`,
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    // Without a referrer at all, browsers would not say that a form comes from this origin.
    'referrer-policy': 'same-origin',
    'x-robots-tag': 'noindex',
  };
}
