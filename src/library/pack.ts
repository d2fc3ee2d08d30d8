/**
 * Numbers in few bytes, for cursors. Each begins with a whole number, seven bits to a byte, whose last two bits say what
 * it is: a whole number, a count of days (as most dates are), null, or a sign that eight bytes of a float follow.
 */
const kinds = { whole: 0, days: 1, nothing: 2, float: 3 } as const;
const day = 86_400_000;
/** Whole numbers up to here stay exact when two bits are added. */
const highest = 2 ** 50;

export function packNumbers(numbers: readonly (number | null)[]): Buffer {
  return Buffer.concat(numbers.map(packed));
}

function packed(value: number | null): Uint8Array {
  if (value === null) return sevens(kinds.nothing);
  const fits = Number.isInteger(value) && value >= 0 && value <= highest;
  if (fits && value > 0 && value % day === 0) return sevens((value / day) * 4 + kinds.days);
  if (fits) return sevens(value * 4 + kinds.whole);
  const float = Buffer.alloc(8);
  float.writeDoubleBE(value);
  return Buffer.concat([sevens(kinds.float), float]);
}

function sevens(whole: number): Uint8Array {
  const bytes: number[] = [];
  let left = whole;
  for (; left > 127; left = Math.floor(left / 128)) bytes.push((left % 128) + 128);
  return Uint8Array.from([...bytes, left]);
}

/** The first `count` numbers, and the bytes after them. */
export function unpackNumbers(bytes: Buffer, count: number): { numbers: (number | null)[]; rest: Buffer } {
  let at = 0;
  const next = () => {
    let whole = 0;
    for (let unit = 1; ; unit *= 128) {
      const byte = bytes.readUInt8(at++);
      whole += (byte % 128) * unit;
      if (byte < 128) break;
    }
    const value = Math.floor(whole / 4);
    switch (whole % 4) {
      case kinds.whole:
        return value;
      case kinds.days:
        return value * day;
      case kinds.nothing:
        return null;
      default:
        at += 8;
        return bytes.readDoubleBE(at - 8);
    }
  };
  const numbers = Array.from({ length: count }, next);
  return { numbers, rest: bytes.subarray(at) };
}
