import type { PhrasesByTrade } from './phrases.ts';

const german = {
  launch: ['Endlich da: {product}. 🎉', 'Neu bei {brand}: {product} für jeden Tag.'],
  offer: [
    'Nur diese Woche: {percent} % auf „{product}“. ⏰',
    'Unser großer Saisonverkauf läuft. Auch „{product}“ ist dabei.',
  ],
  proof: [
    '„Hätte ich nur früher davon gewusst.“ ⭐⭐⭐⭐⭐ für „{product}“',
    'Über {thousands}.000 Menschen haben sich schon für „{product}“ entschieden.',
  ],
} satisfies Partial<Record<string, [string, string]>>;

const germanHeadlines: [string, string, string] = [
  '{product}: heute {percent} % sparen',
  'Jetzt entdecken: {product}',
  'Warum alle über „{product}“ sprechen',
];

export const germanPhrases = {
  de: {
    goods: {
      openings: {
        ...german,
        story: [
          '{tries} Versuche, bis alles so war, wie wir es wollten: {product}.',
          'Angefangen hat alles am Küchentisch. Heute verschicken wir „{product}“ in drei Länder.',
        ],
        question: [
          'Was würde sich mit „{product}“ bei dir ändern?',
          'Noch auf der Suche? Dann kennst du „{product}“ noch nicht.',
        ],
      },
      headlines: germanHeadlines,
      offers: [
        'Mit dem Code HALLO{percent} sparst du {percent} %.',
        'Kostenloser Versand und {days} Tage Rückgaberecht.',
      ],
      closings: ['👉 Jetzt selbst überzeugen.', 'Nur solange der Vorrat reicht.'],
    },
    apps: {
      openings: {
        ...german,
        launch: ['Endlich da: {product}. 🎉', 'Neu von {brand}: {product}, am Handy und am Rechner.'],
        offer: [
          'Nur diese Woche: {percent} % auf das erste Jahr mit „{product}“. ⏰',
          'Das Angebot des Jahres läuft. Auch „{product}“ ist dabei.',
        ],
        story: [
          '{tries} Entwürfe, bis es einfach genug war: {product}.',
          'Angefangen hat alles mit einem Schuhkarton voller Belege. Heute ist daraus „{product}“ geworden.',
        ],
        question: [
          'Wie viel Zeit gewinnst du mit „{product}“?',
          'Noch mit Ordner und Taschenrechner? Dann kennst du „{product}“ noch nicht.',
        ],
      },
      headlines: germanHeadlines,
      offers: [
        'Mit dem Code HALLO{percent} sparst du {percent} % im ersten Jahr.',
        '{days} Tage kostenlos testen, jederzeit kündbar.',
      ],
      closings: ['👉 In zwei Minuten eingerichtet.', 'Heute anfangen, heute fertig sein.'],
    },
  },
} satisfies Record<string, PhrasesByTrade>;
