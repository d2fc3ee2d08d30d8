import { useEffect, useRef, useState } from 'preact/hooks';
import { isWord, joinNames } from '../../views/safe-text.ts';
import { getVariantId } from './finding.ts';
import { Modal } from './modal.tsx';
import { areVariantsGrouped, type BoardController, getErrorText } from './state.ts';

interface AdActionsProps {
  board: BoardController;
  ids: readonly string[];
  /**
   * The first words of the message to the conversation if the user enters no question. The default is `Tell me about`.
   */
  defaultRequest?: string;
}

/**
 * The actions for a set of ads: *Ask*, if the host accepts messages from the board, and *Save*, if the server offers
 * the required tools.
 */
export function AdActions({ board, ids, defaultRequest = 'Tell me about' }: AdActionsProps) {
  const questionInputRef = useRef<HTMLInputElement>(null);
  const [isBusy, setBusy] = useState(false);
  const isSendingRef = useRef(false);
  const askQuestion = async () => {
    if (isSendingRef.current) return;
    isSendingRef.current = true;
    setBusy(true);
    const question = questionInputRef.current?.value.trim() ?? '';
    if ((await sendQuestion(board, ids, { question, defaultRequest })) && questionInputRef.current)
      questionInputRef.current.value = '';
    isSendingRef.current = false;
    setBusy(false);
  };
  // Hosts do not let embedded pages submit forms, so handle the Enter key here.
  const onKeyDown = (event: KeyboardEvent) => {
    event.stopPropagation();
    if (event.key === 'Enter' && !event.isComposing) void askQuestion();
  };
  const canSave = ['list_collections', 'add_collection_item'].every((tool) => board.state.offeredTools.includes(tool));
  return (
    <div class="actions">
      {board.hasCapability('message') && (
        <>
          <input
            class="question"
            aria-label="Your question"
            placeholder="Ask …"
            maxLength={2000}
            ref={questionInputRef}
            onKeyDown={onKeyDown}
          />
          <button type="button" class="primary" disabled={isBusy} onClick={() => void askQuestion()}>
            Ask
          </button>
        </>
      )}
      {canSave && (
        <button type="button" onClick={() => board.updateState({ idsToSave: ids })}>
          Save …
        </button>
      )}
    </div>
  );
}

const buildTextContent = (text: string) => [{ type: 'text', text }];

/**
 * Sends a message to the conversation, as if the user had typed it. The status line of the board then shows whether the
 * host accepted the message.
 */
async function sendChatMessage(board: BoardController, messageText: string, successStatus: string): Promise<boolean> {
  try {
    const { isError } = await board.host.request('ui/message', {
      role: 'user',
      content: buildTextContent(messageText),
    });
    if (isError === true) throw new Error('The host refused.');
    board.updateState({ statusText: successStatus });
    return true;
  } catch (error) {
    board.updateState({ statusText: `The conversation did not take the message: ${getErrorText(error)}` });
    return false;
  }
}

const numberCollator = new Intl.Collator('en', { numeric: true });

/** Returns an ad of the board, or an object that contains only the id if the board does not have the ad. */
const getAdById = (board: BoardController, id: string) => board.state.ads.find((ad) => ad.id === id) ?? { id };

/** Formats the numbers by which the board identifies ads, e.g. `ads 1, 2 and 4`. */
const formatAdNumbers = (board: BoardController, ids: readonly string[]): string => {
  const numbers = ids.map((id) => board.getAdNumber(getAdById(board, id))).sort(numberCollator.compare);
  return `${ids.length === 1 ? 'ad' : 'ads'} ${joinNames(numbers)}`;
};

/**
 * Describes an ad for the model by its number on the board and its id. If the ad shares a card with other ads, the
 * description also states the id of their variant (a group of ads with nearly the same text). The description contains
 * no text from advertisers, because such text could manipulate the model.
 */
