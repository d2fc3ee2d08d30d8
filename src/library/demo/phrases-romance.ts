import type { PhrasesByTrade } from './phrases.ts';

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

export const romancePhrases = {
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
} satisfies Record<string, PhrasesByTrade>;
