import { sanitize } from '../views/safe-text.ts';

/** A block of text, i.e. a paragraph or a list. */
interface TextBlock {
  elementName: 'p' | 'ul' | 'ol';
  /** The lines of the paragraph, or the items of the list. */
  lines: string[];
  /** The number of the first item in a numbered list, e.g. 3 for a list that starts with `3.`. */
  firstNumber?: number;
}

/**
 * Renders a subset of Markdown: paragraphs, bold text, bulleted lists and numbered lists. All other Markdown appears as
 * plain text, so the page cannot contain links.
 */
export const Prose = ({ text }: { text: string }) => (
  <>
    {parseTextBlocks(text).map(({ elementName, lines, firstNumber }) => {
      if (elementName === 'p')
        return (
          <p class="words" dir="auto">
            {renderBold(lines.join('\n'))}
          </p>
        );
      const items = lines.map((line) => <li dir="auto">{renderBold(line)}</li>);
      return elementName === 'ul' ? (
        <ul class="words">{items}</ul>
      ) : (
        <ol class="words" start={firstNumber}>
          {items}
        </ol>
      );
    })}
  </>
);

const bulletPattern = /^ {0,3}[-*+•] +(?=\S)/;
const numberedPattern = /^ {0,3}(\d{1,6})[.)] +(?=\S)/;

/**
 * Splits a text into paragraphs and lists. A line without a list marker continues the paragraph or list item on the
 * line above, unless that line is empty.
 */
function parseTextBlocks(text: string): TextBlock[] {
  const blocks: TextBlock[] = [];
  let canContinueBlock = false;
  for (const line of sanitize(text).split('\n')) {
    const lastBlock = blocks.at(-1);
    const [marker, number] = bulletPattern.exec(line) ?? numberedPattern.exec(line) ?? [];
    const elementName = marker === undefined ? 'p' : number === undefined ? 'ul' : 'ol';
    if (line.trim() === '') canContinueBlock = false;
    else if (marker !== undefined) {
      const item = line.slice(marker.length).trim();
      if (lastBlock?.elementName === elementName) lastBlock.lines.push(item);
      else blocks.push({ elementName, lines: [item], ...(number !== undefined && { firstNumber: Number(number) }) });
      canContinueBlock = true;
    } else if (canContinueBlock && lastBlock?.elementName === 'p') lastBlock.lines.push(line.trim());
    else if (canContinueBlock && lastBlock !== undefined)
      lastBlock.lines.push(`${lastBlock.lines.pop()} ${line.trim()}`);
    else {
      blocks.push({ elementName, lines: [line.trim()] });
      canContinueBlock = true;
    }
  }
  return blocks;
}

/**
 * Renders `**bold**` as bold text. Because the pattern has a capture group, every second element that `split` returns
 * is the text of a bold passage.
 */
const renderBold = (text: string) =>
  text.split(/\*\*([^*\n]+)\*\*/).map((segment, index) => (index % 2 === 1 ? <b>{segment}</b> : segment));

/** The CSS for the texts that `Prose` renders. */
export const proseStyles = `
.words { max-width: 46em; white-space: pre-line; overflow-wrap: anywhere }
ul.words, ol.words { padding-inline-start: 1.5em; white-space: normal; display: grid; gap: 4px }
ul.words { list-style: disc } ol.words { list-style: decimal }
`;