function describeAdById(board: BoardController, id: string): string {
  const ad = getAdById(board, id);
  const variantId = getVariantId(ad);
  const variantAdCount = board.state.ads.filter((ad) => getVariantId(ad) === variantId).length;
  const isVariantOmitted = !areVariantsGrouped(board.state) || variantAdCount < 2 || !isWord(variantId);
  return `ad ${board.getAdNumber(ad)} is ${id}${isVariantOmitted ? '' : `, one of ${variantAdCount} ads of variant ${variantId}`}`;
}

/**
 * Sends the user's question about ads to the conversation. The message contains the ad ids only if the host does not
 * let the board add them to the model's context.
 */
async function sendQuestion(
  board: BoardController,
  allIds: readonly string[],
  { question, defaultRequest }: { question: string; defaultRequest: string },
): Promise<boolean> {
  const { formatCount, formatNumber } = board.state.formatters;
  const ids = allIds.filter(isWord);
  if (ids.length === 0) {
    board.updateState({ statusText: 'The conversation does not take the ids of these ads.' });
    return false;
  }
  const subjectText = `${formatAdNumbers(board, ids)} of the board.`;
  board.updateState({ idsAskedAbout: [...new Set([...board.state.idsAskedAbout, ...ids])] });
  const isContextUpdated = await updateModelContext(board);
  const request = question === '' ? `${defaultRequest} ${subjectText}` : `${question}\n\nThis is about ${subjectText}`;
  const text = isContextUpdated ? request : `${request} Ids: ${ids.map((id) => describeAdById(board, id)).join('; ')}.`;
  const omittedText =
    ids.length === allIds.length
      ? ''
      : `, without ${formatNumber(allIds.length - ids.length)} whose ids it does not take`;
  return sendChatMessage(board, text, `${formatCount(ids.length, 'ad')} handed to the conversation${omittedText}.`);
}

/**
 * Asks the model to repeat the failed call. The board does not repeat the call itself, so that the model sees the
 * result and the user can approve the price in the conversation.
 */
export const askToRetry = (board: BoardController): Promise<boolean> =>
  sendChatMessage(
    board,
    'The call for these ads failed, as the board says. Please try again, or tell me what has to change first.',
    'The conversation was asked to try again.',
  );

/**
 * Tells the model which ads the user has selected on the board, and which ids belong to the ad numbers in earlier
 * messages.
 * @returns false if the host does not support such an update, refuses it, or does not respond within three seconds
 */
export async function updateModelContext(board: BoardController): Promise<boolean> {
  if (!board.hasCapability('updateModelContext')) return false;
  const selectedIds = [...board.state.selectedIds].filter(isWord);
  const descriptions = [...new Set([...board.state.idsAskedAbout, ...selectedIds])].map((id) =>
    describeAdById(board, id),
  );
  const selectionText =
    selectedIds.length === 0 ? 'No ad is selected on the board.' : `Selected: ${formatAdNumbers(board, selectedIds)}.`;
  const text = descriptions.length === 0 ? selectionText : `On the board, ${descriptions.join('; ')}. ${selectionText}`;
  const timeout = new Promise<{ isError: true }>((resolve) => setTimeout(resolve, 3000, { isError: true }));
  try {
    const response = board.host.request('ui/update-model-context', { content: buildTextContent(text) });
    return (await Promise.race([response, timeout])).isError !== true;
  } catch {
    return false;
  }
}

/**
 * The time in milliseconds during which the user can undo a save. The board sends the ads to the server only after this
 * time, because it cannot remove an ad from a collection.
 */
const undoPeriodMs = 5000;

type CollectionChoice = Awaited<ReturnType<BoardController['toolClient']['listCollections']>>[number];

/**
 * The dialog that saves ads to a collection. If the user closes the dialog, ads that the board has not sent yet are not
 * saved.
 */
