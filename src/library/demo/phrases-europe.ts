import type { PhrasesByTrade } from './phrases.ts';

export const europeanPhrases = {
  nl: {
    goods: {
      openings: {
        launch: ['Eindelijk: {product} is er. 🎉', 'Nieuw bij {brand}: {product} voor elke dag.'],
        offer: [
          'Alleen deze week: {percent}% korting op {product}. ⏰',
          'De seizoensuitverkoop is begonnen en {product} doet mee.',
        ],
        proof: [
          '“Had ik {product} maar eerder ontdekt.” ⭐⭐⭐⭐⭐',
          'Al meer dan {thousands}.000 mensen kozen voor {product}.',
        ],
        story: [
          '{tries} versies, en toen was {product} goed.',
          'Het begon aan de keukentafel. Nu gaat {product} het hele land door.',
        ],
        question: ['Heb je {product} al geprobeerd?', 'Nog steeds op zoek? Probeer {product}.'],
      },
      headlines: ['{product}: vandaag {percent}% korting', 'Ontdek {product}', 'Waarom iedereen over {product} praat'],
      offers: ['Met code HALLO{percent} krijg je {percent}% korting.', 'Gratis verzending en {days} dagen bedenktijd.'],
      closings: ['👉 Bekijk het zelf.', 'Op is op.'],
    },
  },
  tr: {
    goods: {
      openings: {
        launch: ['Sonunda geldi: {product}. 🎉', '{brand} ailesinin yenisi: {product}.'],
        offer: [
          'Sadece bu hafta: {product} %{percent} indirimli. ⏰',
          'Sezon indirimi başladı. Listede bu da var: {product}.',
        ],
        proof: [
          '“Keşke {product} ile daha önce tanışsaydım.” ⭐⭐⭐⭐⭐',
          '{thousands}.000’den fazla kişinin tercihi: {product}.',
        ],
        story: [
          '{product} için tam {tries} deneme yaptık.',
          'Her şey bir mutfak masasında başladı. Bugün {product} ülkenin her yerinde.',
        ],
        question: ['{product} olmadan önce ne yapıyorduk?', 'Hâlâ tanışmadınız mı? İşte {product}.'],
      },
      headlines: ['{product}: bugün %{percent} indirim', '{product} ile tanışın', 'Herkesin konuştuğu {product}'],
      offers: ['MERHABA{percent} koduyla %{percent} indirim.', 'Ücretsiz kargo ve {days} gün içinde iade.'],
      closings: ['👉 Hemen inceleyin.', 'Stoklarla sınırlıdır.'],
    },
  },
  pl: {
    services: {
      openings: {
        launch: ['Nareszcie: {product}. 🎉', 'Nowość w {brand}: {product}, z dala od zgiełku.'],
        offer: [
          'Tylko w tym tygodniu: {product} taniej o {percent}%. ⏰',
          'Ruszyła sezonowa promocja, a w niej {product}.',
        ],
        proof: [
          '„Szkoda, że tak późno tu trafiliśmy”. ⭐⭐⭐⭐⭐',
          'Ponad {thousands} 000 gości wybrało już {product}.',
        ],
        story: [
          'Las, potok i {tries} pomysłów, zanim powstał {product}.',
          'Zaczęło się od jednego domku. Dziś zapraszamy na {product} przez cały rok.',
        ],
        question: [
          'A gdyby tak zniknąć na chwilę? Poznaj {product}.',
          'Znowu weekend przed ekranem? Wybierz {product}.',
        ],
      },
      headlines: ['{product}: dziś {percent}% taniej', 'Poznaj {product}', 'Dlaczego wszyscy wybierają {product}'],
      offers: [
        'Z kodem CZESC{percent} płacisz {percent}% mniej.',
        'Bezpłatne odwołanie do {days} dni przed przyjazdem.',
      ],
      closings: ['👉 Sprawdź terminy.', 'Zostały ostatnie wolne terminy.'],
    },
  },
} satisfies Record<string, PhrasesByTrade>;
