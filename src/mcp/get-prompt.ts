import { quote } from '../present/fence.ts';
import { sanitizeLine } from '../present/text.ts';
import type { Prompt } from '../prompts/prompts.ts';

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

/** In characters: a prompt argument is a name or a phrase. */
const maxArgumentLength = 500;

export const listPrompts = (prompts: readonly Prompt[]): ListedPrompt[] =>
  prompts.map(({ write: _, ...prompt }) => ({ ...prompt, arguments: [...prompt.arguments] }));

/** Writes a prompt; throws what `invalid` makes of a problem, because the two SDKs have different error classes. */
export function getPrompt(
  prompts: readonly Prompt[],
  { name, arguments: values = {} }: PromptRequest,
  invalid: (problem: string) => Error,
): PromptResult {
  const prompt = prompts.find((candidate) => candidate.name === name);
  if (!prompt) throw invalid(`There is no such prompt. Prompts: ${prompts.map((known) => known.name).join(', ')}.`);
  const long = prompt.arguments.find((argument) => (values[argument.name]?.length ?? 0) > maxArgumentLength);
  if (long) throw invalid(`${long.name} may have at most ${maxArgumentLength} characters.`);
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

/** Makes an argument safe and quotes it like any third-party text; undefined if nothing visible is left. */
function quoteArgument(value = ''): string | undefined {
  const text = sanitizeLine(value);
  return text === '' ? undefined : quote(text);
}
