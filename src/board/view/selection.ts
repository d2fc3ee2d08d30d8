import { isWord } from '../../present/safe-text.ts';
import { button, byId, el } from './elements.ts';
import { isGrouped, messageOf, problemOf, type View } from './state.ts';
import { count, joined, number } from './words.ts';

/** What can be done with some ads: a question about them, where the host takes one, and saving, where the server does. */
export function actionsOn(view: View, ids: () => string[]): HTMLElement[] {
  const question = el('input', { class: 'question', 'aria-label': 'Your question', placeholder: 'Ask about this …' });
  question.maxLength = 2000;
  const send = button('Ask', () => void ask(), { class: 'primary ask' });
  const ask = async () => {
    if (send.disabled) return;
    send.disabled = true;
    if (await askAbout(view, ids(), question.value.trim())) question.value = '';
    send.disabled = false;
  };
  // A form would not be sent: hosts allow none in the frame.
  question.addEventListener('keydown', (event) => {
    event.stopPropagation();
    if (event.key === 'Enter' && !event.isComposing) void ask();
  });
  return [question, send, button('Save …', () => void openSave(view, ids()), { class: 'save' })];
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

const adsText = (view: View, ids: readonly string[]): string =>
  `${ids.length === 1 ? 'ad' : 'ads'} ${joined(ids.map((id) => view.numberOf(id)).sort((a, b) => a - b))}`;

/** Which ad a number stands for: an id that holds no sentence, and nothing that an advertiser wrote. */
function idText(view: View, id: string): string {
  const ad = view.state.ads.find((ad) => ad.id === id);
  const message = ad && messageOf(ad);
  const others = view.state.ads.filter((ad) => messageOf(ad) === message).length;
  const isOne = !isGrouped(view.state) || others < 2 || message === undefined || !isWord(message);
  return `ad ${view.numberOf(id)} is ${id}${isOne ? '' : `, one of ${number(others)} ads of variant ${message}`}`;
}

/**
 * Asks the conversation about ads by their numbers on the board: what a reader wrote, and our own words. The model gets
 * the ids beside the conversation where the host can do that, and else in the message.
 */
async function askAbout(view: View, all: readonly string[], question: string): Promise<boolean> {
  const ids = all.filter(isWord);
  if (ids.length === 0) {
    view.update({ status: 'The conversation does not take the ids of these ads.' });
    return false;
  }
  const about = `${adsText(view, ids)} of the board.`;
  view.update({ sent: [...new Set([...view.state.sent, ...ids])] });
  const isKnown = await tellModel(view);
  const words = question === '' ? `Tell me about ${about}` : `${question}\n\nThis is about ${about}`;
  const text = isKnown ? words : `${words} Ids: ${ids.map((id) => idText(view, id)).join('; ')}.`;
  const without =
    ids.length === all.length ? '' : `, without ${number(all.length - ids.length)} whose ids it does not take`;
  return write(view, text, `${count(ids.length, 'ad')} handed to the conversation${without}.`);
}

/**
 * Asks the conversation to repeat a call that failed: the model reads the answer, and the person agrees to the price
 * there.
 */
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
  const known = [...new Set([...view.state.sent, ...selected])].map((id) => idText(view, id));
  const choice = selected.length === 0 ? 'No ad is selected on the board.' : `Selected: ${adsText(view, selected)}.`;
  const text = known.length === 0 ? choice : `On the board, ${known.join('; ')}. ${choice}`;
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

/** Asks for a collection, and saves ads to it. Closing the dialog stops what was not sent yet. */
async function openSave(view: View, ids: readonly string[]): Promise<void> {
  const dialog = byId<HTMLDialogElement>('save');
  const message = el('p', { role: 'status' }, 'Reading your collections …');
  const close = button('Cancel', () => dialog.close());
  const title = el('h2', { id: 'save-title' }, `Save ${count(ids.length, 'ad')} to a collection`);
  const choices = el('div', { class: 'choices' });
  const actions = el('div', { class: 'actions' }, close);
  dialog.replaceChildren(title, message, choices, actions);
  dialog.showModal();
  const closed = new Promise((resolve) => dialog.addEventListener('close', resolve, { once: true }));
  let isClosed = false;
  void closed.then(() => (isClosed = true));

  const save = async (collectionId: string, name: string) => {
    const now = button('Save now', () => {}, { class: 'primary' });
    const click = new Promise((resolve) => now.addEventListener('click', resolve));
    const wait = new Promise((resolve) => setTimeout(resolve, undoMs));
    message.textContent = `Saving ${count(ids.length, 'ad')} to ${name} in five seconds. The board cannot take them out again; the service’s own app can.`;
    close.textContent = 'Undo';
    choices.replaceChildren();
    actions.append(now);
    close.focus();
    await Promise.race([wait, click, closed]);
    now.remove();
    close.textContent = 'Stop';
    let [added, done] = [0, 0];
    let problem = '';
    try {
      for (const id of ids) {
        if (isClosed) break;
        message.textContent = `Saving ${number(done + 1)} of ${number(ids.length)} …`;
        if (await view.server.save(collectionId, id)) added++;
        done++;
      }
    } catch (error) {
      problem = problemOf(error);
    }
    const known = done - added;
    const already = known === 0 ? '' : `, ${known === done ? 'all' : number(known)} of them there already`;
    const part = done < ids.length ? `${number(done)} of ` : '';
    const saved = `${part}${count(ids.length, 'ad')} saved to ${name}${already}.`;
    message.textContent = `${done === 0 ? 'Nothing was saved.' : saved} ${problem}`.trim();
    view.update({ status: message.textContent });
    close.textContent = 'Close';
    // Another drawer or dialog may be open by now.
    if (problem === '' && !isClosed) dialog.close();
  };
  try {
    const collections = await view.server.collections();
    message.textContent = collections.length === 0 ? 'You have no collection for ads yet.' : '';
    for (const { id, name = id, ads } of collections) {
      const choice = button('', () => void save(id, name), { dir: 'auto' });
      choice.append(name, el('small', {}, ads === undefined ? '' : count(ads, 'ad')));
      choices.append(choice);
    }
  } catch (error) {
    message.textContent = problemOf(error);
  }
}
