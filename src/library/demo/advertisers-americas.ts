import type { Advertiser } from './advertisers.ts';

const english = { language: 'en' } as const;
const portuguese = { language: 'pt', countries: ['BR'] } as const satisfies Partial<Advertiser>;

export const americanAdvertisers: Advertiser[] = [
  {
    ...english,
    name: 'Brightpaw Larder',
    domain: 'brightpaw-larder.example',
    industry: 'pets',
    countries: ['US', 'CA'],
    products: [
      ['Gently Cooked Chicken Bowls', 49],
      ['Slow-Chew Dental Twists', 18],
    ],
    points: [
      'Real chicken is the first ingredient',
      'No fillers, no dyes',
      'Portioned for your dog’s weight',
      'Vet-reviewed recipes',
    ],
  },
  {
    ...english,
    name: 'Ledgerleaf',
    domain: 'ledgerleaf.example',
    industry: 'software',
    countries: ['US', 'CA', 'GB', 'AU'],
    products: [
      ['Ledgerleaf Books', 29],
      ['Ledgerleaf Payroll', 45],
    ],
    points: [
      'Invoices out in under a minute',
      'Receipts read from a photo',
      'Your accountant gets in for free',
      'Cancel any month',
    ],
  },
  {
    ...english,
    name: 'Stridemoor',
    domain: 'stridemoor.example',
    industry: 'fitness',
    countries: ['US', 'GB', 'IE'],
    products: [
      ['the Moor 3 trail shoe', 139],
      ['the Fog Runner jacket', 98],
    ],
    points: ['Grips on wet rock', '240 g per shoe', '500-mile sole guarantee', 'Uppers from recycled nets'],
  },
  {
    ...english,
    name: 'Quiet Heron Sleep',
    domain: 'quietheron.example',
    industry: 'home',
    countries: ['US'],
    products: [
      ['the Heron hybrid mattress', 899],
      ['the Cloudfold pillow', 69],
    ],
    points: [
      '100-night home trial',
      'Cool to the touch all night',
      'Zoned support for hips and shoulders',
      'Made in Oregon',
    ],
  },
  {
    ...english,
    name: 'Tidewarden Games',
    domain: 'tidewarden.example',
    industry: 'games',
    countries: ['US', 'CA', 'GB', 'AU', 'NZ'],
    products: [
      ['Isles of Ember', 0],
      ['Lantern Keepers', 0],
    ],
    points: ['Build a harbor that is yours', 'Play offline, on any phone', 'New islands every Friday', 'No forced ads'],
  },
  {
    ...english,
    name: 'Sunhollow Solar',
    domain: 'sunhollow.example',
    industry: 'energy',
    countries: ['US'],
    products: [
      ['the Hollow rooftop plan', 89],
      ['the Keepsake home battery', 6900],
    ],
    points: [
      '$0 down for homeowners who qualify',
      'Lower bills from the first month',
      '25-year panel warranty',
      'A local crew does the work',
    ],
  },
  {
    ...english,
    name: 'Harrow & Finch',
    domain: 'harrowandfinch.example',
    industry: 'food',
    countries: ['GB', 'IE'],
    products: [
      ['the Fen Breakfast tea', 9.5],
      ['the Marmalade Club box', 24],
    ],
    points: [
      'Whole leaves, plastic-free bags',
      'Blended in small batches',
      'Carbon-neutral post',
      'Tins you will want to keep',
    ],
  },
  {
    ...english,
    name: 'Copperquill Cookware',
    domain: 'copperquill.example',
    industry: 'home',
    countries: ['US', 'CA'],
    products: [
      ['the Everyday Quill pan', 119],
      ['the Dutch Quill oven', 189],
    ],
    points: ['Nothing sticks, nothing flakes', 'Oven-safe to 500 °F', 'Stays light in the hand', 'Lifetime promise'],
  },
  {
    ...english,
    name: 'Mossgate Botanics',
    domain: 'mossgate.example',
    industry: 'beauty',
    countries: ['US', 'GB', 'AU'],
    products: [
      ['the Dew Barrier serum', 38],
      ['the Night Fern balm', 44],
    ],
    points: [
      'Fragrance-free',
      'Ceramides and oat, nothing you cannot read',
      'Made for sensitive skin',
      'Refill pouches save 70% plastic',
    ],
  },
  {
    ...english,
    name: 'Pennywren',
    domain: 'pennywren.example',
    industry: 'finance',
    countries: ['US'],
    products: [
      ['the Pennywren savings nest', 3],
      ['Pennywren Family', 5],
    ],
    points: ['Rounds up every purchase', 'Set a goal and watch it fill', 'No monthly minimum', 'Money out any day'],
  },
  {
    ...portuguese,
    name: 'Raiz Serena',
    domain: 'raizserena.example',
    industry: 'beauty',
    products: [
      ['o Sérum Raiz Clara', 119],
      ['a Máscara Noite Serena', 89],
    ],
    points: [
      'Com ativos da Amazônia',
      'Vegano e sem crueldade',
      'Textura leve, sem brilho',
      'Resultado visível em 4 semanas',
    ],
  },
  {
    ...portuguese,
    name: 'Forno da Colina',
    domain: 'fornodacolina.example',
    industry: 'food',
    products: [
      ['o Kit Pão de Queijo da Colina', 59],
      ['a Caixa Café da Tarde', 79],
    ],
    points: [
      'Massa pronta, é só assar',
      'Queijo curado de verdade',
      'Entrega congelada na sua porta',
      'Rende 40 unidades',
    ],
  },
  {
    ...portuguese,
    name: 'Caminho Azulado Viagens',
    domain: 'caminhoazulado.example',
    industry: 'travel',
    products: [
      ['o Pacote Praias do Norte', 1890],
      ['o Roteiro Serra em Família', 1290],
    ],
    points: [
      'Parcele em até 10 vezes',
      'Café da manhã incluso',
      'Cancelamento grátis até 7 dias antes',
      'Guia local em português',
    ],
  },
  {
    name: 'Sol de Nopal',
    domain: 'soldenopal.example',
    industry: 'beauty',
    language: 'es',
    countries: ['MX', 'CO'],
    products: [
      ['el Aceite Flor de Nopal', 420],
      ['la Crema Luz de Tuna', 360],
    ],
    points: ['Hecho con nopal de cultivo local', 'Sin parabenos', 'Hidrata 24 horas', 'Apto para piel sensible'],
  },
  {
    name: 'Finca Brumaza',
    domain: 'fincabrumaza.example',
    industry: 'food',
    language: 'es',
    countries: ['CO', 'MX', 'CL'],
    products: [
      ['el Café Niebla Alta', 48],
      ['la Suscripción Tostado del Mes', 62],
    ],
    points: [
      'Tostado el mismo día del envío',
      'Notas de cacao y mandarina',
      'Pago justo a 30 familias',
      'Molido a tu medida',
    ],
  },
];