export function SaveDialog({ board, ids }: { board: BoardController; ids: readonly string[] }) {
  const { formatCount, formatNumber } = board.state.formatters;
  const adsText = formatCount(ids.length, 'ad');
  const [collections, setCollections] = useState<CollectionChoice[]>([]);
  const [message, setMessage] = useState('Reading your collections …');
  const [closeLabel, setCloseLabel] = useState<'Cancel' | 'Undo' | 'Stop' | 'Close'>('Cancel');
  const isClosedRef = useRef(false);
  const endUndoPeriodRef = useRef(() => {});
  const closeButtonRef = useRef<HTMLButtonElement>(null);

  const readCollections = async () => {
    try {
      const collections = await board.toolClient.listCollections();
      setCollections(collections);
      setMessage(collections.length === 0 ? 'You have no collection for ads yet.' : '');
    } catch (error) {
      setMessage(getErrorText(error));
    }
  };
  useEffect(() => {
    void readCollections();
    return () => {
      isClosedRef.current = true;
      endUndoPeriodRef.current();
    };
  }, []);
  useEffect(() => {
    if (closeLabel === 'Undo') closeButtonRef.current?.focus();
  }, [closeLabel]);

  const saveAds = async ({ id, name = id }: CollectionChoice) => {
    setCloseLabel('Undo');
    setMessage(
      `Saving ${adsText} to ${name} in five seconds. The board cannot take them out again; the service’s own app can.`,
    );
    await new Promise<void>((resolve) => {
      endUndoPeriodRef.current = resolve;
      setTimeout(resolve, undoPeriodMs);
    });
    setCloseLabel('Stop');
    let [addedCount, processedCount] = [0, 0];
    let errorText = '';
    try {
      for (const adId of ids) {
        if (isClosedRef.current) break;
        setMessage(`Saving ${formatNumber(processedCount + 1)} of ${formatNumber(ids.length)} …`);
        if (await board.toolClient.saveAd(id, adId)) addedCount++;
        processedCount++;
      }
    } catch (error) {
      errorText = getErrorText(error);
    }
    const alreadySavedCount = processedCount - addedCount;
    const alreadySavedText =
      alreadySavedCount === 0
        ? ''
        : `, ${alreadySavedCount === processedCount ? 'all' : formatNumber(alreadySavedCount)} of them there already`;
    const countText = processedCount < ids.length ? `${formatNumber(processedCount)} of ` : '';
    const savedText =
      processedCount === 0 ? 'Nothing was saved.' : `${countText}${adsText} saved to ${name}${alreadySavedText}.`;
    const outcome = `${savedText} ${errorText}`.trim();
    board.updateState({ statusText: outcome });
    setMessage(outcome);
    setCloseLabel('Close');
    if (errorText === '' && !isClosedRef.current) closeButtonRef.current?.closest('dialog')?.close();
  };
  return (
    <Modal id="save" onClose={() => board.updateState({ idsToSave: undefined })}>
      <h2 id="save-title">Save {adsText} to a collection</h2>
      <p role="status">{message}</p>
      {closeLabel === 'Cancel' && (
        <div class="choices">
          {collections.map((collection) => (
            <button type="button" key={collection.id} dir="auto" onClick={() => void saveAds(collection)}>
              {collection.name ?? collection.id}
              <small>{collection.ads === undefined ? '' : formatCount(collection.ads, 'ad')}</small>
            </button>
          ))}
        </div>
      )}
      <div class="actions">
        <button
          type="button"
          ref={closeButtonRef}
          onClick={({ currentTarget }) => currentTarget.closest('dialog')?.close()}
        >
          {closeLabel}
        </button>
        {closeLabel === 'Undo' && (
          // This button can appear under the pointer. Ignore the second click of a double click on a collection.
          <button type="button" class="primary" onClick={({ detail }) => detail < 2 && endUndoPeriodRef.current()}>
            Save now
          </button>
        )}
      </div>
    </Modal>
  );
}
