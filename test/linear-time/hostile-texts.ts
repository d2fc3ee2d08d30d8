/** Characters that some pattern of ours treats as special, or that cleaning a text removes, keeps or looks beside. */
const characters = [
  ...'aZ09 _-.,:;=?!&#%/\\|*+~^$@<>()[]{}"\'`\n\t\r',
  ...['©', '®', '‼', '⁉', '↔', '↗', '↩', '↪', '❤', '👩', '🏽', '🏴', '🇩', '\ufe0f', '\ufe0e', '\u20e3', '…', 'é', 'ß'],
  ...['\u200b', '\u200c', '\u200d', '\u202e', '\u2066', '\u2028', '\xad', '\xa0', '\u2800', '\u3164', '\ufeff', '\0'],
  ...['\u0301', '\u{1d167}', '\u094d', '\u0e31', 'क', 'م', 'ก', '中', 'か', '한', '\u{e0067}', '\u{e007f}'],
  ...'\ud800 \udc00 👩\u200d ❤\ufe0f \\u0041 %25 &amp; {{ [a]( <a> svc_ svc_live_CANARY'.split(' '),
  'aaa ',
];

/** What makes a pattern fail, or a text end in the middle of something. */
const endings = ['ก\u202e!', '"x'];

export interface HostileText {
  name: string;
  ofLength(length: number): string;
}

const hostileText = (start: string, piece: string, end: string): HostileText => ({
  name: `${JSON.stringify(start)}, then ${JSON.stringify(piece)} over and over, then ${JSON.stringify(end)}`,
  ofLength: (length) => start + piece.repeat(Math.ceil(length / piece.length)) + end,
});

/** Each of the characters over and over, and something at the end. */
export const hostileTexts: HostileText[] = characters.flatMap((piece) =>
  endings.map((end) => hostileText('', piece, end)),
);

/** What a pattern is made of over and over: its words, its characters, two of them in turn, one of them after another. */
export function textsAgainst({ source, flags }: RegExp): HostileText[] {
  const written = source.replace(/\\u\{?([\da-f]{4,6})\}?/gi, (_, hex) =>
    String.fromCodePoint(Number.parseInt(hex, 16)),
  );
  const classes = [/\\s/, /\\d/, /\\w|a-z/, /\[\^/].flatMap((name, at) =>
    name.test(source) ? (' 0a.'[at] ?? '') : [],
  );
  const signs = written.replace(/\\[pP]\{[^}]*\}|\\[a-z]|[a-z]-[a-z]|[\^$+*?(){}|\\]|\d,?\d*(?=\})/gi, '');
  const letters = [...new Set([...classes, ...signs])].slice(0, 14);
  const pairs = letters.flatMap((first) => letters.map((second) => [first, second] as const));
  const pieces = [...(source.match(/[\w<@.-]{2,}/g) ?? []), ...letters, ...pairs.map((pair) => pair.join(''))];
  const own = [...new Set(pieces)].map((piece) => hostileText('', piece, endings[0] ?? ''));
  const after = pairs.map(([first, second]) => hostileText(first + second, second, endings[0] ?? ''));
  return [...own, ...after, ...hostileTexts.filter((_, at) => flags.includes('u') || at % 2 === 0)];
}
