import { isObject } from '../../../views/view.ts';
import { type ColumnValueParser, isMissingValue } from '../values/column-value-parser.ts';
import { decodeText, type FieldParser, parseEachObject, parseObjects, parseText } from './field-parsers.ts';
import type { FieldReader } from './field-reader.ts';
import type { JsonObject } from './import-format.ts';
import { SourceRecord } from './source-record.ts';

/*
 * Information that Meta must publish about an ad, mainly because of the Digital Services Act: who paid, who benefits,
 * and whom the ad reached. Meta's API has this information in fields of the ad. Meta's website has it in the objects
 * `aaa_info` and `transparency_by_location`, which are not documented. Scrapers pass these objects on unchanged.
 */

/** An entry of the `beneficiary_payers` list, which says who paid for an ad and on whose behalf it ran. */
interface PayerEntry {
  payer?: string;
  beneficiary?: string;
  current?: boolean;
}

/** Parses the `beneficiary_payers` list, which says who paid for an ad and on whose behalf the ad ran. */
export const parsePayers: FieldParser = (sourceValue, keyName, parser) =>
  parseEachObject(sourceValue, keyName, parser, (payerObject): PayerEntry | undefined => {
    const payerRecord = new SourceRecord(Object.entries(payerObject));
    const readText = (key: string) => decodeText(parser.parseText(payerRecord.get(key)));
    const [payer, beneficiary] = [readText('payer'), readText('beneficiary')];
    if (payer === undefined && beneficiary === undefined) return undefined;
    const current = parseOrReport(parser, () => parser.parseBoolean(`${keyName}.current`, payerRecord.get('current')));
    return { ...(payer && { payer }), ...(beneficiary && { beneficiary }), ...(current !== undefined && { current }) };
  });

/**
 * Calls `parseValue` and returns its result. If `parseValue` throws an error, reports the error and returns undefined.
 */
function parseOrReport<Value>(parser: ColumnValueParser, parseValue: () => Value): Value | undefined {
  try {
    return parseValue();
  } catch (error) {
    parser.addValueError(error);
    return undefined;
  }
}

/**
 * Parses the reach of an ad by country, age and gender: a list of `{ country, age_gender_breakdowns: [{ age_range,
 * male, female, unknown }] }`. Converts counts that are written as text to numbers.
 */
export const parseReachBreakdown: FieldParser = (sourceValue, keyName, parser) => {
  const breakdown = parseObjects(sourceValue, keyName, parser).map((countryReach): JsonObject => {
    const ageGroups = parser.parseStructure(countryReach.age_gender_breakdowns);
    if (!Array.isArray(ageGroups)) return countryReach;
    return { ...countryReach, age_gender_breakdowns: ageGroups.map((group) => parseCounts(group, keyName, parser)) };
  });
  return breakdown.length > 0 ? breakdown : undefined;
};

const genderKeys = ['male', 'female', 'unknown'];

function parseCounts(ageGroup: unknown, keyName: string, parser: ColumnValueParser): unknown {
  if (!isObject(ageGroup)) return ageGroup;
  const counts = genderKeys.flatMap((key) => {
    const count = isMissingValue(ageGroup[key])
      ? undefined
      : parseOrReport(parser, () => parser.parseNumber(keyName, ageGroup[key], { isCount: true }));
    return count === undefined ? [] : [[key, count] as const];
  });
  return { ...ageGroup, ...Object.fromEntries(counts) };
}

/**
 * Parses the reach of an ad by location, from an object or a list of `{ key, value }`. Returns only the countries,
 * without the total for `EU`.
 */
export const parseReachByCountry: FieldParser = (sourceValue, keyName, parser) => {
  const reachByLocation = parseObjects(sourceValue, keyName, parser).flatMap((item): [string, unknown][] =>
    'key' in item && 'value' in item ? [[String(item.key), item.value]] : Object.entries(item),
  );
  const counts = reachByLocation.flatMap(([country, count]) => {
    const isCountry = /^(?!EU$)[A-Z]{2}$/.test(country);
    const reach = isCountry
      ? parseOrReport(parser, () => parser.parseNumber(keyName, count, { isCount: true }))
      : undefined;
    return reach === undefined ? [] : [[country, reach] as const];
  });
  return counts.length > 0 ? Object.fromEntries(counts) : undefined;
};

/**
 * Reads the reach, payers and targeting of an ad from the objects `aaa_info` and `transparency_by_location` of Meta's
 * website. Skips fields that the ad already has.
 */
export function readTransparency(record: SourceRecord, reader: FieldReader, parser: ColumnValueParser): void {
  const locations = parser.parseStructure(record.get('transparencybylocation'));
  const sourceObjects = [
    ['aaa_info', record.get('aaainfo')] as const,
    ...Object.entries(isObject(locations) ? locations : {}),
  ].flatMap(([name, value]) => {
    const object = parser.parseStructure(value);
    return isObject(object) ? [{ name, source: new SourceRecord(Object.entries(object)) }] : [];
  });
  const setFirstValue = (field: string, keys: readonly string[], parse: FieldParser) => {
    if (reader.ad[field] !== undefined) return;
    for (const { name, source } of sourceObjects)
      for (const key of keys) {
        const value = source.get(key);
        if (isMissingValue(value)) continue;
        try {
          reader.setField(field, parse(value, `${name}.${key}`, parser));
          if (reader.ad[field] !== undefined) parser.addFieldSource(field, `${name}.${key}`);
        } catch (error) {
          parser.addValueError(error);
        }
        if (reader.ad[field] !== undefined) return;
      }
  };
  setFirstValue('audienceReach', ['eutotalreach', 'totalreach'], (value, keyName) =>
    parser.parseNumber(keyName, value, { isCount: true }),
  );
  setFirstValue('ageCountryGenderReachBreakdown', ['agecountrygenderreachbreakdown'], parseReachBreakdown);
  setFirstValue('beneficiaryPayers', ['payerbeneficiarydata'], parsePayers);
  setFirstValue('targetLocations', ['locationaudience'], (value) => parser.parseStructure(value));
  setFirstValue('targetGender', ['genderaudience'], parseText);
  setFirstValue('targetAges', ['ageaudience'], (value) => parser.parseStructure(value));
}

/**
 * Sets the payer and beneficiary of an ad, unless they are already set. Uses the current entry in its list of payers,
 * or the first entry if none is current.
 */
export function setCurrentPayer(ad: JsonObject): void {
  const payers = (ad.beneficiaryPayers ?? []) as PayerEntry[];
  const { payer, beneficiary } = payers.find(({ current }) => current === true) ?? payers[0] ?? {};
  if (payer !== undefined) ad.payer ??= payer;
  if (beneficiary !== undefined) ad.beneficiary ??= beneficiary;
}
