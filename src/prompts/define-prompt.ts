/** A task that users can pick in their host, written out for the model (MCP specification, *Prompts*). */
export interface Prompt {
  name: string;
  title: string;
  description: string;
  arguments: readonly { name: string; description: string; required: boolean }[];
  /** Writes the user message. The arguments are checked, made safe and quoted. */
  write(quoted: Readonly<Record<string, string | undefined>>): string;
}

export const definePrompt = (prompt: Prompt): Prompt => prompt;
