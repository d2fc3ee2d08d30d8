import type { ServerResponse } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import type { Context, Handler } from 'hono';
import { AdLibraryError } from '../../api/errors.ts';
import type { ExportedFile, FileLinks } from '../../storage/exports.ts';
import { Semaphore } from '../../workers/semaphore.ts';
import { isLoopbackName } from './hosts-and-origins.ts';

/** The functions that find the exported file of a download link, and the origin of new download links. */
export interface LinkedFileFinder {
  findLinkedFile: FileLinks['find'];
  /**
   * Returns the origin of download links, e.g. `https://ads.example.com`. Returns undefined if the browser of the user
   * cannot reach this server.
   */
  findLinkOrigin(context: Context): string | undefined;
}

/**
 * The headers that proxies add. A request with one of these headers may come from another machine, even if its `Host`
 * header is a loopback name.
 */
const proxyHeaders = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip'];

/**
 * Creates a function that returns the origin of download links for a request.
 * @param publicUrl the origin of all download links. Without this URL, only callers on this machine receive links.
 */
export const createLinkOriginFinder =
  (publicUrl: string | undefined): LinkedFileFinder['findLinkOrigin'] =>
  ({ req }) => {
    if (publicUrl !== undefined) return publicUrl;
    const host = req.header('host');
    const isForwarded = proxyHeaders.some((name) => req.header(name) !== undefined);
    if (isForwarded || !isLoopbackName(host)) return undefined;
    return new URL(`http://${host}`).origin;
  };

const securityHeaders = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-robots-tag': 'noindex',
  'cross-origin-resource-policy': 'same-origin',
};

/**
 * The content security policy for exported reports. The policy blocks scripts, because reports contain texts from ads,
 * which are not trusted.
 */
const reportPolicy = "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; frame-ancestors 'none'";

/**
 * Creates the handler for `GET` and `HEAD` requests to `/files/:link/:name`. Anyone who has the URL can read the file.
 */
export function createFileHandler(
  { findLinkedFile, findLinkOrigin }: LinkedFileFinder,
  downloadLimits?: Partial<DownloadLimits>,
): Handler {
  const fileReader = createFileReader(downloadLimits);
  const serveRequest: Handler = async (context) => {
    const { method } = context.req;
    const { link = '', name = '' } = context.req.param();
    if (method !== 'GET' && method !== 'HEAD')
      return context.text('A file can only be read.\n', 405, { allow: 'GET, HEAD' });
    const linkedFile = findLinkOrigin(context) && (await findLinkedFile(link, name));
    if (!linkedFile) return context.text('There is no such file.\n', 404);
    if (linkedFile === 'ended') return context.text(linkEndedText, 410);
    const { file, tenantId } = linkedFile;
    if (method === 'HEAD') {
      setFileHeaders(context, file);
      return context.body(null);
    }
    const { outgoing } = context.env as HttpBindings;
    const content = await fileReader.read({ link, tenantId, file, outgoing: outgoing as ServerResponse });
    setFileHeaders(context, file);
    return context.body(content as Uint8Array<ArrayBuffer>);
  };
  return async (context, next) => {
    for (const [name, value] of Object.entries(securityHeaders)) context.header(name, value);
    return Promise.resolve(serveRequest(context, next)).catch((error) => {
      if (!(error instanceof AdLibraryError)) throw error;
      if (error.failure.kind === 'not_found') return context.text(linkEndedText, 410);
      return context.text('Try again later.\n', 503, { 'retry-after': '5' });
    });
  };
}

function setFileHeaders(context: Context, file: ExportedFile): void {
  const { mimeType, bytes, name } = file;
  context.header('content-type', mimeType.startsWith('text/') ? `${mimeType}; charset=utf-8` : mimeType);
  context.header('content-length', String(bytes));
  if (mimeType === 'text/html') context.header('content-security-policy', reportPolicy);
  else context.header('content-disposition', `attachment; filename="${name}"`);
}

