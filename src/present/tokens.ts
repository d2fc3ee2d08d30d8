import { quote, sanitize, sanitizeLine, word } from './safe-text.ts';

/**
 * Estimates how many tokens a text costs a model, without a tokenizer: an upper bound in practice, measured against
 * o200k_base. ASCII words cost by their length and their unusual pairs of letters, which tell a word from noise. Other
 * scripts cost by the letter, and rare characters cost their worst case.
 */
export const estimateTokens = (text: string): number => Math.ceil(scan(text, Number.POSITIVE_INFINITY).tokens);

/** Whether the estimate of `text` stays within `tokens`. Fast for texts that are short or far too long. */
export const fitsWithin = (text: string, tokens: number): boolean =>
  maxPerByte * Buffer.byteLength(text) <= tokens || scan(text, tokens).end === text.length;

/** The maximum cost of a byte in UTF-8: that of a letter in a long word of rare pairs. */
const maxPerByte = 1.5;

/** The length of the longest start of `text` that stays within `tokens`. */
export const lengthWithin = (text: string, tokens: number): number => scan(text, tokens).end;

/** For characters below `end`: the cost of the first in a row, of the next 13 of its kind, and of further ones. */
type Kind = [end: number, first: number, next: number, long: number];

const kinds: Kind[] = [
  [0x80, 1, 0.75, 0.75], // ASCII punctuation; letters, digits and spaces are handled by `scan`
  [0x100, 0.7, 1.05, 1.05],
  [0x180, 0.85, 1.45, 1.45],
  [0x300, 1.95, 1.95, 1.95],
  [0x370, 2, 2, 2],
  [0x400, 0.7, 0.45, 0.95],
  [0x450, 0.65, 0.37, 0.95],
  [0x460, 0.65, 0.6, 1.3],
  [0x530, 2, 2, 2],
  [0x590, 1, 0.9, 1],
  [0x600, 0.7, 0.48, 0.8],
  [0x700, 0.7, 0.42, 1.05],
  [0x900, 2.1, 2.1, 2.1],
  [0xb00, 0.7, 0.42, 1.4],
  [0xb80, 0.9, 0.8, 1.6],
  [0xc00, 0.75, 0.4, 1.5],
  [0xd80, 0.7, 0.42, 1.4],
  [0xe00, 1.6, 1, 1.6],
  [0xe80, 0.5, 0.5, 0.5],
  [0x1000, 2.1, 2.1, 2.1],
  [0x10a0, 1.4, 1, 1.4],
  [0x1100, 0.7, 0.45, 0.9],
  [0x1380, 2.1, 2.1, 2.1],
  [0x1780, 3, 3, 3],
  [0x1800, 1.4, 1, 1.4],
  [0x1e00, 3, 3, 3],
  [0x1ea0, 2.5, 2.5, 2.5],
  [0x1f00, 0.5, 1.25, 1.25],
  [0x2000, 2.25, 2.25, 2.25],
  [0x2070, 1.2, 1.7, 1.7],
  [0x2300, 2, 2, 2],
  [0x2400, 2.8, 2.8, 2.8],
  [0x2800, 2.25, 2.25, 2.25],
  [0x3000, 3, 3, 3],
  [0x3040, 1, 1.5, 1.5],
  [0x30a0, 0.8, 0.8, 1.2],
  [0x3100, 0.95, 0.95, 1.2],
  [0x3400, 2.3, 2.3, 2.3],
  [0x4e00, 3, 3, 3],
  [0x9fa6, 2.25, 2.25, 2.25],
  [0xa000, 3, 3, 3],
  [0xac00, 3, 3, 3],
  [0xd7b0, 2.45, 2.45, 2.45],
  [0xd800, 3, 3, 3],
  [0xe000, 2.4, 2.4, 2.4], // lone surrogates
  [0xfe00, 3, 3, 3],
  [0xfe10, 1, 1, 1], // variation selectors
  [0xff00, 3, 3, 3],
  [0xffef, 1, 1.5, 1.5],
  [0x10000, 3, 3, 3],
  [0x1d400, 4, 4, 4],
  [0x1d800, 3, 3, 3],
  [0x1f000, 4, 4, 4],
  [0x1f300, 3, 3, 3],
  [0x1f650, 1.9, 2.25, 2.25],
  [0x1fa70, 2.5, 2.5, 2.5],
  [0x1fb00, 3, 3, 3],
  [0x110000, 4, 4, 4],
];
const han = kinds.push([0, 1, 1, 1]) - 1;
const hangul = kinds.push([0, 0.9, 0.8, 1]) - 1;

