/**
 * Replaces the text between the comments `<!-- name -->` and `<!-- /name -->`.
 * @throws Error if one of these comments is missing, so that no generated section is forgotten
 */
export function replaceMarked(markdown: string, name: string, content: string): string {
  const [startMarker, endMarker] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
  const start = markdown.indexOf(startMarker);
  const end = markdown.indexOf(endMarker);
  if (start < 0 || end < start)
    throw new Error(`The page has no "${startMarker}" … "${endMarker}" for the generated text.`);
  return `${markdown.slice(0, start + startMarker.length)}\n${content}\n${markdown.slice(end)}`;
}
