/**
 * Undoes JSON escapes, percent codes and HTML entities, even if one escapes another. The result is for searching only:
 * it leaves out characters that are not ASCII.
 */
export function spelledOut(text: string): string {
  let plain = text;
  let again = ESCAPE.test(text);
  for (let round = 0; again && round < maxRounds; round++) {
    again = false;
    plain = plain.replace(ESCAPED, (whole, ...groups) => {
      const character = unescaped(whole, groups);
      again ||= ESCAPE.test(character);
      return character;
    });
  }
  return plain;
}

/** Levels of different escapes inside each other; the same one repeated is undone in one round. */
const maxRounds = 4;

const ESCAPE = /[%&\\]/;
const ESCAPED = new RegExp(
  [
    String.raw`%(?:25)*([\da-f]{2})`,
    String.raw`(?<!\\)\\+(?:u\{?0*([\da-f]{1,4})\}?|x([\da-f]{2})|([!-/:-@[\]-${'`'}{-~]))`,
    String.raw`&(?:amp;)*(?:#x0*([\da-f]{1,4});?|#0*(\d{1,4});?|(amp|apos|bsol|equals|gt|lowbar|lt|percnt|period|plus|quot|sol);)`,
  ].join('|'),
  'gi',
);

const ENTITIES: Record<string, string> = {
  amp: '&',
  apos: "'",
  bsol: '\\',
  equals: '=',
  gt: '>',
  lowbar: '_',
  lt: '<',
  percnt: '%',
  period: '.',
  plus: '+',
  quot: '"',
  sol: '/',
};

/** Empty if not ASCII: hidden characters would stand between others. */
function unescaped(whole: string, [percent, u, x, sign, hex, decimal, name]: (string | undefined)[]): string {
  if (sign !== undefined) return sign;
  if (name !== undefined) return ENTITIES[name.toLowerCase()] ?? whole;
  const code = decimal === undefined ? Number.parseInt(percent ?? u ?? x ?? hex ?? '', 16) : Number(decimal);
  return code < 0x80 ? String.fromCharCode(code) : '';
}