const kindCosts = Float64Array.from(kinds.flatMap(([, first, next, long]) => [first, next, long]));
const astralKinds = kinds.findIndex(([end]) => end > 0x10000);

interface Tables {
  /** The row in kinds of each code unit. */
  kindOf: Uint8Array;
  /** By pair (`pairOf`): the extra cost of a word that contains it. */
  pairCost: Float64Array;
  /** By length: the basic cost of a word. */
  wordCost: Float64Array;
}

/** Filled when first needed: a process that only lists its tools needs no estimates. */
let tables: Tables | undefined;

function fillTables(): Tables {
  const kindOf = new Uint8Array(0x10000);
  for (let code = 0, kind = 0; code < 0x10000; code++) {
    while (code >= (kinds[kind]?.[0] ?? 0)) kind++;
    kindOf[code] = kind;
  }
  markOneToken(kindOf, { gaps: oneTokenHan, from: 0x4e00, kind: han });
  markOneToken(kindOf, { gaps: oneTokenHangul, from: 0xac00, kind: hangul });
  return { kindOf, pairCost: pairCosts(), wordCost: Float64Array.from({ length: maxWordLength + 1 }, wordCostOf) };
}

/** Pairs that are rare in words cost more, and so do capitals inside a word. */
function pairCosts(): Float64Array {
  const costs = new Float64Array(64 * 64).fill(0.83);
  for (const [index, seconds] of commonPairs.split(' ').entries()) {
    const first = index + 97;
    for (const letter of seconds) {
      const second = letter.charCodeAt(0);
      costs[pairOf(first, second)] = 0;
      costs[pairOf(first - 32, second)] = 0;
      costs[pairOf(first, second - 32)] = 1;
      costs[pairOf(first - 32, second - 32)] = 0.22;
    }
  }
  return costs;
}

/** The index of two letters, each in either case. */
const pairOf = (first: number, second: number) => ((first & 63) << 6) | (second & 63);

/** Words longer than `longWord` are rare in any language, and taken for noise. */
const wordCostOf = (_: unknown, length: number) =>
  0.82 + 0.1 * length + (length > 7 ? 0.15 * (length - 7) : 0) + (length > longWord ? 0.3 * (length - longWord) : 0);

function markOneToken(kindOf: Uint8Array, { gaps, from, kind }: { gaps: string; from: number; kind: number }): void {
  let code = from - 1;
  for (const gap of gaps) {
    if (gap === '~') code += 86;
    else {
      code += gap.charCodeAt(0) - 39;
      kindOf[code] = kind;
    }
  }
}

const vietnamese = kinds.findIndex(([end]) => end > 0x1ea0);
const spaceCode = 32;
const punctuationKind = 0;
const longWord = 14;
const maxWordLength = 64;
const isLetter = (code: number) => ((code | 32) - 97) >>> 0 < 26;
const isDigit = (code: number) => code >= 48 && code <= 57;

/** The code units of the text that was read last, and their bytes. */
let units = new Uint16Array(0);
let bytes = Buffer.alloc(0);

/**
 * Copies a text to where its characters are read. Reading them from the string is fast only as long as few forms of
 * strings (joined, sliced, one or two bytes a character) come by, and every result is read here.
 */
