import { AccountView, accountText, viewAccount } from '../present/account.ts';
import { noArguments } from './arguments.ts';
import { defineTool, type FieldMeanings, readOnly } from './tool.ts';

export const getAccount = defineTool({
  name: 'get_account',
  title: 'Account',
  description: 'Plan and subscription status of the account.',
  annotations: readOnly,
  example: () => ({}),
  operations: ['getAccount'],
  input: noArguments,
  output: AccountView,
  async run(_, { api }) {
    const { raw } = await api.getAccount();
    return viewAccount(raw);
  },
  render: accountText,
});

/** For docs alone: see `FieldMeanings`. */
export const resultFields = {
  userId: 'string: id of the user',
  billingUserId: 'string: who pays',
  'planId?': 'string: plan',
  isTeamMember: 'boolean: whether the user belongs to a team',
  'subscriptionStatus?': 'string: state of the subscription',
} satisfies FieldMeanings;
