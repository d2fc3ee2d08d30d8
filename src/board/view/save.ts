import { button, byId, el } from './elements.ts';
import { problemOf, type View } from './state.ts';
import { count } from './words.ts';

export const canSave = ({ state: { offered } }: View): boolean =>
  offered.includes('list_collections') && offered.includes('add_collection_item');

/** Asks for a collection, and saves ads to it. */
export async function openSave(view: View, ids: readonly string[]): Promise<void> {
  const dialog = byId<HTMLDialogElement>('save');
  const message = el('p', { role: 'status' }, 'Reading your collections …');
  const close = button('Cancel', () => dialog.close());
  const title = el('h2', { id: 'save-title' }, `Save ${count(ids.length, 'ad')} to a collection`);
  const choices = el('div', { class: 'choices' });
  dialog.replaceChildren(title, message, choices, el('div', { class: 'actions' }, close));
  dialog.showModal();
  try {
    const collections = await view.server.collections();
    message.textContent = collections.length === 0 ? 'You have no collection yet.' : '';
    for (const { id, name } of collections) {
      const choice = button(name ?? id, () => void save(id), { dir: 'auto' });
      choices.append(choice);
    }
  } catch (error) {
    message.textContent = problemOf(error);
  }

  const save = async (collectionId: string) => {
    choices.replaceChildren();
    let added = 0;
    let done = 0;
    try {
      for (const id of ids) {
        message.textContent = `Saving ${done + 1} of ${ids.length} …`;
        if (await view.server.save(collectionId, id)) added++;
        done++;
      }
      dialog.close();
      const known = done - added;
      const already = known === 0 ? '' : `, ${known === done ? 'all' : known} of them there already`;
      view.update({ status: `${count(done, 'ad')} saved${already}.` });
    } catch (error) {
      message.textContent = `${done} of ${ids.length} saved. ${problemOf(error)}`;
    }
  };
}