function copyUnits(text: string): Uint16Array {
  if (units.length < text.length) {
    units = new Uint16Array(Math.max(2 * text.length, 1 << 15));
    bytes = Buffer.from(units.buffer);
  }
  bytes.write(text, 0, 2 * text.length, 'utf16le');
  return units;
}

function scan(text: string, limit: number): { tokens: number; end: number } {
  tables ??= fillTables();
  const { kindOf, pairCost, wordCost } = tables;
  const units = copyUnits(text);
  let tokens = 0;
  let i = 0;
  let last = -1;
  let run = 0;
  const { length } = text;
  while (i < length) {
    const start = i;
    const code = units[i++] as number;
    let cost: number;
    if (isLetter(code)) {
      let pairs = 0;
      let before = code;
      for (const end = Math.min(length, start + maxWordLength); i < end; i++) {
        const letter = units[i] as number;
        if (!isLetter(letter)) break;
        pairs += pairCost[pairOf(before, letter)] ?? 0;
        before = letter;
      }
      cost = pairs + (wordCost[i - start] ?? 0);
      if (last === 1 || last === 2 || last === vietnamese) cost -= 0.82;
      last = -1;
    } else if (code === spaceCode) {
      cost = spaceCost(i < length ? (units[i] as number) : 0, kindOf);
      last = -1;
    } else if (code >= 128) {
      const point = code >= 0xd800 && code < 0xdc00 ? (text.codePointAt(start) ?? code) : code;
      if (point > 0xffff) i++;
      const kind = point > 0xffff ? astralKind(point) : (kindOf[point] ?? 0);
      run = kind === last ? run + 1 : 0;
      last = kind;
      cost = kindCosts[3 * kind + (run === 0 ? 0 : run < longWord ? 1 : 2)] ?? 4;
    } else if (isDigit(code)) {
      while (i < length && i - start < 3 && isDigit(units[i] as number)) i++;
      cost = 1;
      last = -1;
    } else if (code > spaceCode) {
      cost = last === punctuationKind ? 0.75 : 1;
      last = punctuationKind;
    } else {
      cost = 1;
      last = -1;
    }
    if (tokens + cost > limit)
      return { tokens, end: isLetter(code) ? start + within(text.slice(start, i), limit - tokens, tables) : start };
    tokens += cost;
  }
  return { tokens, end: i };
}

/** How many letters of a word fit that does not fit as a whole, so that an endless word still shows its start. */
function within(word: string, tokens: number, { pairCost, wordCost }: Tables): number {
  let pairs = 0;
  for (let end = 1; end < word.length; end++) {
    if (pairs + (wordCost[end] ?? 0) > tokens) return end - 1;
    pairs += pairCost[pairOf(word.charCodeAt(end - 1), word.charCodeAt(end))] ?? 0;
  }
  return word.length - 1;
}

function astralKind(point: number): number {
  let kind = astralKinds;
  while (point >= (kinds[kind]?.[0] ?? 0)) kind++;
  return kind;
}

/** A space is part of the word after it, but a token of its own before a digit, a space or a rare character. */
function spaceCost(next: number, kindOf: Uint8Array): number {
  if (next === spaceCode || isDigit(next)) return 1;
  return next >= 128 && (kindCosts[3 * (kindOf[next] ?? 0)] ?? 0) > 1.5 ? 1 : 0;
}

/**
 * The parts of the reference vocabulary (o200k_base) with which an estimate tells everyday text from noise. Printed by
 * `bench/token-tables.ts`.
 */

/** The most frequent pairs of letters in its words: the letters that follow `a`, `b`, `c` … */
export const commonPairs =
  'abcdfghijklmnprstuvwyz aeilorsu acehiklorstuy adeilorsuy abcdefghijklmnopqrstuvwxyz aefilortu aeghilnorsu aeilortuy abcdefgjklmnopqrstuvxz aeou aeiklostu adeilmostuy abeimopsu acdefghiknostuvyz abcdefgijklmnoprstuvwy aehiloprstu u abcdefgiklmnoprstuvy acehiklmopstuy acehilorstuy abcdefgiklmnprst aeio aeino eipt aemnops aeio';

