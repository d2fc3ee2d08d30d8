import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import type { ConfirmationForm, FormAnswer } from '../../src/mcp/confirm-spending.ts';
import type { TestServer } from './server.ts';

/** Simulates a user who fills in each form with `answerOf`. `forms` lists the forms that were shown. */
export function createSimulatedUser(answerOf: (form: ConfirmationForm) => FormAnswer | Promise<FormAnswer>) {
  const forms: ConfirmationForm[] = [];
  return {
    forms,
    answer: async (form: ConfirmationForm) => {
      forms.push(form);
      return answerOf(form);
    },
  };
}
type SimulatedUser = ReturnType<typeof createSimulatedUser>;

/** Simulates a user who accepts each form with this choice. */
export const choose = (choice: string) => createSimulatedUser(() => ({ action: 'accept', content: { choice } }));

/** Connects a client of revision 2025-11-25 that shows forms to the simulated user. */
export async function connectWithForms(server: TestServer, key: string, person: SimulatedUser) {
  const connected = await server.connectAs(key, 'test', { elicitation: {} });
  connected.client.setRequestHandler(ElicitRequestSchema, async ({ params }) => ({
    ...(await person.answer(params as unknown as ConfirmationForm)),
  }));
  return connected;
}
