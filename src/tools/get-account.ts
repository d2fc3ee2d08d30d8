import { buildAccountView, formatAccount, getAccountViewSchema } from '../views/account.ts';
import { noArguments } from './arguments.ts';
import { defineTool, readOnlyAnnotations } from './tool.ts';

export const getAccount = defineTool({
  name: 'get_account',
  title: 'Account',
  description: 'Show the plan and subscription status of the account.',
  annotations: readOnlyAnnotations,
  buildExampleArguments: () => ({}),
  operations: ['getAccount'],
  input: noArguments,
  createOutputSchema: getAccountViewSchema,
  async run(_, { api }) {
    const { rawBody } = await api.getAccount();
    return { data: buildAccountView(rawBody) };
  },
  render: formatAccount,
});
