/**
 * Replaces the text between the comments `<!-- name -->` and `<!-- /name -->`.
 * @throws Error if one of these comments is missing, so that no generated section is forgotten
 */
export function replaceMarkedSection(markdown: string, markerName: string, content: string): string {
  const [startMarker, endMarker] = [`<!-- ${markerName} -->`, `<!-- /${markerName} -->`];
  const startIndex = markdown.indexOf(startMarker);
  const endIndex = markdown.indexOf(endMarker);
  if (startIndex < 0 || endIndex < startIndex)
    throw new Error(`The page has no "${startMarker}" … "${endMarker}" for the generated text.`);
  return `${markdown.slice(0, startIndex + startMarker.length)}\n${content}\n${markdown.slice(endIndex)}`;
}
