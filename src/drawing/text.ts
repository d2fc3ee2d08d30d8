import { readFileSync } from 'node:fs';
import createBidi from 'bidi-js';
import { type Font, parse } from 'opentype.js/dist/opentype.mjs';
import { locatePackagedFile } from '../packaged-files.ts';
import { buildGlyphPath, type Canvas, type Color, type Point } from './canvas.ts';

interface FontStyle {
  /** Font size in pixels. */
  size: number;
  bold?: boolean;
}

interface TextPosition extends FontStyle {
  x: number;
  /** The y coordinate of the baseline (the line on which the letters stand), in pixels. */
  y: number;
  color: Color;
  /** The point of the text that is drawn at `x`: its start, middle or end. The default is `start`. */
  anchor?: 'start' | 'middle' | 'end';
  /** The maximum width in pixels. A longer text is shortened and ends with an ellipsis. */
  maxWidth?: number;
}

const getInterFontFile = (subset: string, weight = 400) =>
  `@fontsource/inter/files/inter-${subset}-${weight}-normal.woff`;
const getNotoFontFile = (name: string, subset: string | number) =>
  `@fontsource/noto-sans-${name}/files/noto-sans-${name}-${subset}-400-normal.woff`;
/**
 * Returns the paths of the most useful files of a large font, e.g. of a Chinese font. Such a font is split into
 * numbered files, and the files with the highest numbers contain the most common letters.
 */
const listNotoFontFiles = (fontName: string, firstFileNumber: number, lastFileNumber = 119) =>
  Array.from({ length: lastFileNumber - firstFileNumber + 1 }, (_, index) =>
    getNotoFontFile(fontName, lastFileNumber - index),
  );

const latinFontFiles = { regular: getInterFontFile('latin'), bold: getInterFontFile('latin', 700) };
const chineseFontFiles = [...listNotoFontFiles('sc', 108), ...listNotoFontFiles('tc', 117, 118)];
const japaneseFontFiles = listNotoFontFiles('jp', 104);
/**
 * The font files for each script, in order of preference. To draw a letter, the server searches the files of the first
 * pattern that matches the letter.
 */
const fontFilesByScript: readonly [letterPattern: RegExp, files: readonly string[]][] = [
  [/[\p{Script=Hiragana}\p{Script=Katakana}ー]/u, japaneseFontFiles],
  [/[\p{Script=Han}\u3000-\u303f\uff00-\uffef]/u, [...chineseFontFiles, ...japaneseFontFiles]],
  [/\p{Script=Hangul}/u, listNotoFontFiles('kr', 102)],
  [/\p{scx=Arabic}/u, [getNotoFontFile('arabic', 'arabic')]],
  [/\p{Script=Hebrew}/u, [getNotoFontFile('hebrew', 'hebrew')]],
  [/\p{Script=Thai}/u, [getNotoFontFile('thai', 'thai')]],
  [
    /[\p{Script=Greek}\p{Script=Cyrillic}\p{Script=Latin}₫]/u,
    ['greek', 'cyrillic', 'latin-ext', 'vietnamese'].map((subset) => getInterFontFile(subset)),
  ],
];

/** The paths of all font files. The build copies the files next to the bundled server. */
export const fontFiles = [
  ...new Set([...Object.values(latinFontFiles), ...fontFilesByScript.flatMap(([, files]) => files)]),
];

const fontsByFile = new Map<string, Font>();

function loadFont(file: string): Font {
  const font = fontsByFile.get(file) ?? parse(new Uint8Array(readFileSync(locatePackagedFile(file))).buffer);
  fontsByFile.set(file, font);
  return font;
}

const readGlyph = (font: Font, letter: string) => {
  const { advanceWidth, path } = font.charToGlyph(letter);
  return { advanceWidth, outline: buildGlyphPath(path.commands), unitsPerEm: font.unitsPerEm };
};

/**
 * Cached glyphs (outlines of letters) by letter. The glyph is undefined if no font contains the letter. The cache needs
 * no size limit, because the number of Unicode characters is limited.
 */
const cachedGlyphs = new Map<string, ReturnType<typeof readGlyph> | undefined>();

