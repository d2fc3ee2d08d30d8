import type { Credentials } from '../api/client.ts';
import { AdLibraryError } from '../api/errors.ts';
import type { ExportedFile, TenantExports } from '../storage/exports.ts';
import { quoteId } from '../views/tokens.ts';
import { skill } from './skill.ts';

export interface ResourceRequest extends Credentials {
  uri: string;
  signal: AbortSignal;
  /** Resolves after the response was written to the client. */
  responseSent?: Promise<void> | undefined;
  /** Creates errors of the classes that the SDK in use expects. The two SDK versions have different classes. */
  errors: Record<'notFound' | 'refused', (problem: string) => Error>;
}

export interface Resource {
  /** True for a large file. To limit memory use, only a few large files are in memory at the same time. */
  isLarge?: boolean;
  readContents(): Promise<ResourceContents>;
}

export type ResourceContents = {
  contents: ({ uri: string; mimeType: string; _meta?: Record<string, unknown> } & (
    | { text: string }
    | { blob: string }
  ))[];
};

export const describeFile = ({ uri, name, mimeType, bytes }: ExportedFile) => ({ uri, name, mimeType, size: bytes });

export function findSkillFile(uri: string): Resource | undefined {
  const text = Object.hasOwn(skill.texts, uri) ? skill.texts[uri] : undefined;
  if (text !== undefined)
    return { readContents: async () => ({ contents: [{ uri, mimeType: 'text/markdown', text }] }) };
}

/**
 * Maximum size of a file that a host can read, in bytes. The host receives the file in one response, which could
 * exhaust its memory.
 */
const maxFileBytes = 16 * 1024 * 1024;
const largeFileBytes = 256 * 1024;

export async function findExport(exports: TenantExports, { uri, errors: { notFound } }: ResourceRequest) {
  const file = await exports.find(uri);
  if (file === undefined) {
    const problem = `There is no resource ${quoteId(uri)}. Exports can be read for an hour, reports for a day; making one again is free.`;
    throw notFound(problem);
  }
  const { name, mimeType, bytes, path } = file;
  const createTooLargeError = (size: number) =>
    notFound(
      `${name} has ${size} bytes, too many to send. ${path ? `It is at ${path}.` : 'Export fewer rows or columns.'}`,
    );
  if (bytes > maxFileBytes) throw createTooLargeError(bytes);
  // In JSON, a quotation mark or a line break takes two bytes. The JSON may therefore be twice as large as the file.
  const maxJsonBytes = 2 * bytes;
  return {
    isLarge: bytes > largeFileBytes,
    async readContents() {
      const fileBytes = await file.readContent().catch((error) => {
        throw error instanceof AdLibraryError ? notFound(error.message) : error;
      });
      const content = Buffer.from(fileBytes);
      if (!textTypePattern.test(mimeType)) return { contents: [{ uri, mimeType, blob: content.toString('base64') }] };
      // Building the JSON needs several times as much memory, so check the size first.
      const jsonBytes = countBytesInJson(content);
      if (jsonBytes > maxJsonBytes) throw createTooLargeError(jsonBytes);
      return { contents: [{ uri, mimeType, text: content.toString() }] };
    },
  };
}

/** Matches the media types that are sent as text. All other files are sent as base64. */
const textTypePattern = /^text\/|jsonl$/;

function countBytesInJson(content: Uint8Array): number {
  let bytes = content.length;
  for (const byte of content) {
    if (byte === quotationMark || byte === backslash || (byte >= backspace && byte <= carriageReturn)) bytes++;
    else if (byte < space) bytes += 5;
  }
  return bytes;
}

const [backspace, carriageReturn, space, quotationMark, backslash] = [0x08, 0x0d, 0x20, 0x22, 0x5c];
