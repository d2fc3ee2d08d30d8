import { parseHttpsUrl } from '../views/urls.ts';
import { isFiniteNumber, readObjects, type UntypedFields } from '../views/view.ts';
import { type Row, toIdCell, toTextCell } from './tables.ts';

/*
 * Reads fields that imported ads have because of transparency laws, e.g. who paid for an ad. `src/library/import`
 * writes these fields. The API does not return them.
 */

/**
 * Returns the payer and the beneficiary of an ad. Uses the current entry in `beneficiaryPayers`, or the first
 * entry if none is current. `bylines` is the disclaimer of a political ad, and is used if no other field names the
 * payer.
 */
export function readPayers({ payer, beneficiary, beneficiaryPayers, bylines }: UntypedFields) {
  const payerEntries = readObjects(beneficiaryPayers);
  const currentEntry = payerEntries.find((entry) => entry.current === true) ?? payerEntries[0];
  return {
    payer: toTextCell(payer) ?? toTextCell(currentEntry?.payer) ?? toTextCell(bylines),
    beneficiary: toTextCell(beneficiary) ?? toTextCell(currentEntry?.beneficiary),
  };
}

/**
 * Returns the URL at which anyone can look up an imported ad in its public ad library. For the Meta Ad Library, the URL
 * is built from the ad's archive id. For other libraries, the imported ad contains the URL.
 */
export function findPublicUrl({ adLibrary, adArchiveId, adSnapshotUrl, publicUrl }: UntypedFields): string | null {
  const archiveId = toIdCell(adArchiveId) ?? '';
  if ((adLibrary === undefined || adLibrary === 'meta') && /^\d{1,30}$/.test(archiveId))
    return `https://www.facebook.com/ads/library/?id=${archiveId}`;
  return parseHttpsUrl(adSnapshotUrl) ?? parseHttpsUrl(publicUrl) ?? null;
}

/**
 * The maximum number of `ad_reach` rows per ad. It is close to the number of combinations of about 250 countries, 7 age
 * ranges and 3 genders.
 */
const maxReachRows = 5000;

/**
 * Returns the number of people that an ad reached, by country, age range and gender. If only the total of a country is
 * known, the country has a single row without age and gender. No country has both kinds of rows, so the rows can be
 * summed.
 */
export function listReach(id: string, ad: UntypedFields): Row<'ad_reach'>[] {
  const rows: Row<'ad_reach'>[] = [];
  for (const { country, age_gender_breakdowns: ageGroups } of readObjects(ad.ageCountryGenderReachBreakdown))
    for (const ageGroup of readObjects(ageGroups))
      for (const gender of ['female', 'male', 'unknown'])
        if (isFiniteNumber(ageGroup[gender]))
          rows.push({
            id,
            country: toTextCell(country),
            age: toTextCell(ageGroup.age_range),
            gender,
            reach: ageGroup[gender],
          });
  const countries = new Set(rows.map(({ country }) => country));
  const totals = typeof ad.reachByCountry === 'object' && ad.reachByCountry !== null ? ad.reachByCountry : {};
  for (const [country, reach] of Object.entries(totals))
    if (isFiniteNumber(reach) && !countries.has(country)) rows.push({ id, country, age: null, gender: null, reach });
  return rows.slice(0, maxReachRows);
}
