/** Lines of at most so many columns, broken between words; a word that is longer stands alone and stays whole. */
export function wrap(text: string, columns: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > columns) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

/** The first lines of a text, with an ellipsis if there are more. */
export function fold(text: string, { columns, max }: { columns: number; max: number }): string[] {
  const lines = wrap(text, columns - 2);
  if (lines.length <= max) return lines;
  return [...lines.slice(0, max - 1), `${lines[max - 1]} …`];
}

/** JSON with spaces, so that it can be wrapped. */
export const argumentsText = (args: object): string =>
  JSON.stringify(args, null, 1)
    .replace(/\[\n\s*|\n\s*(?=\])/g, (bracket) => bracket.trim())
    .replace(/\n\s*/g, ' ');
