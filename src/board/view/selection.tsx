import { useEffect, useRef, useState } from 'preact/hooks';
import { joinWithAnd } from '../../ui/formats.ts';
import { isWord } from '../../views/safe-text.ts';
import { messageOf } from './finding.ts';
import { Modal } from './modal.tsx';
import { isGrouped, problemOf, type View } from './state.ts';

interface ActionsProps {
  view: View;
  ids: readonly string[];
  /** What the conversation is asked to do where a reader asks nothing else. */
  opening?: string;
}

/** What can be done with some ads: a question about them, where the host takes one, and saving, where the server does. */
export function Actions({ view, ids, opening = 'Tell me about' }: ActionsProps) {
  const question = useRef<HTMLInputElement>(null);
  const [isBusy, setBusy] = useState(false);
  const isSending = useRef(false);
  const ask = async () => {
    if (isSending.current) return;
    isSending.current = true;
    setBusy(true);
    const words = question.current?.value.trim() ?? '';
    if ((await askAbout(view, ids, { words, opening })) && question.current) question.current.value = '';
    isSending.current = false;
    setBusy(false);
  };
  // A form would not be sent: hosts allow none in the frame.
  const onKeyDown = (event: KeyboardEvent) => {
    event.stopPropagation();
    if (event.key === 'Enter' && !event.isComposing) void ask();
  };
  const canSave = ['list_collections', 'add_collection_item'].every((tool) => view.state.offered.includes(tool));
  return (
    <div class="actions">
      {view.can('message') && (
        <>
          <input
            class="question"
            aria-label="Your question"
            placeholder="Ask …"
            maxLength={2000}
            ref={question}
            onKeyDown={onKeyDown}
          />
          <button type="button" class="primary" disabled={isBusy} onClick={() => void ask()}>
            Ask
          </button>
        </>
      )}
      {canSave && (
        <button type="button" onClick={() => view.update({ saving: ids })}>
          Save …
        </button>
      )}
    </div>
  );
}

const block = (text: string) => [{ type: 'text', text }];

/** Writes into the conversation, and shows on the board whether the host took the message. */
async function write(view: View, text: string, done: string): Promise<boolean> {
  try {
    const { isError } = await view.host.request('ui/message', { role: 'user', content: block(text) });
    if (isError === true) throw new Error('The host refused.');
    view.update({ status: done });
    return true;
  } catch (error) {
    view.update({ status: `The conversation did not take the message: ${problemOf(error)}` });
    return false;
  }
}

const numbers = new Intl.Collator('en', { numeric: true });

const adOf = (view: View, id: string) => view.state.ads.find((ad) => ad.id === id) ?? { id };

const adsText = (view: View, ids: readonly string[]): string => {
  const named = ids.map((id) => view.numberOf(adOf(view, id))).sort(numbers.compare);
  return `${ids.length === 1 ? 'ad' : 'ads'} ${joinWithAnd(named)}`;
};

/** Which ad a number stands for: an id that holds no sentence, and nothing that an advertiser wrote. */
function idText(view: View, id: string): string {
  const ad = adOf(view, id);
  const message = messageOf(ad);
  const others = view.state.ads.filter((ad) => messageOf(ad) === message).length;
  const isOne = !isGrouped(view.state) || others < 2 || !isWord(message);
  return `ad ${view.numberOf(ad)} is ${id}${isOne ? '' : `, one of ${others} ads of variant ${message}`}`;
}

/** The model gets the ids beside the conversation where the host can do that, and else in the message. */
async function askAbout(
  view: View,
  all: readonly string[],
  { words, opening }: { words: string; opening: string },
): Promise<boolean> {
  const { formatCount, formatNumber } = view.state.formats;
  const ids = all.filter(isWord);
  if (ids.length === 0) {
    view.update({ status: 'The conversation does not take the ids of these ads.' });
    return false;
  }
  const about = `${adsText(view, ids)} of the board.`;
  view.update({ sent: [...new Set([...view.state.sent, ...ids])] });
  const isKnown = await tellModel(view);
  const question = words === '' ? `${opening} ${about}` : `${words}\n\nThis is about ${about}`;
  const text = isKnown ? question : `${question} Ids: ${ids.map((id) => idText(view, id)).join('; ')}.`;
  const without =
    ids.length === all.length ? '' : `, without ${formatNumber(all.length - ids.length)} whose ids it does not take`;
  return write(view, text, `${formatCount(ids.length, 'ad')} handed to the conversation${without}.`);
}