function findGlyph(letter: string, bold = false) {
  const cacheKey = bold ? `bold ${letter}` : letter;
  if (!cachedGlyphs.has(cacheKey)) {
    const files = fontFilesByScript.find(([letterPattern]) => letterPattern.test(letter))?.[1] ?? [];
    const file = [bold ? latinFontFiles.bold : latinFontFiles.regular, ...files].find(
      (file) => loadFont(file).charToGlyphIndex(letter) > 0,
    );
    cachedGlyphs.set(cacheKey, file === undefined ? undefined : readGlyph(loadFont(file), letter));
  }
  return cachedGlyphs.get(cacheKey);
}

const measureLetter = (letter: string, { size, bold }: FontStyle): number => {
  const glyph = findGlyph(letter, bold);
  return glyph ? (glyph.advanceWidth * size) / glyph.unitsPerEm : 0;
};

/** Combines letters with their accents, e.g. `e` and `´` to `é`, because the fonts contain few separate accents. */
const composeAccentedLetters = (text: string) => text.normalize('NFC');

/** Returns the width of a text in pixels when it is drawn on one line. */
export const measureText = (text: string, fontStyle: FontStyle): number =>
  orderLettersForDrawing(composeAccentedLetters(text)).reduce(
    (width, letter) => width + measureLetter(letter, fontStyle),
    0,
  );

/** Returns true if the fonts contain at least one letter of the text. Letters that no font contains are not drawn. */
export const canDrawText = (text: string): boolean =>
  [...composeAccentedLetters(text)].some((letter) => letter.trim() !== '' && findGlyph(letter) !== undefined);

/** Draws a text on one line. Letters that no font contains are omitted. */
export function drawText(canvas: Canvas, text: string, position: TextPosition): void {
  const { size, bold, maxWidth = Number.POSITIVE_INFINITY, color, anchor = 'start' } = position;
  const shortenedText = shortenWithEllipsis(text, position, maxWidth);
  let x = position.x - (anchor === 'start' ? 0 : measureText(shortenedText, position) / (anchor === 'middle' ? 2 : 1));
  for (const letter of orderLettersForDrawing(shortenedText)) {
    const glyph = findGlyph(letter, bold);
    if (glyph === undefined) continue;
    const scale = size / glyph.unitsPerEm;
    // The y axis of fonts points up, but the y axis of the canvas points down.
    const positionedOutline = glyph.outline.map((contour) =>
      contour.map(([glyphX, glyphY]): Point => [glyphX * scale + x, position.y - glyphY * scale]),
    );
    canvas.fillPath(positionedOutline, color);
    x += glyph.advanceWidth * scale;
  }
}

/** Wraps a text at spaces into at most `maxLines` lines. If the text is longer, the last line ends with an ellipsis. */
export function breakIntoLines(
  text: string,
  { maxWidth, maxLines, ...fontStyle }: FontStyle & { maxWidth: number; maxLines: number },
): string[] {
  const lines: string[] = [];
  let remainingText = composeAccentedLetters(text).trim();
  while (remainingText !== '' && lines.length < maxLines) {
    const { fittingPrefix } = findFittingPrefix(remainingText, fontStyle, maxWidth);
    const breakIndex = fittingPrefix === remainingText ? fittingPrefix.length : fittingPrefix.lastIndexOf(' ');
    const isLastLine = lines.length === maxLines - 1;
    const line = isLastLine
      ? shortenWithEllipsis(remainingText, fontStyle, maxWidth)
      : remainingText.slice(0, breakIndex > 0 ? breakIndex : fittingPrefix.length || 1);
    lines.push(line);
    remainingText = isLastLine ? '' : remainingText.slice(line.length).trimStart();
  }
  return lines;
}

function shortenWithEllipsis(text: string, fontStyle: FontStyle, maxWidth: number): string {
  const { fittingPrefix, isWholeText } = findFittingPrefix(text, fontStyle, maxWidth);
  if (isWholeText) return fittingPrefix;
  return `${findFittingPrefix(text, fontStyle, maxWidth - measureText('…', fontStyle)).fittingPrefix.trimEnd()}…`;
}

