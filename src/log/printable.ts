/** Control and invisible characters, but for line breaks, tabs and the return at the start of a progress line. */
const hidden = /(?!^\r|[\n\t])[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/**
 * Writes characters that could steer a terminal as escapes. Those of JSON, so that a line of JSON still means the same.
 */
export const printable = (text: string): string =>
  text.replace(hidden, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
