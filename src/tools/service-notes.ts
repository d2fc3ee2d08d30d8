import { quote } from '../present/fence.ts';
import { cut } from '../present/fit.ts';
import { sanitizeLine } from '../present/text.ts';

const MAX_NOTES = 5;
const NOTE_TOKENS = 120;
/** In characters; the rest is not even read. */
const MAX_NOTE = 2000;

/**
 * What a service says about its list in `notes`, as the local library does. Third-party text, made safe and bounded. A
 * page that goes on after a cut does not repeat it.
 */
export function serviceNotes(raw: unknown): { notes?: string[] } {
  const { notes } = raw as { notes?: unknown };
  if (!Array.isArray(notes)) return {};
  const read = notes
    .slice(0, MAX_NOTES)
    .filter((note) => typeof note === 'string')
    .map((note) => cut(sanitizeLine(note.slice(0, MAX_NOTE)), NOTE_TOKENS, Math.max(0, note.length - MAX_NOTE)))
    .filter((note) => note !== '');
  return read.length > 0 ? { notes: read } : {};
}

/** Lines that stand before the list, because they say how its numbers are to be read. */
export const notesText = ({ notes = [] }: { notes?: readonly string[] }): string[] =>
  notes.map((note) => `The service notes: ${quote(note)}`);
