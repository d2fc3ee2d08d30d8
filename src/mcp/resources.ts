import { AdLibraryError } from '../api/errors.ts';
import type { ExportedFile, Exports } from '../state/exports.ts';
import { untrustedWord } from './untrusted-text.ts';

/** A resource in `resources/list` (MCP specification, *Resources*). */
export interface ListedResource {
  uri: string;
  name: string;
  mimeType: string;
  size?: number;
  [other: string]: unknown;
}

export type ResourceContents = {
  contents: { uri: string; mimeType: string; text: string; _meta?: Record<string, unknown> }[];
};

/** Larger files would choke a host, which asks for the whole of them. */
const maxBytes = 16 * 1024 * 1024;

export const listResources = async (exports: Exports): Promise<ListedResource[]> =>
  (await exports.list()).map(({ uri, name, mimeType, bytes }) => ({ uri, name, mimeType, size: bytes }));

/** Reads a resource; throws what `notFound` makes of a problem, because the two SDKs have different error classes. */
export async function readResource(
  exports: Exports,
  uri: string,
  notFound: (problem: string) => Error,
): Promise<ResourceContents> {
  const file = await exports.find(uri);
  if (file === undefined)
    throw notFound(
      `There is no resource ${untrustedWord(uri)}. Exports can be read for an hour; export_ads makes a new one.`,
    );
  if (file.bytes > maxBytes) throw notFound(`${file.name} has ${file.bytes} bytes, too many to send. ${whereOf(file)}`);
  const content = await file.content().catch((error) => {
    throw error instanceof AdLibraryError ? notFound(error.message) : error;
  });
  const text = Buffer.from(content).toString();
  return { contents: [{ uri: file.uri, mimeType: file.mimeType, text }] };
}

const whereOf = ({ path }: ExportedFile) =>
  path === undefined ? 'Export fewer rows or columns.' : `It lies in ${path}.`;
