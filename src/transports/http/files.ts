import type { ServerResponse } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import type { Context, Handler } from 'hono';
import { AdLibraryError } from '../../api/errors.ts';
import type { ExportedFile, FileLinks } from '../../storage/exports.ts';
import { Semaphore } from '../../workers/semaphore.ts';
import { isLoopbackName } from './hosts-and-origins.ts';

export interface ServedFiles {
  find: FileLinks['find'];
  /** The origin under which the caller of a request can open links, if there is one. */
  originOf(context: Context): string | undefined;
}

/** Headers that proxies add. A request with one of them may come from another machine although its host is loopback. */
const forwarding = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip'];

/** @param publicUrl the origin of links; by default, only callers of this machine get links */
export const linkOriginOf =
  (publicUrl: string | undefined): ServedFiles['originOf'] =>
  ({ req }) => {
    if (publicUrl !== undefined) return publicUrl;
    const host = req.header('host');
    const isForwarded = forwarding.some((name) => req.header(name) !== undefined);
    if (isForwarded || !isLoopbackName(host)) return undefined;
    return new URL(`http://${host}`).origin;
  };

const headers = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-robots-tag': 'noindex',
  'cross-origin-resource-policy': 'same-origin',
};

/** The policy of reports. The server writes these pages, but they hold ads of strangers. */
const policy = "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; frame-ancestors 'none'";

/** Answers `GET` and `HEAD` of `/files/:link/:name`. Whoever knows the address may read the file. */
export function serveFiles({ find, originOf }: ServedFiles, bounds?: Partial<LinkBounds>): Handler {
  const openFiles = createOpenFiles(bounds);
  const answer: Handler = async (context) => {
    const { method } = context.req;
    const { link = '', name = '' } = context.req.param();
    if (method !== 'GET' && method !== 'HEAD')
      return context.text('A file can only be read.\n', 405, { allow: 'GET, HEAD' });
    const found = originOf(context) && (await find(link, name));
    if (!found) return context.text('There is no such file.\n', 404);
    if (found === 'ended') return context.text(linkEnded, 410);
    const { file, tenantId } = found;
    if (method === 'HEAD') {
      describe(context, file);
      return context.body(null);
    }
    const { outgoing } = context.env as HttpBindings;
    const content = await openFiles.read({ link, tenantId, file, outgoing: outgoing as ServerResponse });
    describe(context, file);
    return context.body(content as Uint8Array<ArrayBuffer>);
  };
  return async (context, next) => {
    for (const [name, value] of Object.entries(headers)) context.header(name, value);
    return Promise.resolve(answer(context, next)).catch((error) => {
      if (!(error instanceof AdLibraryError)) throw error;
      if (error.failure.kind === 'not_found') return context.text(linkEnded, 410);
      return context.text('Try again later.\n', 503, { 'retry-after': '5' });
    });
  };
}

function describe(context: Context, file: ExportedFile): void {
  const { mimeType, bytes, name } = file;
  context.header('content-type', mimeType.startsWith('text/') ? `${mimeType}; charset=utf-8` : mimeType);
  context.header('content-length', String(bytes));
  if (mimeType === 'text/html') context.header('content-security-policy', policy);
  else context.header('content-disposition', `attachment; filename="${name}"`);
}

const linkEnded = 'This link has ended. Ask for the file again: that is free.\n';

interface LinkBounds {
  /** Answers with one file that are being made or read, so that one link does not take all connections. */
  answersPerLink: number;
  /** Large files in memory at once. */
  largeFiles: number;
  /** How long a large file waits for a slot, in milliseconds. */
  waitMs: number;
  /** How long readers may keep a large file in memory while other files wait for a slot, in milliseconds. */
  slowMs: number;
}

const defaultBounds: LinkBounds = { answersPerLink: 64, largeFiles: 8, waitMs: 15_000, slowMs: 10_000 };

/** Larger files take a slot while they are in memory: a file may have 16 MB. */
const largeFileBytes = 256 * 1024;

interface OpenFile {
  /** The answers that hold the content. */
  answers: Set<ServerResponse>;
  content: Promise<Uint8Array>;
  close(): void;
}

interface FileRead {
  link: string;
  tenantId: string;
  file: ExportedFile;
  outgoing: ServerResponse;
}

/**
 * Reads files for their links. All readers of a link share one copy of the file and one slot, so they keep no other file
 * away. If all slots are taken and other files wait, readers that have kept a large file for too long are disconnected.
 */
function createOpenFiles(bounds?: Partial<LinkBounds>) {
  const { answersPerLink, largeFiles, waitMs, slowMs } = { ...defaultBounds, ...bounds };
  const slots = new Semaphore({ maxRunning: largeFiles, name: 'files' });
  const openFiles = new Map<string, OpenFile>();

  const open = ({ tenantId, file }: FileRead): OpenFile => {
    let close = () => {};
    const closed = new Promise<void>((resolve) => {
      close = resolve;
    });
    const answers = new Set<ServerResponse>();
    const readLarge = async () => {
      const end = await slots.acquire(tenantId, AbortSignal.timeout(waitMs));
      const slow = setInterval(() => {
        if (slots.waiting > 0) for (const answer of answers) answer.destroy();
      }, slowMs);
      void closed.then(() => {
        clearInterval(slow);
        end();
      });
      return file.content();
    };
    return { answers, content: file.bytes > largeFileBytes ? readLarge() : file.content(), close };
  };

  return {
    /** @throws AdLibraryError `busy` if too many clients read this link, or if there is no slot in time */
    async read(fileRead: FileRead): Promise<Uint8Array> {
      const { link, outgoing } = fileRead;
      const openFile = openFiles.get(link) ?? open(fileRead);
      const { answers, content, close } = openFile;
      if (answers.size >= answersPerLink) throw tooManyReaders();
      openFiles.set(link, openFile);
      answers.add(outgoing);
      const leave = () => {
        answers.delete(outgoing);
        if (answers.size > 0) return;
        if (openFiles.get(link) === openFile) openFiles.delete(link);
        close();
      };
      outgoing.once('close', leave);
      if (outgoing.closed) leave();
      return content;
    },
  };
}

const tooManyReaders = () =>
  new AdLibraryError({ kind: 'busy', problem: 'Too many clients read this file.', sent: false });
