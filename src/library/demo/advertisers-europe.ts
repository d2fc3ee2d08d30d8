import type { Advertiser } from './advertisers.ts';

const german = { language: 'de', countries: ['DE', 'AT', 'CH'] } satisfies Partial<Advertiser>;
const french = { language: 'fr', countries: ['FR', 'BE', 'CH'] } satisfies Partial<Advertiser>;

export const europeanAdvertisers: Advertiser[] = [
  {
    ...german,
    name: 'Waldfaden',
    domain: 'waldfaden.example',
    industry: 'fashion',
    products: [
      ['Loden-Parka Tann', 249],
      ['Merino-Jacke Quell', 159],
    ],
    points: [
      'Aus deutscher Schurwolle',
      'Wasserabweisend ohne Chemie',
      'Reparatur ein Leben lang',
      'Genäht in Sachsen',
    ],
  },
  {
    ...german,
    name: 'Kesselgold Rösterei',
    domain: 'kesselgold.example',
    industry: 'food',
    products: [
      ['Hausröstung Nr. 7', 14.9],
      ['Probierpaket Frühschicht', 24.9],
    ],
    points: [
      'Langsam in der Trommel geröstet',
      'Wenig Säure, viel Schokolade',
      'Direkt gehandelt',
      'Frisch innerhalb von 48 Stunden',
    ],
  },
  {
    ...german,
    name: 'Lichtwerft',
    domain: 'lichtwerft.example',
    industry: 'home',
    products: [
      ['Stehleuchte Mole', 189],
      ['Tischlampe Boje', 79],
    ],
    points: ['Warmes Licht, stufenlos dimmbar', 'Eiche aus dem Harz', '5 Jahre Garantie', 'In zwei Minuten aufgebaut'],
  },
  {
    ...german,
    name: 'Steuerfuchs & Söhne',
    domain: 'steuerfuchs-soehne.example',
    industry: 'finance',
    products: [
      ['Fuchs-App', 34.9],
      ['Belegscanner Füchslein', 4.9],
    ],
    points: [
      'Steuererklärung in 30 Minuten',
      'Im Schnitt 1.095 € zurück',
      'Daten bleiben in Deutschland',
      'Zahlen erst bei Abgabe',
    ],
  },
  {
    ...french,
    name: 'Maison Ortevelle',
    domain: 'maison-ortevelle.example',
    industry: 'beauty',
    products: [
      ['le Sérum Rosée Nue', 42],
      ['la Crème Voile d’Aube', 36],
    ],
    points: ['98 % d’ingrédients d’origine naturelle', 'Fabriqué en Bretagne', 'Sans parfum', 'Flacon rechargeable'],
  },
  {
    ...french,
    name: 'Papillote et Compagnie',
    domain: 'papillote-compagnie.example',
    industry: 'food',
    products: [
      ['le Panier Semaine Douce', 54],
      ['le Coffret Apéro du Marché', 39],
    ],
    points: ['Recettes prêtes en 20 minutes', 'Légumes de saison', 'Sans engagement', 'Livré en point frais'],
  },
  {
    ...french,
    name: 'Vélobrume',
    domain: 'velobrume.example',
    industry: 'fitness',
    products: [
      ['le vélo électrique Brume 2', 1990],
      ['le Casque Embellie', 89],
    ],
    points: ['90 km d’autonomie', 'Batterie amovible', 'Montage à domicile', 'Éligible aux aides locales'],
  },
  {
    name: 'Casa Lumbrera',
    domain: 'casalumbrera.example',
    industry: 'home',
    language: 'es',
    countries: ['ES'],
    products: [
      ['el Sofá Siesta Larga', 790],
      ['la Mesa Olivar', 340],
    ],
    points: [
      'Madera de olivo recuperada',
      'Entrega y montaje incluidos',
      'Telas que se lavan en casa',
      '10 años de garantía',
    ],
  },
  {
    name: 'Idiomaluna',
    domain: 'idiomaluna.example',
    industry: 'education',
    language: 'es',
    countries: ['ES', 'MX', 'AR', 'CL'],
    products: [
      ['el Curso Habla Ya', 79],
      ['la Clase Media Hora', 15],
    ],
    points: ['Clases en vivo de 25 minutos', 'Profesores nativos', 'Grupos de cuatro', 'Primera clase gratis'],
  },
  {
    name: 'Huerta Clarín',
    domain: 'huertaclarin.example',
    industry: 'food',
    language: 'es',
    countries: ['ES', 'PT'],
    products: [
      ['la Caja de Temporada', 29],
      ['el Aceite Primera Luz', 18],
    ],
    points: [
      'Recogido ayer, en tu mesa hoy',
      'Sin cámaras frigoríficas',
      'Agricultura ecológica',
      'Pausa tu caja cuando quieras',
    ],
  },
  {
    name: 'Bottega Alvernosa',
    domain: 'bottega-alvernosa.example',
    industry: 'fashion',
    language: 'it',
    countries: ['IT', 'FR', 'DE'],
    products: [
      ['la Borsa Colline', 290],
      ['la Cintura Ponte Vecchietto', 85],
    ],
    points: ['Pelle conciata al vegetale', 'Cucita a mano in Toscana', 'Più bella con gli anni', 'Incisione gratuita'],
  },
  {
    name: 'Pastalunella',
    domain: 'pastalunella.example',
    industry: 'food',
    language: 'it',
    countries: ['IT'],
    products: [
      ['la Scatola della Domenica', 32],
      ['la Trofia al Bronzo', 6.5],
    ],
    points: ['Trafilata al bronzo', 'Grano italiano al 100%', 'Essiccata per 36 ore', 'Ricetta della nonna inclusa'],
  },
  {
    name: 'Grachtwiel',
    domain: 'grachtwiel.example',
    industry: 'fitness',
    language: 'nl',
    countries: ['NL', 'BE'],
    products: [
      ['de Stadsfiets Sluis', 849],
      ['de Bakfiets Zonnebloem', 2990],
    ],
    points: [
      'Riem in plaats van ketting',
      'Gratis proefrit aan huis',
      'Diefstalverzekering inbegrepen',
      'Onderhoud bij jou voor de deur',
    ],
  },
  {
    name: 'Kruidenzolder',
    domain: 'kruidenzolder.example',
    industry: 'beauty',
    language: 'nl',
    countries: ['NL', 'BE', 'DE'],
    products: [
      ['de Avondthee Zolderrust', 11],
      ['de Handcrème Kamilleveld', 14],
    ],
    points: ['Kruiden van eigen veld', 'Zonder parfum', 'Verpakt in papier', 'Al 30 jaar een familiebedrijf'],
  },
  {
    name: 'Çınaraltı Demlik',
    domain: 'cinaraltidemlik.example',
    industry: 'food',
    language: 'tr',
    countries: ['TR', 'DE'],
    products: [
      ['Rize Çayı Seçkisi', 189],
      ['Bakır Demlik Takımı', 1490],
    ],
    points: ['İlk hasat yapraklar', 'El yapımı bakır', 'Hediye kutusunda', 'Türkiye’nin her yerine kargo'],
  },
  {
    name: 'Sosnowa Chatka',
    domain: 'sosnowachatka.example',
    industry: 'travel',
    language: 'pl',
    countries: ['PL', 'CZ'],
    products: [
      ['weekend Nad Potokiem', 690],
      ['pobyt Ferie w Lesie', 1290],
    ],
    points: ['Domki z kominkiem', 'Śniadanie pod drzwi', 'Pies śpi za darmo', 'Sauna z widokiem na las'],
  },
];
