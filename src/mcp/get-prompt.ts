import type { Prompt } from '../prompts/define-prompt.ts';

export type ListedPrompt = Pick<Prompt, 'name' | 'title' | 'description'> & {
  arguments: { name: string; description: string; required: boolean }[];
};

export interface PromptRequest {
  name: string;
  arguments?: Record<string, string> | undefined;
}

export type PromptResult = {
  description: string;
  messages: { role: 'user'; content: { type: 'text'; text: string } }[];
};

/** Longest argument of a prompt, in characters: it is a name or a phrase. */
const longestArgument = 500;

export const listPrompts = (prompts: readonly Prompt[]): ListedPrompt[] =>
  prompts.map(({ write: _, ...prompt }) => ({ ...prompt, arguments: [...prompt.arguments] }));

/** Writes a prompt out; throws what `invalid` makes of the problem, since the two SDK lines differ in their errors. */
export function getPrompt(
  prompts: readonly Prompt[],
  { name, arguments: values = {} }: PromptRequest,
  invalid: (problem: string) => Error,
): PromptResult {
  const prompt = prompts.find((candidate) => candidate.name === name);
  if (!prompt) throw invalid(`There is no such prompt. Prompts: ${prompts.map((known) => known.name).join(', ')}.`);
  const missing = prompt.arguments.filter((argument) => argument.required && !values[argument.name]?.trim());
  if (missing.length > 0) throw invalid(`Missing: ${missing.map((argument) => argument.name).join(', ')}.`);
  const long = prompt.arguments.filter((argument) => (values[argument.name]?.length ?? 0) > longestArgument);
  if (long.length > 0) throw invalid(`${long[0]?.name} may hold ${longestArgument} characters at most.`);
  return {
    description: prompt.description,
    messages: [{ role: 'user', content: { type: 'text', text: prompt.write(values) } }],
  };
}
