import { quote } from '../present/fence.ts';
import { sanitizeLine } from '../present/text.ts';
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

/** In characters: an argument of a prompt is a name or a phrase. */
const maxArgumentLength = 500;

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
  const long = prompt.arguments.find((argument) => (values[argument.name]?.length ?? 0) > maxArgumentLength);
  if (long) throw invalid(`${long.name} may hold ${maxArgumentLength} characters at most.`);
  const quoted = Object.fromEntries(
    prompt.arguments.map((argument) => [argument.name, quoteArgument(values[argument.name])]),
  );
  const missing = prompt.arguments.filter((argument) => argument.required && !quoted[argument.name]);
  if (missing.length > 0) throw invalid(`Missing: ${missing.map((argument) => argument.name).join(', ')}.`);
  return {
    description: prompt.description,
    messages: [{ role: 'user', content: { type: 'text', text: prompt.write(quoted) } }],
  };
}

/** Made safe and in quotes, as any text of a stranger; nothing where there is nothing to see in it. */
function quoteArgument(value = ''): string | undefined {
  const text = sanitizeLine(value);
  return text === '' ? undefined : quote(text);
}
