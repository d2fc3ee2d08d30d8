import type { Credentials } from '../api/client.ts';
import { AdLibraryError } from '../api/errors.ts';
import type { ExportedFile, TenantExports } from '../storage/exports.ts';
import { quoteId } from '../views/tokens.ts';
import { skill } from './skill.ts';

/** A request to read a resource, with the API key of its caller. */
export interface ResourceRequest extends Credentials {
  uri: string;
  signal: AbortSignal;
  /** Resolves when the response to this request has been written to the client. */
  responseSent?: Promise<void> | undefined;
  /**
   * Functions that create errors of the classes that the current MCP SDK expects. The server supports two SDK versions
   * with different error classes.
   */
  errorFactories: Record<'notFound' | 'refused', (problem: string) => Error>;
}

/** A resource that can be read. */
export interface Resource {
  /** True for a large file. The server limits the number of large files that are in memory at the same time. */
  isLarge?: boolean;
  readContents(): Promise<ResourceContents>;
}

/** The contents of a resource, as `resources/read` returns them. */
export type ResourceContents = {
  contents: ({ uri: string; mimeType: string; _meta?: Record<string, unknown> } & (
    | { text: string }
    | { blob: string }
  ))[];
};

/** Converts an exported file to the form in which `resources/list` lists the file. */
export const describeFile = ({ uri, name, mimeType, bytes }: ExportedFile) => ({ uri, name, mimeType, size: bytes });

/** Returns the file of the skill (instructions for models) with the given URI, or undefined. */
export function findSkillFile(uri: string): Resource | undefined {
  const text = Object.hasOwn(skill.texts, uri) ? skill.texts[uri] : undefined;
  if (text !== undefined)
    return { readContents: async () => ({ contents: [{ uri, mimeType: 'text/markdown', text }] }) };
}

/**
 * The maximum size, in bytes, of a file that a host can read. The host receives the whole file in one response, so a
 * larger file could exhaust the host's memory.
 */
const maxFileBytes = 16 * 1024 * 1024;
const largeFileBytes = 256 * 1024;

/**
 * Finds an exported file of the caller.
 * @throws the error that `notFound` creates if there is no such file, or if the file is too large to send
 */
export async function findExport(exports: TenantExports, { uri, apiKey, errorFactories }: ResourceRequest) {
  const { notFound, refused } = errorFactories;
  const file = await exports.find(uri);
  if (file === undefined) {
    // The error about a missing resource would repeat the URI, and with it the key.
    if (apiKey && uri.includes(apiKey)) throw refused('A URI must not contain the API key.');
    const problem = `There is no resource ${quoteId(uri)}. Exports can be read for an hour, reports for a day; making one again is free.`;
    throw notFound(problem);
  }
  const { name, mimeType, bytes, path } = file;
  const createTooLargeError = (size: number) =>
    notFound(
      `${name} has ${size} bytes, too many to send. ${path ? `It is at ${path}.` : 'Export fewer rows or columns.'}`,
    );
  if (bytes > maxFileBytes) throw createTooLargeError(bytes);
  // Allow the JSON to be twice as large as the file, because a quotation mark or a line break takes two bytes in JSON.
  const maxJsonBytes = 2 * bytes;
  return {
    isLarge: bytes > largeFileBytes,
    async readContents() {
      const fileBytes = await file.readContent().catch((error) => {
        throw error instanceof AdLibraryError ? notFound(error.message) : error;
      });
      const content = Buffer.from(fileBytes);
      if (!textTypePattern.test(mimeType)) return { contents: [{ uri, mimeType, blob: content.toString('base64') }] };
      // Check the size of the JSON before building it, because building it needs several times as much memory.
      const jsonBytes = countBytesInJson(content);
      if (jsonBytes > maxJsonBytes) throw createTooLargeError(jsonBytes);
      return { contents: [{ uri, mimeType, text: content.toString() }] };
    },
  };
}

/** Matches the media types of files that are sent as text. All other files are sent as base64. */
const textTypePattern = /^text\/|jsonl$/;

function countBytesInJson(content: Uint8Array): number {
  let jsonBytes = content.length;
  for (const byte of content) {
    if (byte === quotationMark || byte === backslash || (byte >= backspace && byte <= carriageReturn)) jsonBytes++;
    else if (byte < space) jsonBytes += 5;
  }
  return jsonBytes;
}

const [backspace, carriageReturn, space, quotationMark, backslash] = [0x08, 0x0d, 0x20, 0x22, 0x5c];
