import type { ShapeName } from './shapes.ts';

/** Words in the name of a product, and what it is drawn as. The first match wins, so narrower words come first. */
const words: readonly (readonly [ShapeName, RegExp])[] = [
  [
    'phone',
    /\bapp\b|ऐप|game|isles|keepers|scanner|books\b|payroll|savings|family\b|software|play_game|install|download/i,
  ],
  [
    'book',
    /notebook|ノート|万年筆|course|curso|clase|kurs|英語|故事|회화|수학|परीक्षा|गणित|school|lesson|\bbook\b|education/i,
  ],
  [
    'cup',
    /\btea\b|thee\b|\bthé\b|trà|çay|demlik|coffee|caf[eé]|kaffee|röst|früh|tostado|ブレンド|飲み比べ|茶|찻|커피|mug|kettle/i,
  ],
  ['pot', /\bpan\b|\boven\b|cookware|\bpot\b|餐盤|sambal|rendang|\bdal\b|국|도시락|spice|cocina/i],
  ['jar', /\bcrem|crème|크림|balm|m[aá]scara|soap|สบู่|handcr/i],
  ['bottle', /serum|sérum|セラム|세럼|เซรั่ม|aceite|huile|\boil\b|عطر|عود|skin|lotion|perfume/i],
  ['shoe', /shoe|sneaker|sepatu|schuh|zapat|chaussure|scarp|boot\b/i],
  ['jacket', /jacket|jacke|parka|coat|manteau|shirt|dress|hoodie|merino/i],
  ['bag', /\bbag\b|borsa|bolso|tasche|\btas\b|sac\b|cintura|backpack/i],
  ['bicycle', /v[ée]lo\b|fiets|bike|bicycle|fahrrad|bici|casque|helmet/i],
  ['lamp', /leuchte|lamp|दीया|light/i],
  ['panel', /battery|solar|rooftop|energy|get_quote/i],
  ['bed', /mattress|pillow|bed\b|枕|布団|matelas|matratze|colch|sleep|कालीन|दरी/i],
  ['sofa', /sof[aá]|couch|canap[ée]|divano/i],
  ['table', /mesa\b|table\b|tisch\b|chair|desk|furniture/i],
  ['bowl', /chicken|dental|\bdog|\bcat\b|pet\b|paw|bowl/i],
  ['basket', /panier|temporada|scatola|trofia|pasta|pão|تمور|معمول|grocer|basket/i],
  ['mountains', /pacote|roteiro|weekend|pobyt|رحلة|عطلة|travel|tour\b|hotel|trip|holiday|viage|book_travel/i],
];

/** @param texts about the product, the most specific first */
export function shapeFor(texts: (string | null | undefined)[]): ShapeName {
  for (const text of texts) {
    const found = words.find(([, pattern]) => text && pattern.test(text.normalize('NFC')));
    if (found) return found[0];
  }
  return 'box';
}
