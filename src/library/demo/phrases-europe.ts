import type { PhrasesByTrade } from './phrases.ts';

const english = {
  launch: ['It’s finally here: {product}. 🎉', 'New at {brand}: {product}, made for everyday life.'],
  offer: [
    'This week only: {percent}% off {product}. ⏰',
    'Our biggest sale of the season just started, and it includes {product}.',
  ],
  proof: [
    '“I wish I had found {product} a year ago.” ⭐⭐⭐⭐⭐',
    'Over {thousands},000 people chose {product} this year. Here’s why.',
  ],
} satisfies Partial<Record<string, [string, string]>>;

const englishHeadlines: [string, string, string] = [
  '{product} | {percent}% off today',
  'Meet {product}',
  'Why everyone is talking about {product}',
];

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

const spanish = {
  launch: ['Por fin, lo nuevo: {product}. 🎉', 'Nuevo en {brand}: {product}, para el día a día.'],
  offer: [
    'Solo esta semana: {product} con un {percent}% de descuento. ⏰',
    'Empiezan las rebajas de temporada: aprovecha y descubre {product}.',
  ],
  proof: [
    '«Ojalá hubiera conocido {product} antes». ⭐⭐⭐⭐⭐',
    'Más de {thousands}.000 personas ya han elegido {product}.',
  ],
} satisfies Partial<Record<string, [string, string]>>;

const spanishHeadlines: [string, string, string] = [
  '{product}: {percent}% menos hoy',
  'Descubre {product}',
  'Por qué todos quieren {product}',
];

const portuguese = {
  launch: ['Chegou a novidade: {product}. 🎉', 'Novidade da {brand}: {product}, para o seu dia a dia.'],
  offer: [
    'Só esta semana: {product} com {percent}% de desconto. ⏰',
    'A maior promoção da temporada começou, e {product} faz parte dela.',
  ],
  proof: [
    '“Queria ter conhecido {product} antes.” ⭐⭐⭐⭐⭐',
    'Mais de {thousands} mil pessoas já escolheram {product}.',
  ],
} satisfies Partial<Record<string, [string, string]>>;

const portugueseHeadlines: [string, string, string] = [
  '{product} com {percent}% OFF',
  'Conheça {product}',
  'Por que todo mundo quer {product}',
];

