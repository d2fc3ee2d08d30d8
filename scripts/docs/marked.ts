/** Replaces what stands between `<!-- name -->` and `<!-- /name -->`. Throws where they are missing, so that no part is forgotten. */
export function replaceMarked(markdown: string, name: string, content: string): string {
  const [before, after] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
  const start = markdown.indexOf(before);
  const end = markdown.indexOf(after);
  if (start < 0 || end < start) throw new Error(`There is no "${before}" … "${after}" to write into.`);
  return `${markdown.slice(0, start + before.length)}\n${content}\n${markdown.slice(end)}`;
}
