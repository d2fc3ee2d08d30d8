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

/**
 * Loads the full data of ads into `board.fullAds`. Renders nothing unless loading fails. After a failure, renders the
 * error and a retry button.
 */
export function FullAdLoader({ board, ids }: { board: BoardController; ids: readonly string[] }) {
  const [problem, setProblem] = useState<string>();
  const idsToLoad = ids.filter((id) => !board.fullAds.has(id));
  const readFullAds = async () => {
    if (idsToLoad.length === 0) return;
    setProblem(undefined);
    try {
      const { ads } = await board.serverTools.readFullAds(idsToLoad);
      for (const ad of ads) board.fullAds.set(ad.id, ad);
      board.updateState({});
    } catch (error) {
      setProblem(`The other details could not be read. ${getErrorText(error)}`);
    }
  };
  useEffect(() => void readFullAds(), [ids.join()]);
  return problem === undefined || idsToLoad.length === 0 ? null : (
    <div class="problem" role="alert">
      <p dir="auto">{problem}</p>
      <button type="button" onClick={() => void readFullAds()}>
        Try again
      </button>
    </div>
  );
}
