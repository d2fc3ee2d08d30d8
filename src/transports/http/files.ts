import type { HttpBindings } from '@hono/node-server';
import { localhostAllowedHostnames, validateHostHeader } from '@modelcontextprotocol/server';
import type { Context, Handler } from 'hono';
import { AdLibraryError } from '../../api/errors.ts';
import type { FileLinks } from '../../storage/exports.ts';
import { Semaphore } from '../../workers/semaphore.ts';

export interface ServedFiles {
  find: FileLinks['find'];
  /** The origin under which the caller of a request can open links, if there is one. */
  originOf(context: Context): string | undefined;
}

/** By these, a proxy says that a request came from elsewhere: then loopback is not where its caller is. */
const forwarding = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip'];

/** @param publicUrl by default, links are for callers of this machine alone */
export const linkOriginOf =
  (publicUrl: string | undefined): ServedFiles['originOf'] =>
  ({ req }) => {
    if (publicUrl !== undefined) return publicUrl;
    const host = req.header('host');
    const isForwarded = forwarding.some((name) => req.header(name) !== undefined);
    if (isForwarded || !validateHostHeader(host, localhostAllowedHostnames()).ok) return undefined;
    return new URL(`http://${host}`).origin;
  };

const headers = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-robots-tag': 'noindex',
  'cross-origin-resource-policy': 'same-origin',
};

/** A report is a page of our own, but its ads are by strangers. */
const policy = "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'";

/** Files that are read, or sent, at once: a file may have 16 MB. */
const filesAtOnce = 4;

/** Answers `GET` and `HEAD` of `/files/:link/:name`. The address is the permission: nothing else is asked for. */
export function serveFiles({ find, originOf }: ServedFiles): Handler {
  const turns = new Semaphore({ maxRunning: filesAtOnce, perKey: 1, name: 'files' });
  const answer: Handler = async (context) => {
    const { method, raw } = context.req;
    const { link = '', name = '' } = context.req.param();
    if (method !== 'GET' && method !== 'HEAD')
      return context.text('A file can only be read.\n', 405, { allow: 'GET, HEAD' });
    const found = originOf(context) && (await find(link, name));
    if (!found) return context.text('There is no such file.\n', 404);
    if (found === 'ended') return context.text(ended, 410);
    const { file, tenantId } = found;
    const isText = file.mimeType.startsWith('text/');
    context.header('content-type', isText ? `${file.mimeType}; charset=utf-8` : file.mimeType);
    context.header('content-length', String(file.bytes));
    if (file.mimeType === 'text/html') context.header('content-security-policy', policy);
    else context.header('content-disposition', `attachment; filename="${file.name}"`);
    if (method === 'HEAD') return context.body(null);
    const end = await turns.acquire(tenantId, raw.signal);
    const { outgoing } = context.env as HttpBindings;
    outgoing.once('close', end);
    if (outgoing.closed) end();
    return context.body(new Uint8Array(await file.content()));
  };
  return async (context, next) => {
    for (const [name, value] of Object.entries(headers)) context.header(name, value);
    return Promise.resolve(answer(context, next)).catch((error) => {
      if (!(error instanceof AdLibraryError)) throw error;
      const isGone = error.failure.kind === 'not_found';
      for (const name of ['content-type', 'content-length', 'content-disposition']) context.header(name, undefined);
      return isGone ? context.text(ended, 410) : context.text('Try again later.\n', 503, { 'retry-after': '5' });
    });
  };
}

const ended = 'This link has ended. Ask for the file again: that is free.\n';