const linkEndedText = 'This link has ended. Ask for the file again: that is free.\n';

interface DownloadLimits {
  /**
   * The maximum number of clients that may download the same file at the same time. Without this limit, the downloads
   * of one popular file could use up all connections of the server.
   */
  maxResponsesPerLink: number;
  /** The maximum number of large files (over 256 KB) in memory at the same time. */
  maxLargeFiles: number;
  /**
   * How long a request for a large file may wait until fewer than `maxLargeFiles` files are in memory, in milliseconds.
   */
  maxWaitMs: number;
  /** How long a client may take to download a large file if other large files wait for memory, in milliseconds. */
  maxDownloadMs: number;
}

const defaultLimits: DownloadLimits = {
  maxResponsesPerLink: 64,
  maxLargeFiles: 8,
  maxWaitMs: 15_000,
  maxDownloadMs: 10_000,
};

/**
 * The size in bytes above which a file counts as large. Only a limited number of large files may be in memory. A file
 * has at most 16 MB.
 */
const largeFileThresholdBytes = 256 * 1024;

/** A file in memory. All clients that are downloading the file share this copy. */
interface OpenFile {
  /** The responses that are currently sending this file to clients. */
  responses: Set<ServerResponse>;
  content: Promise<Uint8Array>;
  /**
   * Called when no client is downloading the file any more. Releases the memory slot of the file, so that another large
   * file can be read.
   */
  close(): void;
}

interface FileRequest {
  link: string;
  tenantId: string;
  file: ExportedFile;
  outgoing: ServerResponse;
}

/**
 * Creates a reader of linked files. All downloads of a link share one copy of the file in memory and one slot, so a
 * popular link does not delay other files. If all slots are taken and other files are waiting, clients that download a
 * large file too slowly are disconnected.
 */
function createFileReader(downloadLimits?: Partial<DownloadLimits>) {
  const { maxResponsesPerLink, maxLargeFiles, maxWaitMs, maxDownloadMs } = { ...defaultLimits, ...downloadLimits };
  const slots = new Semaphore({ maxRunningCalls: maxLargeFiles, workName: 'files' });
  const openFiles = new Map<string, OpenFile>();

  const openFile = ({ tenantId, file }: FileRequest): OpenFile => {
    let close = () => {};
    const fileClosed = new Promise<void>((resolve) => {
      close = resolve;
    });
    const responses = new Set<ServerResponse>();
    const readLargeFile = async () => {
      const releaseSlot = await slots.acquire(tenantId, AbortSignal.timeout(maxWaitMs));
      const slowClientTimer = setInterval(() => {
        if (slots.waitingCount > 0) for (const response of responses) response.destroy();
      }, maxDownloadMs);
      void fileClosed.then(() => {
        clearInterval(slowClientTimer);
        releaseSlot();
      });
      return file.readContent();
    };
    return { responses, content: file.bytes > largeFileThresholdBytes ? readLargeFile() : file.readContent(), close };
  };

  return {
    /**
     * Returns the content of a file.
     * @throws AdLibraryError `busy` if too many clients are downloading this link, or if too many other large files
     * stay in memory
     */
    async read(fileRequest: FileRequest): Promise<Uint8Array> {
      const { link, outgoing } = fileRequest;
      const sharedFile = openFiles.get(link) ?? openFile(fileRequest);
      const { responses, content, close } = sharedFile;
      if (responses.size >= maxResponsesPerLink) throw createTooManyDownloadsError();
      openFiles.set(link, sharedFile);
      responses.add(outgoing);
      const removeDownload = () => {
        responses.delete(outgoing);
        if (responses.size > 0) return;
        if (openFiles.get(link) === sharedFile) openFiles.delete(link);
        close();
      };
      outgoing.once('close', removeDownload);
      if (outgoing.closed) removeDownload();
      return content;
    },
  };
}

const createTooManyDownloadsError = () =>
  new AdLibraryError({ kind: 'busy', problem: 'Too many clients are reading this file.', wasSent: false });