/**
 * Returns the longest prefix of a text that fits the width. Arabic letters are measured in their unjoined form, which
 * is at least as wide as their joined form, so that the drawn text fits too.
 */
function findFittingPrefix(text: string, fontStyle: FontStyle, maxWidth: number) {
  let [fittingPrefix, width] = ['', 0];
  for (const letter of composeAccentedLetters(text)) {
    width += measureLetter(letter, fontStyle);
    if (width > maxWidth) return { fittingPrefix, isWholeText: false };
    fittingPrefix += letter;
  }
  return { fittingPrefix, isWholeText: true };
}

const rightToLeftPattern = /[\p{Script=Hebrew}\p{Script=Arabic}]/u;
/** Matches Hebrew and Arabic vowel signs. Placing them requires a text shaping engine, so they are not drawn. */
const vowelSignPattern = /(?=\p{Mn})[\p{scx=Hebrew}\p{scx=Arabic}]/u;

const bidi = createBidi();

/**
 * Returns the letters of a text in the order in which they are drawn from left to right. Applies the Unicode
 * Bidirectional Algorithm, joins Arabic letters, and mirrors brackets in right-to-left text. The first letter with a
 * direction determines the direction of the text.
 */
export function orderLettersForDrawing(text: string): string[] {
  if (!rightToLeftPattern.test(text)) return [...text];
  const letters = joinArabicLetters([...text].filter((letter) => !vowelSignPattern.test(letter)));
  // `bidi` returns indices of UTF-16 code units. Replace each letter that has two code units with a single neutral code
  // unit, so that the same indices apply to `letters`.
  const codeUnits = letters.map((letter) => (letter.length === 1 ? letter : '\ufffc')).join('');
  const embeddingLevels = bidi.getEmbeddingLevels(codeUnits, 'auto');
  return bidi.getReorderedIndices(codeUnits, embeddingLevels).map((index) => {
    const letter = letters[index] ?? '';
    const isRightToLeft = (embeddingLevels.levels[index] ?? 0) % 2 === 1;
    return (isRightToLeft && bidi.getMirroredCharacter(letter)) || letter;
  });
}

/**
 * The forms of each Arabic letter, in the order of Unicode: isolated, final, initial and medial. The position of a
 * letter in its word determines the form.
 */
const arabicFormsByLetter = new Map<string, string[]>();
for (const [firstCode, lastCode] of [
  [0xfb50, 0xfbb1],
  [0xfbd3, 0xfbdc],
  [0xfbde, 0xfbe7],
  [0xfbfc, 0xfbff],
  [0xfe80, 0xfefc],
] as const)
  for (let code = firstCode; code <= lastCode; code++) {
    const letterForm = String.fromCharCode(code);
    const letter = letterForm.normalize('NFKC');
    if (letter !== letterForm)
      arabicFormsByLetter.set(letter, [...(arabicFormsByLetter.get(letter) ?? []), letterForm]);
  }

/**
 * Replaces Arabic letters with their joined forms. A letter with four forms joins both of its neighbors, and a letter
 * with two forms joins only the preceding one.
 */
function joinArabicLetters(letters: readonly string[]): string[] {
  const lettersAndLigatures: string[] = [];
  for (let index = 0; index < letters.length; index++) {
    const letterPair = `${letters[index]}${letters[index + 1] ?? ''}`;
    const isLigature = letterPair.length > 1 && arabicFormsByLetter.has(letterPair);
    lettersAndLigatures.push(isLigature ? letterPair : (letters[index] ?? ''));
    if (isLigature) index++;
  }
  const canJoin = (letter = '', minFormCount: 2 | 4) =>
    letter === 'ـ' || (arabicFormsByLetter.get(letter)?.length ?? 0) >= minFormCount;
  return lettersAndLigatures.map((letter, index) => {
    const forms = arabicFormsByLetter.get(letter);
    if (forms === undefined) return letter;
    const joinsPrevious = canJoin(letter, 2) && canJoin(lettersAndLigatures[index - 1], 4);
    const joinsNext = canJoin(letter, 4) && canJoin(lettersAndLigatures[index + 1], 2);
    return forms[(joinsPrevious ? 1 : 0) + (joinsNext ? 2 : 0)] ?? letter;
  });
}
