import { problemOf, type View } from './state.ts';
import { count } from './words.ts';

const block = (text: string) => [{ type: 'text', text }];

/** Hands ads to the conversation: their ids and our own words, and nothing that an advertiser wrote. */
export async function askAbout(view: View, ids: readonly string[]): Promise<void> {
  const text = `Tell me about ${ids.length === 1 ? 'this ad' : `these ${ids.length} ads`} from the board: ${ids.join(', ')}`;
  try {
    const { isError } = await view.host.request('ui/message', { role: 'user', content: block(text) });
    if (isError === true) throw new Error('The host refused.');
    view.update({ status: `${count(ids.length, 'ad')} handed to the conversation.` });
  } catch (error) {
    view.update({ status: `The conversation did not take them: ${problemOf(error)}` });
  }
}

/** Lets the model know what is selected, for its next turn. */
export function reportSelection(view: View): void {
  const ids = [...view.state.selected];
  const text = ids.length === 0 ? 'No ad is selected on the board.' : `Selected on the board: ${ids.join(', ')}`;
  view.host.request('ui/update-model-context', { content: block(text) }).catch(() => {
    // Hosts need not keep a context. The button hands the ads over all the same.
  });
}
