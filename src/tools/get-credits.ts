import * as z from 'zod';
import { Spending, spendingText } from '../credits/spending.ts';
import { creditsText, viewCredits } from '../present/account.ts';
import { defineTool, readOnly } from './define-tool.ts';
import { noArguments } from './params.ts';

export const getCredits = defineTool({
  name: 'get_credits',
  title: 'Credits left',
  description:
    'Credits left, billing period, hourly and daily usage windows, and what this server spent and what calls were seen to cost. Not gated by credits.',
  annotations: readOnly,
  input: noArguments,
  output: z.looseObject({ thisServer: Spending }),
  async run(_, { api, spending }) {
    const { raw } = await api.getCredits();
    return { ...viewCredits(raw), thisServer: await spending() };
  },
  render: (output) => `${creditsText(output)}\n${spendingText(output.thisServer)}`,
});
