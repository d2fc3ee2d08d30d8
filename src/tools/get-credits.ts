import * as z from 'zod';
import { Spending, spendingText } from '../credits/spending.ts';
import { creditsText, viewCredits } from '../present/account.ts';
import { defineTool, readOnly } from './define-tool.ts';
import { noArguments } from './params.ts';

export const getCredits = defineTool({
  name: 'get_credits',
  title: 'Credits left',
  description:
    'Credits left, billing period, hourly and daily usage windows, and what this server spent and what calls were seen to cost.',
  annotations: readOnly,
  operations: ['getCredits'],
  input: noArguments,
  output: z.looseObject({
    thisServer: Spending.extend({
      prices: z.looseObject({}).describe('by tool: what answers of so many items cost'),
    }),
  }),
  async run(_, { api, spending, toolName }) {
    const { raw } = await api.getCredits();
    const spent = await spending();
    const prices = Object.entries(spent.prices).map(([operation, seen]) => [toolName(operation), seen]);
    return { ...viewCredits(raw), thisServer: { ...spent, prices: Object.fromEntries(prices) } };
  },
  render: (output) => `${creditsText(output)}\n${spendingText(output.thisServer)}`,
});
