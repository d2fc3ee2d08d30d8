import type { OperationName } from '../../api/operations.ts';
import { responseSchemas } from '../../api/response-schemas.ts';
import type { Answer } from '../../api/send.ts';

/** An answer without what its schema makes of it. */
export type WrittenAnswer = Omit<Answer, 'value'>;

export const writeAnswer = ({ value, ...rest }: Answer): WrittenAnswer => rest;

export const readAnswer = (operation: OperationName, answer: WrittenAnswer): Answer => ({
  ...answer,
  value: responseSchemas[operation].parse(answer.raw),
});