/** Han characters that are one token, from U+4E00, as distances: `(` is 1, `~` is 86 and the distance goes on. */
// biome-ignore format: one line of data
const oneTokenHan = '(()+(((()(,())))(.(())**))))((()(,)*()())+*((+)((,1()2++)()()()()(,(***)())(((+/,((+,()(,((()(1((,)-+(+)+0*))-(((*)(+)0(+++1.(((*)+)(+*-13.,7)*()+/-1*((-4-+4*08)+(.-)*.6))0/2)06)(/-;6+.+=)-K2M<))((()())*(()-2)(()((*()(((((*((/()))(,.)(+3+)())+,-***5*(*).)(/)()*-(*.(,(((()*+(+),-(()(.,**+:*)(,**9;*(((.((.((--/2*++)*)B-8()G((,()+()+(*(((((()-((,+,()(*(1*(*)1*),.):+*(,((((((**)((2(((+((*()(*((2(+(()(()(+)+*(.((*(*,+()*)/)51-2)-((5(19)>.,;+(+*,EE()<+,=(+A-5+(8/(>HA,4@2D3~D*))(1*)((-*(/)*.+).+,/*.+)),*,((-*()+,+@/_2-2A(/F7*(C*+-4?7+),1@-K*))9*)+)-(+)**,)((***,(4(()+)*)(55()(((+,,(2**,72)2,,()(-)3>))+8*(<<;38BH1+(1DGn+()((-+()*60)))(()(*/())((((((((.*,()*+((,)--(1).)*2)(((()()())(()()(()*)+*.4.))((((((*,(+-0.1)7=+-/+-,P6-?~~J(*+(((-*().-(()*++-.0,)(((**),/7D(())*(()+()+,+((),*.(+)19A:(*-)((-,-)(.(8+))(?()4+*.(/)(+(*(**(+),.*/(+,(*--)(.1((*+.+1/*(4+*(.++)*87,)7.-.:=(**))/:,.2+/.+C3+G0**;,0y.^6(((+)5+-)))((*+(2)(*(()*2+))(+(,*,((10))(+)+)(--+.(/(*+,(())*(*-*(*.0)()(,)/7))12B1*303,(*-0-(*)()/>-()0-3.B4)5(41)(88625(3-0(19*43^9.*)*(-*+*)-)0(*-++(*67)20)(0*(++-+/0)*((((*(0+/+-),(2(,*,)4)+0.(.5-((+)+/,1,(8--O(:))+(*)((*,())1+))0)((())0-)(**,(((2*)+*,)((4()*3.*)(4352(*(/03)(.3++)-104((*-(*)+,9)82+?0).(72./;F,1e:/.(,AV4L,8-/).H;A,~]=(((+2/+2*.5(((((*0((*+6(2F,.+/((*)(-7K)**3+4+0(,)5/((*=*+),(0+*-)(/0-)+)*,(2--(**/*1+13+*.,/0**+(,*,01*(+-*8(1-)2)(-**J01--+1*/2,(/**0E)M((7-;H-0.*+32*4,50P++8(Z94~t/))(,02,+C1(()3>.(-[,7-742*J<9991NQ(+(((,1(+4)-(,)0.Z*.35.033+94(5(*-k3*))2,5-()09:48,*K0(QLTS.*7I))**(,/((())()(1.43,(,-72-;+*1).);~81U((((-)(N?))-((+((*++(1-+-*/)(:(C+B-)p`++-3)(9)E3<>)F(*F1),Ny))?.(.*,;5?;)()(1)+(-..0(27)(G*)3..N)+,)31-/M5,((,1.*?*9-A*)-*),E,)>13+6.)LZSM/50,417>(L,+(/.,(-),++(00)/+8,2(+D.:,D*/-/CQ6(*r;)+(*)**())((+)+()((,))))*(*()/)(*./*;*)82->-*6(++:,+7-,;+2-)3B(+()).+.C>)/+)+3,*,3-*12*(+-*/0*-)/-)*<),,60>.?,B*-,(DH*J.*-(-4(,,)*.(2)+05O*(+*++B6*)),,7))-5(29Z)8.)6)3/9,,24-(,<7:*9/8/*+835+-)F>@RkOGBI+)J5.~;)(+,,35+q+7NA~+>~~.3.++-))*J2-6);(*1-+*(.;,~><),,+.+4*01*(()))(08*A)-)+19*+).)@0++2)=*(2-3)(*)4/+2l)S651.0105()+(+((()-)+(((*))((*++)**,*(.))**()(**),*/0--0-6+>06:;(.(*2(*(+.>39H))(((((((*)),()((/*.(*,)+(*))).,+(((5,(?770,3)0.+)AA(~(QF*<B--H,08D)(*)(,.)-)(*/)*,*,*)/((.()((*+)(-)(*+()((((2(,.)+*(((**(,()),(,(*5(-*(-,*()(,(()0*)++(.*.(+49*++4:*>,//w,L(80@C*)((()~DW3~UR*jzwzD>**0*1-)@80++)(+-,0/,/@<B/(0)/66(Q3)*(+).-+A2/((((,+,(()+(*9),(-,((**0++((+.(I)+((2++,+(,)3(+,.-8;-A+*,)).Io=13)(()()//<5(7(.+->(*((*(,)2,((+(2M4*(7*?-?l()=)5*6+@uk<+(,,*5,-*1+/K+~5-*1,-~~~G,BCT~~~_))19-1H6?/.<(.(1*(--W,4B<9I03';

