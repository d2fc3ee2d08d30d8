import * as z from 'zod';
import { Spending, spendingText } from '../credits/credit-text.ts';
import { creditsText, viewCredits } from '../present/account.ts';
import { noArguments } from './arguments.ts';
import { defineTool, type FieldMeanings, readOnly } from './tool.ts';

export const getCredits = defineTool({
  name: 'get_credits',
  title: 'Credits left',
  description:
    'Show credits left, billing period, hourly and daily usage windows, what this server spent, and what calls have cost.',
  annotations: readOnly,
  example: () => ({}),
  operations: ['getCredits'],
  input: noArguments,
  output: z.looseObject({ thisServer: Spending }),
  async run(_, { api, spending, toolName }) {
    const { raw } = await api.getCredits();
    const spent = await spending();
    const byTool = <Value>(byOperation: Record<string, Value>): Record<string, Value> =>
      Object.fromEntries(Object.entries(byOperation).map(([operation, value]) => [toolName(operation), value]));
    const thisServer = { ...spent, prices: byTool(spent.prices) };
    return { ...viewCredits(raw), thisServer };
  },
  render: (output) => `${creditsText(output)}\n${spendingText(output.thisServer)}`,
});

/** For docs alone: see `FieldMeanings`. */
export const resultFields = {
  credits: 'number: credits left in this period',
  'creditsMax?': 'number: credits of a period',
  'periodStart?': 'number: in seconds since 1970',
  'periodEnd?': 'number: in seconds since 1970',
  'periodStartsOn?': 'string: the same as a day',
  'periodEndsOn?': 'string: the same as a day',
  'usageLimit?': 'UsageLimit: the hourly and the daily window',
  'hourlyLeft?': 'number: credits left in this hour',
  'dailyLeft?': 'number: credits left on this day',
  'planId?': 'string: plan of the account',
  billingUserId: 'string: who pays',
  thisServer: 'Spent: what this server spent for you, and what calls cost',
} satisfies FieldMeanings;

export const resultObjects = {
  UsageLimit: {
    isLimitReached: 'boolean: whether a window is full',
    limitType: 'string: none, hourly, daily',
    hourlyCredits: 'number: credits used in this hour',
    hourlyLimit: 'number: how many there are',
    dailyCredits: 'number: credits used on this day',
    dailyLimit: 'number: how many there are',
  },
} satisfies Record<string, FieldMeanings>;
