import { createHash } from 'node:crypto';
import { buildPageStyles } from '../../ui/page.tsx';

/**
 * Creates the headers for an HTML page, and for every response that a browser could show as a page.
 *
 * The content security policy allows only the page's own styles. There is no `form-action`, because browsers also apply
 * it to redirects after a form is submitted. Some MCP hosts redirect from their own URL to their app, and `form-action`
 * would block this redirect.
 */
export function createPageHeaders(styles: string): Record<string, string> {
  const styleHash = createHash('sha256').update(buildPageStyles(styles)).digest('base64');
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': `default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'; frame-ancestors 'none'`,
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    // Do not use `no-referrer`. Browsers would then submit the sign-in form with `Origin: null`, and the server could
    // not check the origin.
    'referrer-policy': 'same-origin',
    'x-robots-tag': 'noindex',
  };
}