/** Hangul syllables that are one token, from U+AC00, in the same form. */
// biome-ignore format: one line of data
const oneTokenHangul = '((*+/((*+*(z++/()0;/(*+3(.C(*+2).+8JCC(*+42[C+?(*+/(N++/3/;{CCv~F7~M//0F73++/(*/++3/<J//3:0(*3,J++4,(~B+~=C++4J(*3,.(**(/()).:h(*33/s(*+4J;/++/(N/s_(*+2)J<.C{+~=~~~=:h(*3(+.(*3()1;J(*+/(1((*60(*+/(*(.C(*+0)hCC7(~0/;++/O(*+/()).(*))2)(-(*w(*+;+?+8)H(*+/*~J++~9C_++4),(()*(/,.(z++/(2++<*+4J(*+4.;~-(*+8~(C/W++4),~~~~?~Y+w(*+/,.(;?N(*+0+.++;++3K(*+4J_C(*+/k82C++/())J(*+/(+,)~A~~~~W+3O(*?(*))/(*(,)(*+;(;J(*+/((((/++;(*+/+(.C(*+02+7(.CC(;.(*+/*0++3/82+?(*+4.++/,.C(*+(.(*/(*+/(+.<f(*+/(+.(*?;K(*3,-(_CC(*+4.~A++/,J(*+/()).(B~~@~~~t(B(*))/,(-(z(*+/*).C;K(*8f_(*+/,.__(;J(*+/,./;{++/(2:0_++4~H~AC++/O++4.(*+4.(z++;(*+/k(*8f_{CC(*+W(*3,.++;(*wCC+8.C(*+/~1C//,~,C++W(*+2).(*+/(+.;(CJ+33C(*+0+.C(*+/,.(*+4J(BC+wCT+.C+3';

/**
 * The start of `text` that fits into `tokens`. It ends after a word (by spaces, or by the dictionary of a script
 * without them) and never inside a visible character. The suffix `… (+312 chars)` counts what is missing: the rest of
 * the text, and the characters `beyond` it that were cut before.
 */
export function truncate(text: string, tokens: number, beyond = 0): string {
  const fits = lengthWithin(text, tokens);
  if (fits >= text.length && beyond === 0) return text;
  const end = borderBefore(text, lengthWithin(text, Math.max(0, tokens - suffixTokens)));
  const kept = text.slice(0, end).trimEnd();
  return `${kept}… (+${text.length - kept.length + beyond} chars)`;
}

