import { sanitize } from '../views/safe-text.ts';

interface Block {
  is: 'p' | 'ul' | 'ol';
  lines: string[];
  start?: number;
}

/** Paragraphs, bold, and bulleted and numbered lists of Markdown. Anything else is text; nothing can be clicked. */
export const Prose = ({ text }: { text: string }) => (
  <>
    {blocksOf(text).map(({ is, lines, start }) => {
      if (is === 'p')
        return (
          <p class="words" dir="auto">
            {bold(lines.join('\n'))}
          </p>
        );
      const items = lines.map((line) => <li dir="auto">{bold(line)}</li>);
      return is === 'ul' ? (
        <ul class="words">{items}</ul>
      ) : (
        <ol class="words" start={start}>
          {items}
        </ol>
      );
    })}
  </>
);

const bullet = /^ {0,3}[-*+•] +(?=\S)/;
const numbered = /^ {0,3}(\d{1,6})[.)] +(?=\S)/;

function blocksOf(text: string): Block[] {
  const blocks: Block[] = [];
  let isOpen = false;
  for (const line of sanitize(text).split('\n')) {
    const last = blocks.at(-1);
    const [mark, number] = bullet.exec(line) ?? numbered.exec(line) ?? [];
    const is = mark === undefined ? 'p' : number === undefined ? 'ul' : 'ol';
    if (line.trim() === '') isOpen = false;
    else if (mark !== undefined) {
      const item = line.slice(mark.length).trim();
      if (last?.is === is) last.lines.push(item);
      else blocks.push({ is, lines: [item], ...(number !== undefined && { start: Number(number) }) });
      isOpen = true;
    } else if (isOpen && last?.is === 'p') last.lines.push(line.trim());
    else if (isOpen && last !== undefined) last.lines.push(`${last.lines.pop()} ${line.trim()}`);
    else {
      blocks.push({ is, lines: [line.trim()] });
      isOpen = true;
    }
  }
  return blocks;
}

/** Every second part of the split stands between its stars. */
const bold = (text: string) =>
  text.split(/\*\*([^*\n]+)\*\*/).map((part, index) => (index % 2 === 1 ? <b>{part}</b> : part));

export const proseStyles = `
.words { max-width: 46em; white-space: pre-line; overflow-wrap: anywhere }
ul.words, ol.words { padding-inline-start: 1.5em; white-space: normal; display: grid; gap: 4px }
ul.words { list-style: disc } ol.words { list-style: decimal }
`;
