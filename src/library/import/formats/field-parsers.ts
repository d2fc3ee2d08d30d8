import { isObject } from '../../../views/view.ts';
import { quoteValue } from '../../service/request.ts';
import type { ColumnValueParser } from '../values/column-value-parser.ts';
import { decodeCharacterReferences } from '../values/markup.ts';
import { parseShare } from '../values/numbers.ts';
import type { JsonObject } from './import-format.ts';

/**
 * Parses a value of an imported record for a field of an ad. `keyName` is the name of the key or column in the imported
 * file, for error messages.
 */
export type FieldParser = (sourceValue: unknown, keyName: string, parser: ColumnValueParser) => unknown;

/** Decodes HTML character references in a text, e.g. `&amp;` to `&`. Returns undefined unchanged. */
export function decodeText<Text extends string | undefined>(text: Text): Text {
  return text === undefined ? text : (decodeCharacterReferences(text) as Text);
}

/** Parses a text, and decodes HTML entities in the text. */
export const parseText: FieldParser = (value, _, parser) => decodeText(parser.parseText(value));
/** Parses a list of texts, and returns the first text. */
export const parseFirstText: FieldParser = (value, _, parser) => decodeText(parser.parseTexts(value)?.[0]) || undefined;
/** Parses a list of names, e.g. of platforms. */
export const parseNames: FieldParser = (value, keyName, parser) => parser.parseNames(keyName, value);
/** Parses a list of names, and converts the names to upper case. */
export const parseUpperCaseNames: FieldParser = (value, keyName, parser) =>
  parser.parseNames(keyName, value)?.map((item) => item.toUpperCase());
/** Parses a text, and converts the text to upper case. */
export const parseUpperCaseText: FieldParser = (value, keyName, parser) =>
  String(parseText(value, keyName, parser) ?? '').toUpperCase() || undefined;
/** Parses a date in the notation of its column. */
export const parseDate: FieldParser = (value, keyName, parser) => parser.parseDate(keyName, value);
/** Parses a whole number in the notation of its column. */
export const parseCount: FieldParser = (value, keyName, parser) =>
  parser.parseNumber(keyName, value, { isCount: true });
/** Parses a value that means true or false. */
export const parseBoolean: FieldParser = (value, keyName, parser) => parser.parseBoolean(keyName, value);
/** Parses the name of an advertiser. Returns the name in the form of the API's field `page`. */
export const parsePageName: FieldParser = (value, keyName, parser) => {
  const pageName = parseText(value, keyName, parser);
  return pageName === undefined ? undefined : { pageName };
};

/**
 * Parses a list of alternative texts of an ad, e.g. several headlines. Returns undefined for a single text, because
 * another field of the ad already contains the first text.
 */
export const parseAlternativeTexts: FieldParser = (sourceValue, _, parser) => {
  const texts = parser.parseTexts(sourceValue);
  return texts && texts.length > 1 ? texts.map(decodeText) : undefined;
};

/** Converts a text to the form of the API's constants, e.g. `Shop now` to `SHOP_NOW`. */
export const parseApiConstant: FieldParser = (sourceValue, _, parser) =>
  parser
    .parseText(sourceValue)
    ?.trim()
    .toUpperCase()
    .replace(/[^\p{L}\p{N}]+/gu, '_') || undefined;

/**
 * Parses a list of objects. Also accepts a single object, or a text with objects in JSON or Python notation.
 * @throws Error for any other value
 */
export function parseObjects(sourceValue: unknown, keyName: string, parser: ColumnValueParser): JsonObject[] {
  const structure = parser.parseStructure(sourceValue, { allowsBareWords: true });
  const listItems: unknown[] = Array.isArray(structure)
    ? structure
    : isObject(structure) && Object.keys(structure).length === 0
      ? []
      : [structure];
  const objects = listItems.filter(isObject) as JsonObject[];
  if (objects.length < listItems.length)
    throw new Error(`${keyName}: ${quoteValue(sourceValue)} is not a list of objects`);
  return objects;
}

/**
 * Parses a list of objects one by one. Reports each object that cannot be parsed and leaves it out.
 * @param parseObject parses an object; returns undefined for an object without values
 * @throws Error if the value is not a list of objects
 */
export function parseEachObject<ParsedObject>(
  sourceValue: unknown,
  keyName: string,
  parser: ColumnValueParser,
  parseObject: (item: JsonObject) => ParsedObject | undefined,
): ParsedObject[] | undefined {
  const parsedObjects = parseObjects(sourceValue, keyName, parser).flatMap((item) => {
    try {
      return parseObject(item) ?? [];
    } catch (error) {
      parser.addValueError(error);
      return [];
    }
  });
  return parsedObjects.length > 0 ? parsedObjects : undefined;
}

/**
 * Parses a list of objects with the `percentage` key, e.g. the share of viewers for each age range. Converts the
 * percentages to numbers from 0 to 1.
 */
export const parseShares: FieldParser = (sourceValue, keyName, parser) => {
  const shares = parseObjects(sourceValue, keyName, parser);
  if (shares.length === 0) return undefined;
  return shares.map((share) => {
    if (!('percentage' in share)) return share;
    return { ...share, percentage: parseShare(share.percentage) ?? share.percentage };
  });
};

/** The error for an id that is wrong or that a program has rounded. An ad without a reliable id cannot be stored. */
export class UnreliableIdError extends Error {}

/**
 * Parses the id of an ad or an advertiser page.
 * @throws UnreliableIdError if a program rounded the id, because several ads or pages may have the same rounded id
 */
export const parseId: FieldParser = (sourceValue, keyName, parser) => {
  const idText = parser.parseText(sourceValue)?.trim();
  // Python writes whole numbers as `12.0` if any other cell of the column is empty.
  const id = idText?.replace(/^(\d+)\.0$/, '$1');
  const isFloat = id !== idText || typeof sourceValue === 'number';
  if ((isFloat && !Number.isSafeInteger(Number(id))) || /^\d(?:[.,]\d+)?e\+?\d+$/i.test(id ?? ''))
    throw new UnreliableIdError(
      `${keyName}: ${id} is a rounded number, so the id is lost; export the ids again as text`,
    );
  return id === '' ? undefined : id;
};

/**
 * Creates a parser for the ids of ads in an ad library that numbers its ads. The parser removes a label, as in
 * `Library ID: 123`.
 * @returns a parser that throws UnreliableIdError if an id does not consist of digits, because the ad cannot be found
 * again under such an id, and because the id may be from another ad library
 */
export const createNumericIdParser =
  (adLibraryTitle: string): FieldParser =>
  (value, keyName, parser) => {
    const id = parseId(value, keyName, parser) as string | undefined;
    const digits = /^(?:(?:library )?id ?: ?)?(\d{1,40})$/i.exec(id ?? '')?.[1];
    if (id === undefined || digits !== undefined) return digits;
    throw new UnreliableIdError(
      `${keyName}: ${quoteValue(id)} is not the id of an ad in the ${adLibraryTitle}, which consists of digits`,
    );
  };
