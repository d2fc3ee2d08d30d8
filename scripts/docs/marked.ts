/**
 * Replaces the text between `<!-- name -->` and `<!-- /name -->`.
 * @throws Error if one of these comments is missing, so that no generated part is forgotten
 */
export function replaceMarked(markdown: string, name: string, content: string): string {
  const [before, after] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
  const start = markdown.indexOf(before);
  const end = markdown.indexOf(after);
  if (start < 0 || end < start) throw new Error(`The page has no "${before}" … "${after}" for the generated text.`);
  return `${markdown.slice(0, start + before.length)}\n${content}\n${markdown.slice(end)}`;
}
