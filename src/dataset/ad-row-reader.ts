import { setImmediate } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { idKey, type StoredItem } from '../state/dataset.ts';
import { copyOf, variantCopy } from './ad-copy.ts';
import { type AdRows, adRows, languageText } from './ad-row.ts';
import { idCell } from './cells.ts';
import { type DetectLanguage, loadLanguageDetector } from './language.ts';
import { VariantIndex } from './variants.ts';

/** What takes long to find out about an ad, and stays as long as its content. */
interface SlowFacts {
  since: number;
  language: string | null;
  variant: string | null;
}

interface KnownFacts {
  byId: Map<string, SlowFacts>;
  variants: VariantIndex;
}

/** Tenants whose facts are remembered, as many as have their tables open for SQL. */
const MAX_TENANTS = 2;
/** Ads read at once; others get their turn in between. */
const PART = 50;

const decoder = new TextDecoder();

/** Makes rows of stored ads. Finds out only once in which language an ad is, and which ads are variants of it. */
export class AdRowReader {
  readonly #known = new LRUCache<string, KnownFacts>({ max: MAX_TENANTS });
  #language: Promise<DetectLanguage> | undefined;

  /** The rows in parts. @param ads in the order they came, since a variant is called by its earliest ad */
  async *read(tenantId: string, ads: readonly StoredItem[], { json }: { json: boolean }): AsyncGenerator<AdRows[]> {
    this.#language ??= loadLanguageDetector();
    const detect = await this.#language;
    const known = this.#factsOf(tenantId, ads.length);
    for (let start = 0; start < ads.length; start += PART) {
      yield ads.slice(start, start + PART).map((item) => rowsOf(item, { json, known, detect }));
      await setImmediate();
    }
  }

  #factsOf(tenantId: string, ads: number): KnownFacts {
    const known = this.#known.get(tenantId);
    // Ads that were let go are still in there.
    if (known !== undefined && known.byId.size <= 2 * ads + 1000) return known;
    const empty = { byId: new Map(), variants: new VariantIndex() };
    this.#known.set(tenantId, empty);
    return empty;
  }
}

interface Reading {
  json: boolean;
  known: KnownFacts;
  detect: DetectLanguage;
}

function rowsOf(item: StoredItem, { json, known, detect }: Reading): AdRows {
  const text = decoder.decode(item.json);
  const ad = JSON.parse(text) as Record<string, unknown>;
  const key = idKey(item.id);
  let facts = known.byId.get(key);
  if (facts?.since !== item.since) {
    const variant = known.variants.add({ id: item.id, pageId: idCell(ad.pageId), copy: variantCopy(copyOf(ad)) });
    facts = { since: item.since, language: detect(languageText(ad)), variant };
    known.byId.set(key, facts);
  }
  const { language, variant } = facts;
  const { at: gatheredAt, firstAt: firstGatheredAt } = item;
  return adRows(ad, { gatheredAt, firstGatheredAt, language, variant, json: json ? text : '' });
}
