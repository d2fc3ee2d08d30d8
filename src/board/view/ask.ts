import { isWord } from '../../present/fence.ts';
import { problemOf, type View } from './state.ts';
import { count, number } from './words.ts';

const block = (text: string) => [{ type: 'text', text }];

/** Hands ads to the conversation: our own words, and ids that hold no sentence; nothing that an advertiser wrote. */
export async function askAbout(view: View, all: readonly string[]): Promise<void> {
  const ids = all.filter(isWord);
  if (ids.length === 0) return view.update({ status: 'The conversation does not take the ids of these ads.' });
  const left = all.length - ids.length;
  const text = `Tell me about ${ids.length === 1 ? 'this ad' : `these ${ids.length} ads`} from the board: ${ids.join(', ')}`;
  try {
    const { isError } = await view.host.request('ui/message', { role: 'user', content: block(text) });
    if (isError === true) throw new Error('The host refused.');
    const without = left === 0 ? '' : `, without ${number(left)} whose ids it does not take`;
    view.update({ status: `${count(ids.length, 'ad')} handed to the conversation${without}.` });
  } catch (error) {
    view.update({ status: `The conversation did not take them: ${problemOf(error)}` });
  }
}

/** Lets the model know what is selected, for its next turn. */
export function reportSelection(view: View): void {
  const ids = [...view.state.selected].filter(isWord);
  const text = ids.length === 0 ? 'No ad is selected on the board.' : `Selected on the board: ${ids.join(', ')}`;
  view.host.request('ui/update-model-context', { content: block(text) }).catch(() => {
    // Hosts need not keep a context. The button hands the ads over all the same.
  });
}