/** The call is repeated in the conversation, where the model reads the answer and the person agrees to the price. */
export const askToTryAgain = (view: View): Promise<boolean> =>
  write(
    view,
    'The call for these ads failed, as the board says. Please try again, or tell me what has to change first.',
    'The conversation was asked to try again.',
  );

/** Lets the model know, for its next turn, what is selected, and which ads the numbers of messages stand for. */
export async function tellModel(view: View): Promise<boolean> {
  if (!view.can('updateModelContext')) return false;
  const selected = [...view.state.selected].filter(isWord);
  const chosenIds = [...new Set([...view.state.sent, ...selected])].map((id) => idText(view, id));
  const choice = selected.length === 0 ? 'No ad is selected on the board.' : `Selected: ${adsText(view, selected)}.`;
  const text = chosenIds.length === 0 ? choice : `On the board, ${chosenIds.join('; ')}. ${choice}`;
  const silence = new Promise<{ isError: true }>((resolve) => setTimeout(resolve, 3000, { isError: true }));
  try {
    const answer = view.host.request('ui/update-model-context', { content: block(text) });
    return (await Promise.race([answer, silence])).isError !== true;
  } catch {
    return false;
  }
}

/** In milliseconds: saving cannot be taken back once it was sent, so it waits for second thoughts. */
const undoMs = 5000;

type Collection = Awaited<ReturnType<View['server']['collections']>>[number];

/** Asks for a collection, and saves ads to it. Closing the dialog stops what was not sent yet. */
export function Save({ view, ids }: { view: View; ids: readonly string[] }) {
  const { formatCount, formatNumber } = view.state.formats;
  const all = formatCount(ids.length, 'ad');
  const [collections, setCollections] = useState<Collection[]>([]);
  const [message, setMessage] = useState('Reading your collections …');
  const [closing, setClosing] = useState<'Cancel' | 'Undo' | 'Stop' | 'Close'>('Cancel');
  const isClosed = useRef(false);
  const saveNow = useRef(() => {});
  const close = useRef<HTMLButtonElement>(null);

  const read = async () => {
    try {
      const found = await view.server.collections();
      setCollections(found);
      setMessage(found.length === 0 ? 'You have no collection for ads yet.' : '');
    } catch (error) {
      setMessage(problemOf(error));
    }
  };
  useEffect(() => {
    void read();
    return () => {
      isClosed.current = true;
      saveNow.current();
    };
  }, []);
  useEffect(() => {
    if (closing === 'Undo') close.current?.focus();
  }, [closing]);

  const save = async ({ id, name = id }: Collection) => {
    setClosing('Undo');
    setMessage(
      `Saving ${all} to ${name} in five seconds. The board cannot take them out again; the service’s own app can.`,
    );
    await new Promise<void>((resolve) => {
      saveNow.current = resolve;
      setTimeout(resolve, undoMs);
    });
    setClosing('Stop');
    let [added, done] = [0, 0];
    let problem = '';
    try {
      for (const adId of ids) {
        if (isClosed.current) break;
        setMessage(`Saving ${formatNumber(done + 1)} of ${formatNumber(ids.length)} …`);
        if (await view.server.save(id, adId)) added++;
        done++;
      }
    } catch (error) {
      problem = problemOf(error);
    }
    const present = done - added;
    const already = present === 0 ? '' : `, ${present === done ? 'all' : formatNumber(present)} of them there already`;
    const part = done < ids.length ? `${formatNumber(done)} of ` : '';
    const saved = done === 0 ? 'Nothing was saved.' : `${part}${all} saved to ${name}${already}.`;
    const outcome = `${saved} ${problem}`.trim();
    view.update({ status: outcome });
    setMessage(outcome);
    setClosing('Close');
    if (problem === '' && !isClosed.current) close.current?.closest('dialog')?.close();
  };
  return (
    <Modal id="save" onClose={() => view.update({ saving: undefined })}>
      <h2 id="save-title">Save {all} to a collection</h2>
      <p role="status">{message}</p>
      {closing === 'Cancel' && (
        <div class="choices">
          {collections.map((collection) => (
            <button type="button" key={collection.id} dir="auto" onClick={() => void save(collection)}>
              {collection.name ?? collection.id}
              <small>{collection.ads === undefined ? '' : formatCount(collection.ads, 'ad')}</small>
            </button>
          ))}
        </div>
      )}
      <div class="actions">
        <button type="button" ref={close} onClick={({ currentTarget }) => currentTarget.closest('dialog')?.close()}>
          {closing}
        </button>
        {closing === 'Undo' && (
          <button type="button" class="primary" onClick={() => saveNow.current()}>
            Save now
          </button>
        )}
      </div>
    </Modal>
  );
}
