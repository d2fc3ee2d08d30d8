import { AdLibraryError } from '../api/errors.ts';
import { nextSteps, startOver } from '../dataset/gathering-text.ts';
import type { Stop } from '../dataset/stop.ts';
import type { ToolContext } from './tool-context.ts';

/** Why a gathering stopped, and how to continue. */
export function stopData({ reason, error }: Stop, { explain }: ToolContext) {
  const isRejected = error?.failure.kind === 'invalid_request' || error?.failure.kind === 'not_found';
  const next = isRejected ? startOver : nextSteps[reason];
  const isOurs = reason === 'maxCredits' || reason === 'deadline' || reason === 'shutdown';
  const { kind, text } = error && !isOurs ? explain(error) : { kind: undefined, text: undefined };
  return {
    stopped: reason,
    ...(reason === 'error' && kind && { error: kind }),
    ...(text && { problem: text }),
    ...(next && { next }),
  };
}

export const nothingRead = () =>
  new AdLibraryError({ kind: 'timeout', problem: 'There was no time to read a page.', sent: false });
