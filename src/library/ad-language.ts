import type { Ad } from '../api/schemas.ts';
import { loadLanguageDetector } from '../language/detector.ts';
import { textsIn } from './record-type.ts';

/** Adds the language that its copy tells to an ad that names none, for the index: the stored record stays as it is. */
export async function loadAdLanguage(): Promise<(ad: Ad) => Ad> {
  const detect = await loadLanguageDetector();
  return (ad) => {
    if (textsIn(ad.languages).length > 0) return ad;
    const cards = (ad.cards ?? []).flatMap(({ title, body }) => [title, body]);
    const copy = new Set([ad.headline, ad.body, ...cards].filter((text) => typeof text === 'string'));
    const language = detect([...copy].join('\n') || null);
    return language === null ? ad : { ...ad, languages: [language] };
  };
}
