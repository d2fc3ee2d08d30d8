import type { Progress, ReportProgress } from '../tools/tool-context.ts';

/** The params of `notifications/progress`. */
type ProgressParams = Progress & { progressToken: string | number };

/**
 * Reports the progress of a call whose client gave a token. While a notification waits for its reader the next ones are
 * left out, so that a slow reader holds up nothing and nothing piles up.
 */
export function progressReporter(
  progressToken: string | number | undefined,
  notify: (params: ProgressParams) => Promise<void>,
): ReportProgress | undefined {
  if (progressToken === undefined) return undefined;
  let isSending = false;
  let last = -1;
  return (report) => {
    // The protocol wants it to grow with each notification.
    if (isSending || report.progress <= last) return;
    last = report.progress;
    isSending = true;
    // Of a reader that has left, the call learns by its signal.
    const sent = () => {
      isSending = false;
    };
    void notify({ progressToken, ...report }).then(sent, sent);
  };
}
