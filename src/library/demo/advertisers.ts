import type { Industry } from './industry.ts';
import type { asianPhrases } from './phrases-asia.ts';
import type { europeanPhrases } from './phrases-europe.ts';

export type Language =
  | 'en'
  | 'de'
  | 'fr'
  | 'es'
  | 'pt'
  | 'it'
  | keyof typeof europeanPhrases
  | keyof typeof asianPhrases;

/** A made-up advertiser. Nobody of these exists; every address ends in `.example`, which nobody can own. */
export type Advertiser = {
  name: string;
  domain: string;
  industry: Industry;
  language: Language;
  countries: string[];
  /** What it sells, and for how much in its own currency. */
  products: [name: string, price: number][];
  points: string[];
};
