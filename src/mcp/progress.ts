import type { Progress, ReportProgress } from '../tools/tool-context.ts';

/** The params of `notifications/progress`. */
type ProgressParams = Progress & { progressToken: string | number };

export interface ProgressReporter {
  report: ReportProgress;
  /** To be called before the call is answered: from then on the protocol allows no report. */
  end(): void;
}

/**
 * Reports the progress of a call whose client gave a token. While a notification waits for its reader only the newest
 * report is kept, so that a slow reader holds up nothing and nothing piles up.
 */
export function progressReporter(
  progressToken: string | number | undefined,
  notify: (params: ProgressParams) => Promise<void>,
): ProgressReporter | undefined {
  if (progressToken === undefined) return undefined;
  let isSending = false;
  let waiting: Progress | undefined;
  let last = -1;
  const sendNext = () => {
    isSending = waiting !== undefined;
    if (waiting === undefined) return;
    const sent = notify({ progressToken, ...waiting });
    waiting = undefined;
    // Of a reader that has left, the call learns by its signal.
    void sent.then(sendNext, sendNext);
  };
  return {
    report: (progress) => {
      // The protocol wants it to grow with each notification.
      if (progress.progress <= last) return;
      last = progress.progress;
      waiting = progress;
      if (!isSending) sendNext();
    },
    end: () => {
      waiting = undefined;
    },
  };
}
