import { AccountView, formatAccount, viewAccount } from '../views/account.ts';
import { noArguments } from './arguments.ts';
import { defineTool, readOnly } from './tool.ts';

export const getAccount = defineTool({
  name: 'get_account',
  title: 'Account',
  description: 'Show the plan and subscription status of the account.',
  annotations: readOnly,
  example: () => ({}),
  operations: ['getAccount'],
  input: noArguments,
  output: AccountView,
  async run(_, { api }) {
    const { raw } = await api.getAccount();
    return { data: viewAccount(raw) };
  },
  render: formatAccount,
});
