import { ignoreUnavailableStorage } from '../api/errors.ts';
import { formatSpending, getSpendingSchema, type Spending } from '../credits/credit-text.ts';
import { buildCreditsView, formatCredits, getCreditsViewSchema } from '../views/account.ts';
import { noArgumentsSchema } from './arguments.ts';
import { defineTool, readOnlyAnnotations } from './tool.ts';

export const getCredits = defineTool({
  name: 'get_credits',
  title: 'Credit balance and usage limits',
  description:
    'Check the credit balance and the rate limits: credits left, billing period, hourly and daily usage limits and when they end, the spending of this server, and what each kind of call has cost.',
  annotations: readOnlyAnnotations,
  buildExampleArguments: () => ({}),
  operations: ['getCredits'],
  inputSchema: noArgumentsSchema,
  createOutputSchema: () =>
    getCreditsViewSchema().extend({
      thisServer: getSpendingSchema()
        .optional()
        .describe(
          'Spending and prices that this server has seen for the key. Missing while its shared state cannot be reached.',
        ),
    }),
  async run(_, { api, readSpending, getToolName }) {
    const { rawBody } = await api.getCredits();
    const spending = await readSpending().catch(ignoreUnavailableStorage);
    if (spending === undefined) return { data: buildCreditsView(rawBody) };
    const renameOperationsToTools = <Value>(byOperation: Record<string, Value>): Record<string, Value> =>
      Object.fromEntries(Object.entries(byOperation).map(([operation, value]) => [getToolName(operation), value]));
    const thisServer = { ...spending, prices: renameOperationsToTools(spending.prices) };
    return { data: { ...buildCreditsView(rawBody), thisServer } };
  },
  render: (output) =>
    `${formatCredits(output)}\n${output.thisServer ? formatSpending(output.thisServer as Spending) : unknownSpendingText}`,
});

const unknownSpendingText = 'What this server has spent is not known now, because its shared state cannot be reached.';
