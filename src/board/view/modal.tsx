import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { type BoardController, getErrorText } from './state.ts';

interface ModalProps {
  id: string;
  onClose(): void;
  onKeyDown?(key: string): void;
  /**
   * The content of the dialog. It must contain a heading with the id `<id>-title`, from which screen readers take the
   * name of the dialog.
   */
  children: ComponentChildren;
}

/** A modal dialog above the board. When the dialog closes, the browser returns the focus to the board. */
export function Modal({ id, onClose, onKeyDown, children }: ModalProps) {
  const dialogRef = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const dialogElement = dialogRef.current;
    dialogElement?.showModal();
    // A click outside the dialog has the `dialog` element itself as its target. Close the dialog after such a click.
    dialogElement?.addEventListener('click', ({ target }) => target === dialogElement && dialogElement.close());
  }, []);
  return (
    <dialog
      id={id}
      aria-labelledby={`${id}-title`}
      ref={dialogRef}
      onClose={onClose}
      onKeyDown={(event) => onKeyDown?.(event.key)}
    >
      {children}
    </dialog>
  );
}

/** A button that closes the dialog that contains it. */
export const CloseButton = () => (
  <button
    type="button"
    class="icon close"
    aria-label="Close"
    onClick={({ currentTarget }) => currentTarget.closest('dialog')?.close()}
  >
    ×
  </button>
);

interface FullAdLoaderProps {
  board: BoardController;
  /** The ids of the ads that the dialog shows. */
  ids: readonly string[];
  /** The ids of ads that the dialog may show next. */
  idsToPreload?: readonly string[];
}

/**
 * Loads the full data of ads into `board.fullAds`. Renders nothing unless loading fails or the server no longer stores
 * one of the shown ads. Then renders the problem and a retry button.
 */
export function FullAdLoader({ board, ids, idsToPreload = [] }: FullAdLoaderProps) {
  const [problem, setProblem] = useState<string>();
  const isMissing = (id: string) => !board.fullAds.has(id);
  const readFullAds = async () => {
    const idsToLoad = [...ids, ...idsToPreload].filter(isMissing);
    if (idsToLoad.length === 0) return;
    setProblem(undefined);
    try {
      const { ads, left } = await board.toolClient.readFullAds(idsToLoad);
      for (const ad of ads) board.fullAds.set(ad.id, ad);
      if (ids.some((id) => isMissing(id) && !left.includes(id))) setProblem(removedAdsText);
      board.updateState({});
    } catch (error) {
      setProblem(`The other details could not be read. ${getErrorText(error)}`);
    }
  };
  useEffect(() => void readFullAds(), [[...ids, ...idsToPreload].join()]);
  return problem === undefined || !ids.some(isMissing) ? null : (
    <div class="problem" role="alert">
      <p dir="auto">{problem}</p>
      <button type="button" onClick={() => void readFullAds()}>
        Try again
      </button>
    </div>
  );
}

const removedAdsText =
  'The server no longer stores the other details, such as the full text. Ask your assistant to read the ads again.';