export const europeanPhrases = {
  en: {
    goods: {
      openings: {
        ...english,
        story: [
          'We made {tries} versions of {product} before we were happy.',
          'It started at a kitchen table. Today we send {product} all over the country.',
        ],
        question: [
          'Have you ever tried anything like {product}?',
          'Still putting up with second best? Meet {product}.',
        ],
      },
      headlines: englishHeadlines,
      offers: [
        'Use code HELLO{percent} at checkout for {percent}% off.',
        'Free shipping and {days}-day returns, no questions asked.',
      ],
      closings: ['👉 See it for yourself.', 'Limited stock. Get yours while it lasts.'],
    },
    apps: {
      openings: {
        ...english,
        launch: ['It’s finally here: {product}. 🎉', 'New from {brand}: {product}, on your phone and on the web.'],
        offer: [
          'This week only: {percent}% off your first year of {product}. ⏰',
          'Our biggest offer of the year just started, and it includes {product}.',
        ],
        story: [
          'We built {product} {tries} times before we kept it.',
          'It started as a spreadsheet at a kitchen table. Today it is {product}.',
        ],
        question: ['What if {product} could save you an hour every week?', 'Still doing it by hand? Meet {product}.'],
      },
      headlines: [
        '{product} | {percent}% off your first year',
        'Meet {product}',
        'Why everyone is talking about {product}',
      ],
      offers: [
        'Sign up with code HELLO{percent} and take {percent}% off the first year.',
        'Free for {days} days, no card needed.',
      ],
      closings: ['👉 Set up in two minutes.', 'Try it today and leave whenever you like.'],
    },
    games: {
      openings: {
        launch: ['It’s finally out: {product}. 🎉', 'New from {brand}: {product}, free to play.'],
        offer: [
          'This week only: a starter chest with {percent} free gems in {product}. ⏰',
          'The season of lanterns has begun in {product}, and the first reward is free.',
        ],
        proof: [
          '“I meant to play for five minutes. That was at lunch.” ⭐⭐⭐⭐⭐',
          'Over {thousands},000 players are in {product} already. Come and find out why.',
        ],
        story: [
          'We drew {tries} maps for {product} and kept the best one.',
          'Three friends and a kitchen table: that is how {product} began.',
        ],
        question: ['How far could you get in {product} by tonight?', 'Five minutes to spare? Try {product}.'],
      },
      headlines: ['{product}: play free', 'How far will you get?', 'Why everyone is playing {product}'],
      offers: [
        'Enter HELLO{percent} in the game for {percent} free gems.',
        'Start today and get {days} days of daily rewards.',
      ],
      closings: ['👉 Play now, on the phone you have.', 'Your island is waiting.'],
    },
    services: {
      openings: {
        ...english,
        launch: ['Now in your area: {product}. 🎉', 'New from {brand}: {product}, from first call to last screw.'],
        proof: [
          '“I wish we had asked about {product} a year ago.” ⭐⭐⭐⭐⭐',
          'Over {thousands},000 homes chose {product} this year. Here’s why.',
        ],
        story: [
          'We listened to {tries} families before we put together {product}.',
          'It started with one roof and one ladder. Today a crew of ninety stands behind {product}.',
        ],
        question: [
          'What would your bills look like with {product}?',
          'Still paying more every year? Ask us about {product}.',
        ],
      },
      headlines: [
        '{product} | {percent}% off this month',
        'Meet {product}',
        'Why the neighbors are talking about {product}',
      ],
      offers: [
        'Mention HELLO{percent} on the phone for {percent}% off the installation.',
        'Free quote, and {days} days to think it over.',
      ],
      closings: ['👉 See what it would cost you.', 'A few dates are left this month.'],
    },
  },
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
  fr: {
    goods: {
      openings: {
        launch: ['Enfin là : {product}. 🎉', 'Nouveau chez {brand} : {product}, pour tous les jours.'],
        offer: [
          'Cette semaine seulement : -{percent} % sur {product}. ⏰',
          'Nos soldes de saison ont commencé, et {product} en fait partie.',
        ],
        proof: [
          '« J’aurais aimé découvrir {product} plus tôt. » ⭐⭐⭐⭐⭐',
          'Plus de {thousands} 000 personnes ont choisi {product} cette année.',
        ],
        story: [
          'Il nous a fallu {tries} essais pour réussir {product}.',
          'Tout a commencé sur une table de cuisine. Aujourd’hui, nous envoyons {product} dans toute la France.',
        ],
        question: [
          'Et si {product} changeait votre quotidien ?',
          'Prêt à changer vos habitudes ? Découvrez {product}.',
        ],
      },
      headlines: [
        '{product} : -{percent} % aujourd’hui',
        'Découvrez {product}',
        'Pourquoi tout le monde veut {product}',
      ],
      offers: [
        'Avec le code BONJOUR{percent}, profitez de {percent} % de remise.',
        'Livraison offerte et retours sous {days} jours.',
      ],
      closings: ['👉 Laissez-vous convaincre.', 'Quantités limitées : n’attendez plus.'],
    },
  },
  es: {
    goods: {
      openings: {
        ...spanish,
        story: [
          'Hicimos {tries} pruebas hasta conseguir {product}.',
          'Todo empezó en la mesa de la cocina. Hoy enviamos {product} a todo el país.',
        ],
        question: ['¿Y si {product} te cambiara el día?', '¿Todavía te conformas? Te presentamos {product}.'],
      },
      headlines: spanishHeadlines,
      offers: ['Usa el código HOLA{percent} y ahorra un {percent}%.', 'Envío gratis y {days} días para devoluciones.'],
      closings: ['👉 Compruébalo ya.', 'Unidades limitadas. ¡No lo dejes para mañana!'],
    },
    services: {
      openings: {
        ...spanish,
        story: [
          'Escuchamos a {tries} alumnos antes de crear {product}.',
          'Todo empezó con una pizarra y cuatro sillas. Hoy damos clase en nueve países.',
        ],
        question: [
          '¿Y si en un mes ya te entendieran? Prueba {product}.',
          '¿Siempre lo dejas para enero? Te presentamos {product}.',
        ],
      },
      headlines: spanishHeadlines,
      offers: [
        'Usa el código HOLA{percent} y ahorra un {percent}% en el primer mes.',
        'Si no te convence en {days} días, te devolvemos el dinero.',
      ],
      closings: ['👉 Reserva tu primera clase.', 'Plazas limitadas.'],
    },
  },
  pt: {
    goods: {
      openings: {
        ...portuguese,
        story: [
          'Foram {tries} tentativas até {product} ficar do nosso jeito.',
          'Começou na mesa da cozinha. Hoje enviamos {product} para o Brasil inteiro.',
        ],
        question: ['E se {product} mudasse a sua rotina?', 'Ainda não encontrou o que procurava? Conheça {product}.'],
      },
      headlines: portugueseHeadlines,
      offers: ['Use o cupom OLA{percent} e ganhe {percent}% de desconto.', 'Frete grátis e {days} dias para trocar.'],
      closings: ['👉 Saiba mais e aproveite.', 'Estoque limitado. Garanta já o seu!'],
    },
    services: {
      openings: {
        ...portuguese,
        launch: ['Chegou a novidade: {product}. 🎉', 'Novidade da {brand}: {product}, sem preocupação.'],
        story: [
          'Foram {tries} viagens até montar {product}.',
          'Começou com um carro e um mapa. Hoje {product} já faz parte das férias de muita gente.',
        ],
        question: [
          'E se as próximas férias já estivessem prontas? Conheça {product}.',
          'Ainda sem plano para o feriado? Conheça {product}.',
        ],
      },
      headlines: portugueseHeadlines,
      offers: [
        'Use o cupom OLA{percent} e ganhe {percent}% de desconto na reserva.',
        'Reserve hoje e pague só daqui a {days} dias.',
      ],
      closings: ['👉 Veja as datas.', 'Últimas vagas da temporada.'],
    },
  },
  it: {
    goods: {
      openings: {
        launch: ['Finalmente qui: {product}. 🎉', 'Novità da {brand}: {product}, per ogni giorno.'],
        offer: [
          'Solo questa settimana: {product} con il {percent}% di sconto. ⏰',
          'Sono iniziati i saldi di stagione, e {product} c’è.',
        ],
        proof: [
          '«Avrei voluto scoprire {product} prima». ⭐⭐⭐⭐⭐',
          'Oltre {thousands}.000 persone hanno già scelto {product}.',
        ],
        story: [
          'Ci sono volute {tries} prove per creare {product}.',
          'Tutto è nato su un tavolo di cucina. Oggi spediamo {product} in tutta Italia.',
        ],
        question: ['E se {product} fosse proprio ciò che cercavi?', 'Ti accontenti ancora? Scopri {product}.'],
      },
      headlines: ['{product}: -{percent}% oggi', 'Scopri {product}', 'Perché tutti vogliono {product}'],
      offers: [
        'Con il codice CIAO{percent} risparmi il {percent}%.',
        'Spedizione gratuita e reso entro {days} giorni.',
      ],
      closings: ['👉 Prova anche tu.', 'Disponibilità limitata.'],
    },
  },
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
