import { parseUrl } from '../views/urls.ts';
import { type Fields, isNumber, readObjects } from '../views/view.ts';
import { type Row, toIdCell, toTextCell } from './tables.ts';

/*
 * What imported ads disclose because of transparency laws. `src/library/import` writes these fields. A service sends
 * none of them.
 */

/**
 * Returns who paid for an ad and who benefits from it. The current entry of `beneficiaryPayers` counts before earlier
 * ones. `bylines` is the disclaimer that names the payer of a political ad.
 */
export function readPayers({ payer, beneficiary, beneficiaryPayers, bylines }: Fields) {
  const entries = readObjects(beneficiaryPayers);
  const current = entries.find((entry) => entry.current === true) ?? entries[0];
  return {
    payer: toTextCell(payer) ?? toTextCell(current?.payer) ?? toTextCell(bylines),
    beneficiary: toTextCell(beneficiary) ?? toTextCell(current?.beneficiary),
  };
}

/**
 * Returns the address of an imported ad in its public ad library, where anybody can check the ad. An ad of the Meta Ad
 * Library is found by its archive id. For other libraries, the address is the one that the source gave.
 */
export function findPublicUrl({ adLibrary, adArchiveId, adSnapshotUrl, publicUrl }: Fields): string | null {
  const archiveId = toIdCell(adArchiveId) ?? '';
  if ((adLibrary === undefined || adLibrary === 'meta') && /^\d{1,30}$/.test(archiveId))
    return `https://www.facebook.com/ads/library/?id=${archiveId}`;
  const url = [adSnapshotUrl, publicUrl].map((text) => parsePublicUrl(text)).find(Boolean);
  return url ?? null;
}

const maxUrlChars = 2000;

/** Returns an https URL. A user name could make the URL look like one of another host, so such a URL is refused. */
function parsePublicUrl(text: unknown): string | undefined {
  const url = typeof text === 'string' && text.length <= maxUrlChars ? parseUrl(text) : undefined;
  return url?.protocol === 'https:' && url.username + url.password === '' ? url.href : undefined;
}

/** The most rows of one ad. There are about 250 countries, 7 age ranges and 3 genders. */
const maxReachRows = 5000;

/**
 * Returns how many people an ad reached, by country, age range and gender. Countries for which a library states only a
 * total have one row without age and gender. A country never has both, so that the rows can be added up.
 */
export function listReach(id: string, ad: Fields): Row<'ad_reach'>[] {
  const rows: Row<'ad_reach'>[] = [];
  for (const { country, age_gender_breakdowns: groups } of readObjects(ad.ageCountryGenderReachBreakdown))
    for (const group of readObjects(groups))
      for (const gender of ['female', 'male', 'unknown'])
        if (isNumber(group[gender]))
          rows.push({
            id,
            country: toTextCell(country),
            age: toTextCell(group.age_range),
            gender,
            reach: group[gender],
          });
  const countries = new Set(rows.map(({ country }) => country));
  const totals = typeof ad.reachByCountry === 'object' && ad.reachByCountry !== null ? ad.reachByCountry : {};
  for (const [country, reach] of Object.entries(totals))
    if (isNumber(reach) && !countries.has(country)) rows.push({ id, country, age: null, gender: null, reach });
  return rows.slice(0, maxReachRows);
}
