import { buildAccountView, formatAccount, getAccountViewSchema } from '../views/account.ts';
import { noArgumentsSchema } from './arguments.ts';
import { defineTool, readOnlyAnnotations } from './tool.ts';

export const getAccount = defineTool({
  name: 'get_account',
  title: 'Account',
  description: 'Show the plan and subscription status of the account.',
  annotations: readOnlyAnnotations,
  buildExampleArguments: () => ({}),
  operations: ['getAccount'],
  inputSchema: noArgumentsSchema,
  createOutputSchema: getAccountViewSchema,
  async run(_, { api }) {
    const { rawBody } = await api.getAccount();
    return { data: buildAccountView(rawBody) };
  },
  render: formatAccount,
});
