import type { Phrases } from './phrases.ts';

export const europeanPhrases = {
  en: {
    openings: {
      launch: ['It’s finally here: {product}. 🎉', 'New at {brand}: {product}, made for everyday life.'],
      offer: [
        'This week only: {percent}% off {product}. ⏰',
        'Our biggest sale of the season just started. {product} is in it.',
      ],
      proof: [
        '“I wish I had found {product} a year ago.” ⭐⭐⭐⭐⭐',
        'Over 12,000 people switched to {product} this spring. Here’s why.',
      ],
      story: [
        'We made 41 versions of {product} before we were happy.',
        'It started at a kitchen table. Today {product} ships to nine countries.',
      ],
      question: [
        'What if {product} could save you an hour every week?',
        'Still putting up with the old way? Meet {product}.',
      ],
    },
    headlines: ['{product} | {percent}% off today', 'Meet {product}', 'Why everyone is talking about {product}'],
    offers: [
      'Use code HELLO{percent} at checkout for {percent}% off.',
      'Free shipping and {days}-day returns, no questions asked.',
    ],
    closings: ['👉 See it for yourself.', 'Limited stock. Get yours while it lasts.'],
  },
  de: {
    openings: {
      launch: ['Endlich da: {product}. 🎉', 'Neu bei {brand}: {product} für jeden Tag.'],
      offer: [
        'Nur diese Woche: {percent} % auf {product}. ⏰',
        'Unser großer Saisonverkauf läuft. {product} ist dabei.',
      ],
      proof: [
        '„{product} hätte ich gern schon früher entdeckt.“ ⭐⭐⭐⭐⭐',
        'Schon über 12.000 Menschen sind auf {product} umgestiegen.',
      ],
      story: [
        '41 Versuche, bis {product} so war, wie wir es wollten.',
        'Angefangen hat alles am Küchentisch. Heute gibt es {product} in neun Ländern.',
      ],
      question: [
        'Wie viel Zeit würde dir {product} jede Woche schenken?',
        'Noch auf die alte Art unterwegs? Dann kennst du {product} noch nicht.',
      ],
    },
    headlines: [
      '{product}: heute {percent} % sparen',
      'Jetzt {product} entdecken',
      'Warum alle über {product} sprechen',
    ],
    offers: [
      'Mit dem Code HALLO{percent} sparst du {percent} %.',
      'Kostenloser Versand und {days} Tage Rückgaberecht.',
    ],
    closings: ['👉 Jetzt selbst überzeugen.', 'Nur solange der Vorrat reicht.'],
  },
  fr: {
    openings: {
      launch: ['Il est enfin là : {product}. 🎉', 'Nouveau chez {brand} : {product}, pour tous les jours.'],
      offer: [
        'Cette semaine seulement : -{percent} % sur {product}. ⏰',
        'Nos soldes de saison ont commencé, et {product} en fait partie.',
      ],
      proof: [
        '« J’aurais aimé découvrir {product} plus tôt. » ⭐⭐⭐⭐⭐',
        'Plus de 12 000 personnes ont adopté {product} ce printemps.',
      ],
      story: [
        'Il nous a fallu 41 essais pour réussir {product}.',
        'Tout a commencé sur une table de cuisine. Aujourd’hui, {product} voyage dans neuf pays.',
      ],
      question: [
        'Et si {product} vous faisait gagner une heure par semaine ?',
        'Prêt à changer vos habitudes ? Découvrez {product}.',
      ],
    },
    headlines: [
      '{product} : -{percent} % aujourd’hui',
      'Découvrez {product}',
      'Pourquoi tout le monde parle de {product}',
    ],
    offers: [
      'Avec le code BONJOUR{percent}, profitez de {percent} % de remise.',
      'Livraison offerte et retours sous {days} jours.',
    ],
    closings: ['👉 Laissez-vous convaincre.', 'Quantités limitées : n’attendez plus.'],
  },
  es: {
    openings: {
      launch: ['Ya está aquí: {product}. 🎉', 'Nuevo en {brand}: {product}, para el día a día.'],
      offer: [
        'Solo esta semana: {percent}% de descuento en {product}. ⏰',
        'Empiezan las rebajas de temporada y {product} está incluido.',
      ],
      proof: [
        '«Ojalá hubiera conocido {product} antes». ⭐⭐⭐⭐⭐',
        'Más de 12.000 personas ya se han pasado a {product}.',
      ],
      story: [
        'Hicimos 41 versiones de {product} hasta quedar contentos.',
        'Todo empezó en la mesa de la cocina. Hoy {product} llega a nueve países.',
      ],
      question: [
        '¿Y si {product} te ahorrara una hora cada semana?',
        '¿Todavía lo haces como antes? Te presentamos {product}.',
      ],
    },
    headlines: ['{product}: {percent}% menos hoy', 'Descubre {product}', 'Por qué todos hablan de {product}'],
    offers: ['Usa el código HOLA{percent} y ahorra un {percent}%.', 'Envío gratis y {days} días para devolverlo.'],
    closings: ['👉 Compruébalo tú mismo.', 'Unidades limitadas. ¡No te quedes sin el tuyo!'],
  },
  pt: {
    openings: {
      launch: ['Chegou: {product}. 🎉', 'Novidade na {brand}: {product}, feito para o seu dia a dia.'],
      offer: [
        'Só esta semana: {percent}% de desconto em {product}. ⏰',
        'A maior promoção da temporada começou, e {product} está nela.',
      ],
      proof: [
        '“Queria ter conhecido {product} antes.” ⭐⭐⭐⭐⭐',
        'Mais de 12 mil pessoas já trocaram para {product}.',
      ],
      story: [
        'Foram 41 tentativas até {product} ficar do jeito certo.',
        'Começou na mesa da cozinha. Hoje {product} chega a nove estados.',
      ],
      question: ['E se {product} devolvesse uma hora da sua semana?', 'Ainda faz do jeito antigo? Conheça {product}.'],
    },
    headlines: ['{product} com {percent}% OFF', 'Conheça {product}', 'Por que todo mundo fala de {product}'],
    offers: ['Use o cupom OLA{percent} e ganhe {percent}% de desconto.', 'Frete grátis e {days} dias para trocar.'],
    closings: ['👉 Saiba mais e aproveite.', 'Estoque limitado. Garanta já o seu!'],
  },
  it: {
    openings: {
      launch: ['È arrivato: {product}. 🎉', 'Novità da {brand}: {product}, per ogni giorno.'],
      offer: [
        'Solo questa settimana: -{percent}% su {product}. ⏰',
        'Sono iniziati i saldi di stagione, e {product} c’è.',
      ],
      proof: ['«Avrei voluto scoprire {product} prima». ⭐⭐⭐⭐⭐', 'Oltre 12.000 persone sono passate a {product}.'],
      story: [
        '41 prove prima di essere soddisfatti di {product}.',
        'Tutto è nato su un tavolo di cucina. Oggi {product} arriva in nove paesi.',
      ],
      question: ['E se {product} ti regalasse un’ora a settimana?', 'Fai ancora come una volta? Scopri {product}.'],
    },
    headlines: ['{product}: -{percent}% oggi', 'Scopri {product}', 'Perché tutti parlano di {product}'],
    offers: ['Con il codice CIAO{percent} risparmi il {percent}%.', 'Spedizione gratuita e reso entro {days} giorni.'],
    closings: ['👉 Provalo anche tu.', 'Disponibilità limitata.'],
  },
  nl: {
    openings: {
      launch: ['Eindelijk: {product} is er. 🎉', 'Nieuw bij {brand}: {product} voor elke dag.'],
      offer: [
        'Alleen deze week: {percent}% korting op {product}. ⏰',
        'De seizoensuitverkoop is begonnen, {product} doet mee.',
      ],
      proof: ['“Had ik {product} maar eerder ontdekt.” ⭐⭐⭐⭐⭐', 'Al meer dan 12.000 mensen kozen voor {product}.'],
      story: [
        '41 versies, en toen was {product} goed.',
        'Het begon aan de keukentafel. Nu gaat {product} naar negen landen.',
      ],
      question: [
        'Wat als {product} je elke week een uur oplevert?',
        'Nog steeds op de oude manier? Probeer {product}.',
      ],
    },
    headlines: ['{product}: vandaag {percent}% korting', 'Ontdek {product}', 'Waarom iedereen over {product} praat'],
    offers: ['Met code HALLO{percent} krijg je {percent}% korting.', 'Gratis verzending en {days} dagen bedenktijd.'],
    closings: ['👉 Bekijk het zelf.', 'Op is op.'],
  },
  tr: {
    openings: {
      launch: ['Sonunda geldi: {product}. 🎉', '{brand} ailesinin yenisi: {product}.'],
      offer: ['Sadece bu hafta: {product} %{percent} indirimli. ⏰', 'Sezon indirimi başladı, {product} de listede.'],
      proof: [
        '“Keşke {product} ile daha önce tanışsaydım.” ⭐⭐⭐⭐⭐',
        '12.000’den fazla kişi {product} tercih etti.',
      ],
      story: [
        '{product} için tam 41 deneme yaptık.',
        'Her şey bir mutfak masasında başladı; {product} bugün dokuz ülkede.',
      ],
      question: ['{product} size haftada bir saat kazandırsa?', 'Hâlâ eski usul mü? {product} ile tanışın.'],
    },
    headlines: ['{product}: bugün %{percent} indirim', '{product} ile tanışın', 'Herkes neden {product} konuşuyor?'],
    offers: ['MERHABA{percent} koduyla %{percent} indirim.', 'Ücretsiz kargo ve {days} gün içinde iade.'],
    closings: ['👉 Hemen inceleyin.', 'Stoklarla sınırlıdır.'],
  },
  pl: {
    openings: {
      launch: ['Nareszcie jest: {product}. 🎉', 'Nowość od {brand}: {product} na co dzień.'],
      offer: [
        'Tylko w tym tygodniu: {product} taniej o {percent}%. ⏰',
        'Ruszyła sezonowa wyprzedaż, a w niej {product}.',
      ],
      proof: [
        '„Szkoda, że {product} nie trafił do mnie wcześniej”. ⭐⭐⭐⭐⭐',
        'Ponad 12 000 osób wybrało już {product}.',
      ],
      story: [
        '41 prób, zanim {product} był taki, jak trzeba.',
        'Zaczęło się przy kuchennym stole. Dziś {product} jedzie do dziewięciu krajów.',
      ],
      question: ['A gdyby {product} oddał ci godzinę w tygodniu?', 'Wciąż po staremu? Poznaj {product}.'],
    },
    headlines: ['{product}: dziś {percent}% taniej', 'Poznaj {product}', 'Dlaczego wszyscy mówią o {product}'],
    offers: ['Z kodem CZESC{percent} płacisz {percent}% mniej.', 'Darmowa dostawa i {days} dni na zwrot.'],
    closings: ['👉 Sprawdź sam.', 'Liczba sztuk ograniczona.'],
  },
} satisfies Record<string, Phrases>;
