import { readFileSync, statSync } from 'node:fs';
import { isIPv4 } from 'node:net';
import * as z from 'zod';
import { SearchFilters } from '../api/search-filters.ts';

/** The types of settings. Their error messages follow the name of the setting. */

const yes = ['true', '1', 'yes', 'on'];
const no = ['false', '0', 'no', 'off'];
export const onOff = z
  .string()
  .toLowerCase()
  .refine((text) => [...yes, ...no].includes(text), 'must be true or false')
  .transform((text) => yes.includes(text));

export const wholeNumber = (min: number, max: number) =>
  z.coerce
    .number(`must be a whole number from ${min} to ${max}`)
    .refine((value) => Number.isInteger(value) && value >= min && value <= max, {
      error: `must be a whole number from ${min} to ${max}`,
    });

/** A list that holds no name is a slip: whoever means none leaves the setting empty. */
export const names = z
  .string()
  .transform((text) =>
    text
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== ''),
  )
  .refine((all) => all.length > 0, 'must hold at least one name, or be left empty');

/** Accepts an IPv6 host in brackets, too, as in an address. */
export const hostName = z.string().transform((text) => text.replace(/^\[(.*)\]$/, '$1'));

/** Host names as they appear in requests, without a port. */
export const hostNames = names.transform((all, context) => {
  const wrong = all.filter((name) => /[/:]/.test(name) && !name.startsWith('['));
  if (wrong.length > 0)
    context.addIssue({
      code: 'custom',
      message: `must contain only host names, without scheme or port: ${wrong.join(', ')}`,
    });
  return all.map((name) => name.toLowerCase());
});

export const isLoopback = (host: string) =>
  ['localhost', '::1', '[::1]'].includes(host) || (host.startsWith('127.') && isIPv4(host));

/** Every request carries the key, so only loopback addresses may be unencrypted. */
const address = z.string().superRefine((text, context) => {
  // The parser would leave out line breaks and tabs, and go to another address than the one that is read.
  const url = !/\s/.test(text) && URL.canParse(text) ? new URL(text) : undefined;
  const problem =
    url === undefined || !/^https?:$/.test(url.protocol)
      ? 'must be an address such as https://api.example.com'
      : url.protocol === 'http:' && !isLoopback(url.hostname)
        ? 'must begin with https:// (http:// is only allowed for this machine)'
        : url.username || url.password || url.search || url.hash
          ? 'must not contain a user, query or fragment'
          : undefined;
  if (problem) context.addIssue({ code: 'custom', message: problem });
});

/** Normalizes an address: `HTTP://LOCALHOST:80/api/` becomes `http://localhost/api`. */
const normalForm = (text: string) => new URL(text).href.replace(/(?<!\/)\/+$/, '');

export const baseUrl = address.transform(normalForm);

const maxFileBytes = 1024 * 1024;
const maxProblems = 5;

function readFilters(file: string): SearchFilters {
  const stats = statSync(file);
  if (!stats.isFile()) throw new Error('it is not a file');
  if (stats.size > maxFileBytes) throw new Error(`it has ${stats.size} bytes, and at most ${maxFileBytes} are allowed`);
  return SearchFilters.parse(JSON.parse(readFileSync(file, 'utf8')));
}

/** The name of a file that describes filter keys; becomes its content. */
export const filtersFile = z.string().transform((file, context) => {
  try {
    return readFilters(file);
  } catch (error) {
    const problem =
      error instanceof z.ZodError
        ? z.prettifyError(new z.ZodError(error.issues.slice(0, maxProblems)))
        : (error as Error).message;
    context.addIssue({ code: 'custom', message: `names ${file}, which cannot be used: ${problem}` });
    return z.NEVER;
  }
});
