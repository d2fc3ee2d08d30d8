import type { Answer, OperationName } from '../../api/call.ts';
import { responseSchemas } from '../../api/client.ts';

/** An answer without what its schema makes of it. */
export type WrittenAnswer = Omit<Answer, 'value'>;

export const writeAnswer = ({ value, ...rest }: Answer): WrittenAnswer => rest;

export const readAnswer = (operation: OperationName, answer: WrittenAnswer): Answer => ({
  ...answer,
  value: responseSchemas[operation].parse(answer.raw),
});
