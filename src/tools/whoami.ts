import { IdentityView, identityText, viewIdentity } from '../present/account.ts';
import { noArguments } from './arguments.ts';
import { defineTool, type FieldMeanings, readOnly } from './tool.ts';

export const whoami = defineTool({
  name: 'whoami',
  title: 'Who am I',
  description: 'Show whose API key this is.',
  annotations: readOnly,
  example: () => ({}),
  operations: ['whoami'],
  input: noArguments,
  output: IdentityView,
  async run(_, { api }) {
    const { raw } = await api.whoami();
    return viewIdentity(raw);
  },
  render: identityText,
});

/** For docs alone: see `FieldMeanings`. */
export const resultFields = {
  authenticated: 'boolean: whether the key is accepted',
  authSource: 'string: `api_key`',
  user: 'User: whose key it is',
  'apiKey?': 'Key: the key, without its secret part',
  'oauthClientId?': 'string: the client, where the service uses OAuth',
} satisfies FieldMeanings;

export const resultObjects = {
  User: {
    userId: 'string: id of the user',
    billingUserId: 'string: who pays',
    'name?': 'string: name',
    'emailAddress?': 'string: address',
    planId: 'string: plan',
    isTeamMember: 'boolean: whether the user belongs to a team',
    subscriptionStatus: 'string: state of the subscription',
  },
  Key: { id: 'string: id of the key', name: 'string: its name', keyPrefix: 'string: how it begins' },
} satisfies Record<string, FieldMeanings>;
