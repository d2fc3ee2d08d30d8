import { buildIdentityView, formatIdentity, getIdentityViewSchema } from '../views/account.ts';
import { noArgumentsSchema } from './arguments.ts';
import { defineTool, readOnlyAnnotations } from './tool.ts';

export const whoami = defineTool({
  name: 'whoami',
  title: 'Who am I',
  description: 'Show which account and person the API key belongs to.',
  annotations: readOnlyAnnotations,
  buildExampleArguments: () => ({}),
  operations: ['whoami'],
  inputSchema: noArgumentsSchema,
  createOutputSchema: getIdentityViewSchema,
  async run(_, { api }) {
    const { rawBody } = await api.whoami();
    return { data: buildIdentityView(rawBody) };
  },
  render: formatIdentity,
});
