/**
 * Silhouettes of products for the pictures of ads, chosen by words in the product's name. Each stands on the ground at
 * y 620, around x 540; `l` is a light colour for its details.
 */
type Silhouette = { pattern: RegExp; draw: (l: string) => string };

/** The first match wins, so narrower words come first. */
const silhouettes: Record<string, Silhouette> = {
  phone: {
    pattern:
      /\bapp\b|ऐप|game|isles|keepers|scanner|books\b|payroll|savings|family\b|software|play_game|install|download/i,
    draw: (l) =>
      `<rect x="430" y="230" width="220" height="390" rx="36"/><rect x="450" y="268" width="180" height="304" rx="10" fill="${l}"/><rect x="474" y="300" width="60" height="60" rx="14"/><rect x="548" y="300" width="60" height="60" rx="14"/><rect x="474" y="376" width="134" height="22" rx="11"/><rect x="474" y="414" width="96" height="22" rx="11"/><rect x="500" y="590" width="80" height="10" rx="5" fill="${l}"/>`,
  },
  book: {
    pattern:
      /notebook|ノート|万年筆|course|curso|clase|kurs|英語|故事|회화|수학|परीक्षा|गणित|school|lesson|book|education/i,
    draw: (l) =>
      `<path d="M540 330q-90-60-230-40v300q140-20 230 40 90-60 230-40V290q-140-20-230 40z"/><path d="M528 352v232M552 352v232" stroke="${l}" stroke-width="8"/><path d="M350 350q80-6 140 24M350 410q80-6 140 24M350 470q80-6 140 24M730 350q-80-6-140 24M730 410q-80-6-140 24M730 470q-80-6-140 24" fill="none" stroke="${l}" stroke-width="12" stroke-linecap="round"/>`,
  },
  cup: {
    pattern:
      /\btea\b|thee\b|\bthé\b|trà|çay|demlik|coffee|caf[eé]|kaffee|röst|früh|tostado|ブレンド|飲み比べ|茶|찻|커피|mug|kettle/i,
    draw: (l) =>
      `<path d="M370 380h300v120a120 120 0 0 1-120 120h-60a120 120 0 0 1-120-120z"/><path d="M670 410h40a56 56 0 0 1 0 112h-56" fill="none" stroke="currentColor" stroke-width="28"/><path d="M450 340q-30-40 0-74t0-70M540 340q-30-40 0-74t0-70" fill="none" stroke="${l}" stroke-width="16" stroke-linecap="round"/><path d="M400 410h240v26H400z" fill="${l}"/>`,
  },
  pot: {
    pattern: /\bpan\b|\boven\b|cookware|\bpot\b|餐盤|sambal|rendang|\bdal\b|국|도시락|spice|cocina/i,
    draw: (l) =>
      `<path d="M360 420h360v120a80 80 0 0 1-80 80H440a80 80 0 0 1-80-80z"/><path d="M350 396a190 110 0 0 1 380 0z"/><circle cx="540" cy="278" r="24"/><rect x="296" y="446" width="80" height="34" rx="17"/><rect x="704" y="446" width="80" height="34" rx="17"/><path d="M386 450h308v18H386z" fill="${l}"/>`,
  },
  bottle: {
    pattern:
      /serum|sérum|セラム|세럼|เซรั่ม|crem|crème|크림|balm|m[aá]scara|aceite|huile|\boil\b|عطر|عود|soap|สบู่|skin|lotion|perfume|handcr/i,
    draw: (l) =>
      `<rect x="500" y="236" width="80" height="70" rx="14"/><path d="M470 318h140v30q60 20 60 80v152a40 40 0 0 1-40 40H450a40 40 0 0 1-40-40V428q0-60 60-80z"/><rect x="440" y="440" width="200" height="110" rx="14" fill="${l}"/><path d="M540 462q34 40 0 66-34-26 0-66z"/>`,
  },
  shoe: {
    pattern: /shoe|sneaker|sepatu|schuh|zapat|chaussure|scarp|boot\b/i,
    draw: (l) =>
      `<path d="M310 560V400q50 30 100 0l40-50q20-16 44 4l110 100q30 24 90 30 76 8 76 76z"/><rect x="304" y="572" width="472" height="48" rx="24"/><path d="M470 400l40-30M508 434l40-30M546 468l40-30" stroke="${l}" stroke-width="14" stroke-linecap="round"/><path d="M330 540h420" stroke="${l}" stroke-width="10"/>`,
  },
  jacket: {
    pattern: /jacket|jacke|parka|coat|manteau|shirt|dress|hoodie|merino/i,
    draw: (l) =>
      `<path d="M470 240h140l90 50 60 250-70 24-30-130v186H420V434l-30 130-70-24 60-250z"/><path d="M540 262v346" stroke="${l}" stroke-width="10"/><path d="M470 240l70 70 70-70" fill="none" stroke="${l}" stroke-width="12"/><path d="M446 500h64M570 500h64" stroke="${l}" stroke-width="12" stroke-linecap="round"/>`,
  },
  bag: {
    pattern: /\bbag\b|borsa|bolso|tasche|\btas\b|sac\b|cintura|backpack/i,
    draw: (l) =>
      `<path d="M360 390h360l36 230H324z"/><path d="M440 420v-70a100 100 0 0 1 200 0v70" fill="none" stroke="currentColor" stroke-width="30"/><path d="M350 470h380" stroke="${l}" stroke-width="12"/><rect x="506" y="446" width="68" height="56" rx="12" fill="${l}"/>`,
  },
  bicycle: {
    pattern: /v[ée]lo\b|fiets|bike|bicycle|fahrrad|bici|casque|helmet/i,
    draw: () =>
      `<g fill="none" stroke="currentColor" stroke-width="24" stroke-linecap="round" stroke-linejoin="round"><circle cx="400" cy="512" r="96"/><circle cx="690" cy="512" r="96"/><path d="M400 512l82-170h134l-96 170zM482 342l38 170M616 342l74 170M600 300h-10l26 42M600 300h52M446 318h72"/></g>`,
  },
  lamp: {
    pattern: /leuchte|lamp|दीया|light/i,
    draw: (l) =>
      `<path d="M450 240h180l90 170H360z"/><rect x="526" y="410" width="28" height="180"/><rect x="450" y="584" width="180" height="36" rx="18"/><path d="M400 440l-50 80M680 440l50 80M470 440l-16 60M610 440l16 60" stroke="${l}" stroke-width="14" stroke-linecap="round"/>`,
  },
  panel: {
    pattern: /battery|solar|rooftop|energy|get_quote/i,
    draw: (l) =>
      `<circle cx="400" cy="320" r="56"/><path d="M400 236v-34M400 404v34M316 320h-34M484 320h34M341 261l-24-24M459 261l24-24M341 379l-24 24" stroke="currentColor" stroke-width="16" stroke-linecap="round"/><path d="M450 420h280l60 150H390z"/><rect x="570" y="570" width="40" height="50"/><path d="M430 470h320M410 520h360M543 420l-14 150M637 420l14 150" stroke="${l}" stroke-width="8"/>`,
  },
  bed: {
    pattern: /mattress|pillow|bed\b|枕|布団|matelas|matratze|colch|sleep|sof[aá]|कालीन|दरी/i,
    draw: (l) =>
      `<rect x="290" y="300" width="36" height="320" rx="14"/><rect x="754" y="400" width="36" height="220" rx="14"/><rect x="300" y="470" width="480" height="100" rx="30"/><rect x="340" y="404" width="150" height="76" rx="34" fill="${l}"/><path d="M500 470q10-70 110-70h90q50 0 60 70z"/><path d="M320 512h440" stroke="${l}" stroke-width="10"/>`,
  },
  table: {
    pattern: /mesa\b|table\b|tisch\b|chair|desk|furniture/i,
    draw: (l) =>
      `<rect x="300" y="400" width="480" height="44" rx="16"/><path d="M350 440h44l-20 180h-34zM686 440h44l10 180h-34z"/><path d="M500 396v-60q-50-10-60-70 60 0 76 40 10-50 70-60 0 70-58 90v60z"/><path d="M330 422h420" stroke="${l}" stroke-width="8"/>`,
  },
  bowl: {
    pattern: /chicken|dental|\bdog|\bcat\b|pet\b|paw|bowl/i,
    draw: (l) =>
      `<path d="M360 450h360l50 170H310z"/><ellipse cx="540" cy="450" rx="180" ry="44" fill="${l}"/><circle cx="470" cy="430" r="34"/><circle cx="540" cy="412" r="40"/><circle cx="612" cy="430" r="34"/><path d="M478 540a28 28 0 1 1 30-34h64a28 28 0 1 1 30 34 28 28 0 1 1-30 34h-64a28 28 0 1 1-30-34z" fill="${l}"/>`,
  },
  mountains: {
    pattern: /pacote|roteiro|weekend|pobyt|رحلة|عطلة|travel|tour\b|hotel|trip|holiday|viage|book_travel/i,
    draw: (l) =>
      `<path d="M270 620l170-300 90 150 60-90 220 240z"/><path d="M440 320l-56 100 36-14 30 24 26-30 20 14z" fill="${l}"/><path d="M540 620l90-130 90 130z" fill="${l}"/><path d="M612 620l18-60 18 60z"/>`,
  },
  box: {
    pattern: /./,
    draw: (l) =>
      `<path d="M340 380l200-70 200 70v180l-200 60-200-60z"/><path d="M340 380l200 64 200-64M540 444v170" fill="none" stroke="${l}" stroke-width="10"/><path d="M540 310q-90-90-110-20 0 40 110 20 110 20 110-20-20-70-110 20z"/>`,
  },
};

/** @param texts about the product, the most specific first */
export function silhouetteFor(texts: (string | null | undefined)[], light: string): string {
  const { box, ...narrower } = silhouettes;
  for (const text of texts) {
    const found = Object.values(narrower).find(({ pattern }) => text && pattern.test(text));
    if (found) return found.draw(light);
  }
  return box?.draw(light) ?? '';
}
