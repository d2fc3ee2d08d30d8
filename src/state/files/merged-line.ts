import * as z from 'zod';
import { parsedLine } from '../record-lines.ts';

const MergedLine = z.object({ kind: z.literal('merged'), segments: z.array(z.string()) });

/** The first line of a segment that takes the place of others. */
export const mergedLine = (segments: readonly string[]): string => JSON.stringify({ kind: 'merged', segments });

/** The segments whose place it takes, if it is such a line. */
export function mergedSegments(line = ''): string[] | undefined {
  return line.startsWith('{"kind":"merged"') ? parsedLine(MergedLine, line)?.segments : undefined;
}