/** The suffix of a text that was cut, and the number in it. */
export const truncated = /… \(\+(\d+) chars\)$/;

/** The estimate of `… (+1234567 chars)`. */
const suffixTokens = 9;
/** How far a word or character at the border can reach beyond it. */
const reachAfter = 60;
/** A space this near is a good enough border. */
const nearEnough = 16;

/** Created when first needed: loading the rules takes a good part of the time in which a process starts. */
const segmenters: Partial<Record<'word' | 'grapheme', Intl.Segmenter>> = {};
function segmentAt(index: number, text: string, granularity: 'word' | 'grapheme'): number {
  segmenters[granularity] ??= new Intl.Segmenter('und', { granularity });
  return segmenters[granularity].segment(text).containing(index)?.index ?? 0;
}

function borderBefore(text: string, end: number): number {
  const space = Math.max(text.lastIndexOf(' ', end), text.lastIndexOf('\n', end));
  if (space > Math.max(end - nearEnough, end / 2)) return space;
  const around = text.slice(0, end + reachAfter);
  const word = segmentAt(end, around, 'word');
  if (word > end / 2) return word;
  // Characters of ASCII are visible each by itself.
  return plainPair.test(text.slice(end - 1, end + 1)) ? end : segmentAt(end, around, 'grapheme');
}

const plainPair = /^[ -~]{2}$/;

interface FitOptions<Item> {
  items: readonly Item[];
  /** Maximum tokens of the rendered text. */
  budget: number;
  render: (items: readonly Item[]) => string;
}

/**
 * How many leading items fit into the budget. At least one, if there are any: a single item is bounded by its view. A
 * list that fits is rendered once, any other about three times.
 */
export function fit<Item>({ items, budget, render }: FitOptions<Item>): number {
  if (items.length <= 1) return items.length;
  let fitting = { count: 0, length: 0 };
  let over = { count: items.length + 1, length: 0, within: 0 };
  let count = items.length;
  for (let tries = 1; over.count - Math.max(1, fitting.count) > 1; tries++) {
    const text = render(items.slice(0, count));
    const within = lengthWithin(text, budget);
    if (within < text.length) over = { count, length: text.length, within };
    else if (count === items.length) return count;
    else fitting = { count, length: text.length };
    // Most items are about as long: the border lies where so much of the text fits. Of others, half the way is surer.
    const share = tries > maxGuesses ? 1 / 2 : (over.within - fitting.length) / (over.length - fitting.length);
    const guess = Math.floor(fitting.count + share * (over.count - fitting.count));
    count = Math.max(fitting.count + 1, 2, Math.min(over.count - 1, guess));
  }
  return Math.max(1, fitting.count);
}

const maxGuesses = 4;

/** The last resort if the budget is smaller than one item: keeps whole lines, and says how much is missing. */
export function clampLines(text: string, budget: number): string {
  if (fitsWithin(text, budget)) return text;
  const end = lengthWithin(text, budget - noteTokens);
  const border = text.lastIndexOf('\n', end);
  const kept = border > 0 ? text.slice(0, border) : truncate(text, budget - noteTokens);
  return `${kept}\n(cut to fit: ${text.length - kept.length} more characters)`;
}

const noteTokens = 16;

/** A service text for a message of this server: made safe, bounded, and quoted, so that it cannot pose as our words. */
export const untrustedText = (text: string, tokens: number): string =>
  quote(truncate(sanitize(text.slice(0, maxText)), tokens, Math.max(0, text.length - maxText)));

/** In characters; the rest is not even read. */
const maxText = 20_000;
const maxId = 200;

/** A service id or code as data. */
export const untrustedId = (text: string): string =>
  truncate(sanitizeLine(text.slice(0, maxId)), 60, Math.max(0, text.length - maxId));

/** The same for a message of this server. */
export const untrustedWord = (text: string): string => word(untrustedId(text));
