/** How each advertiser of the demo looks: its colours, its letters, where its products stand, and what they are drawn as. */
export type Look = {
  /** Paper, tint, body, dark and accent. */
  colours: string;
  letters: 'sans' | 'serif' | 'condensed';
  backdrop: 'studio' | 'podium' | 'table' | 'rays' | 'blobs' | 'hills' | 'night' | 'screens';
  /** Ids in products.svg, in the order of the advertiser's products. */
  products: readonly [string, string];
};

const rows: Record<string, readonly [string, Look['letters'], Look['backdrop'], string, string]> = {
  'brightpaw-larder.example': ['fff1dc f9cf94 e0702f 55270f 1f8a80', 'condensed', 'blobs', 'bowl', 'twists'],
  'ledgerleaf.example': ['eaf5ee c3e6d0 2f9461 0f3f34 ffb238', 'sans', 'screens', 'laptop', 'phone'],
  'stridemoor.example': ['eef1ee c9d6cf c2562b 20323a f0b429', 'condensed', 'hills', 'shoe', 'jacket'],
  'quietheron.example': ['eceffa c5cdee 5c6fc4 1e2654 f5b971', 'serif', 'night', 'bed', 'pillow'],
  'tidewarden.example': ['dff4f7 8fd8e4 1f87a8 12304f ffb22e', 'condensed', 'rays', 'island', 'lantern'],
  'sunhollow.example': ['fff6da ffdd80 e99a17 3a3f58 2f86c8', 'sans', 'hills', 'house', 'battery'],
  'harrowandfinch.example': ['f4f1e4 d8d3ac 4d7a5c 21402f c9572f', 'serif', 'table', 'tin', 'jar'],
  'copperquill.example': ['fbeee5 f0c9ae c4612f 4d1f12 2d8f8f', 'serif', 'table', 'pan', 'pot'],
  'mossgate.example': ['f0f4ea cfdfbf 6a935a 26432c e2a24a', 'serif', 'podium', 'dropper', 'jar'],
  'pennywren.example': ['fdf0ec f6c7ba e06a52 3c2350 2aa198', 'sans', 'blobs', 'nest', 'phone'],
  'raizserena.example': ['f3f5e2 d3df9b 7c9a2e 35491a e0603f', 'serif', 'podium', 'dropper', 'tube'],
  'fornodacolina.example': ['fff4da f7d98c dd9a1e 63360c c33c2c', 'condensed', 'table', 'breads', 'cup'],
  'caminhoazulado.example': ['e2f5fb a5dcf0 1d8fc0 0b3f63 ff7f50', 'sans', 'hills', 'beach', 'mountains'],
  'soldenopal.example': ['fdeef0 f7bfca d94877 5e1638 5da64c', 'serif', 'podium', 'dropper', 'jar'],
  'fincabrumaza.example': ['f2ece2 d8c3a5 8a5a34 34200f 3f8f6b', 'condensed', 'hills', 'coffeebag', 'cup'],
  'waldfaden.example': ['eef0e8 ccd3bd 5c7350 232f22 c8863a', 'serif', 'studio', 'jacket', 'sweater'],
  'kesselgold.example': ['faf0dc edd09a b5812a 2f1d10 a63a2a', 'serif', 'table', 'coffeebag', 'cup'],
  'lichtwerft.example': ['f6f2ea e2d5bf 2f5f73 1c2a33 eb9a3c', 'sans', 'studio', 'floorlamp', 'lamp'],
  'steuerfuchs-soehne.example': ['fff0e4 ffcea6 ea7025 2b2440 2f9e8f', 'sans', 'screens', 'phone', 'receipt'],
  'maison-ortevelle.example': ['faf0ee efd2cc cc8f86 4f2b33 8a9a5b', 'serif', 'podium', 'dropper', 'jar'],
  'papillote-compagnie.example': ['f1f7e4 cfe6a4 62a03f 224a2a ef7d3c', 'condensed', 'blobs', 'basket', 'hamper'],
  'velobrume.example': ['e9eff5 bccddd 3f7aa8 16293d f26b4e', 'condensed', 'hills', 'bicycle', 'helmet'],
  'casalumbrera.example': ['f8f0e3 e6cfa8 b5703a 4a2c1a 55795a', 'serif', 'studio', 'sofa', 'table'],
  'idiomaluna.example': ['efeafc cfc1f4 6f4fd0 2a1a5e ffb02e', 'sans', 'blobs', 'speech', 'laptop'],
  'huertaclarin.example': ['f4f8e2 d8e79d 7aa52f 2f4a18 e5542f', 'condensed', 'table', 'crate', 'oil'],
  'bottega-alvernosa.example': ['f7efe6 e3c8ac a3592d 3c1c10 2f5d57', 'serif', 'podium', 'bag', 'belt'],
  'pastalunella.example': ['fdf3df f6d594 c9402c 1f3d63 e8a628', 'condensed', 'rays', 'pastabox', 'pasta'],
  'grachtwiel.example': ['e8f3f4 b5dadd 21818a 0f3440 ff8b3d', 'sans', 'hills', 'bicycle', 'cargobike'],
  'kruidenzolder.example': ['f6f3e6 dcd7a8 8f9a4a 40451c b5568a', 'serif', 'table', 'cup', 'tube'],
  'cinaraltidemlik.example': ['fbeee4 f0c4a0 b8512a 46160f 1f7f86', 'serif', 'table', 'teaglass', 'teapot'],
  'sosnowachatka.example': ['e9f1f0 bfd6d3 3f7a76 15343a e99a45', 'sans', 'night', 'cabin', 'mountains'],
  'dalbit-iseul.example': ['f1eefb d3caf2 8f7fd0 33295f f2a7b8', 'sans', 'podium', 'dropper', 'jar'],
  'harusoban.example': ['fbf0e3 f0cf9f b5552f 3f1d14 4f8a4a', 'sans', 'table', 'bento', 'soup'],
  'gongbu-supgil.example': ['e8f6ec b4e0c1 2f9a63 12463a ff9f43', 'sans', 'blobs', 'speech', 'book'],
  'komorebi-baisen.example': ['f5efe2 dfcda6 7a6a3a 2e2a18 c4562f', 'serif', 'studio', 'coffeebag', 'cup'],
  'sorairo-bungu.example': ['e8f4fb b3daf0 3f94cc 17406a f2b04a', 'sans', 'studio', 'notebook', 'pen'],
  'yumenone.example': ['eef0f8 ccd2ea 7a88c0 2a3160 f0b7a0', 'serif', 'night', 'pillow', 'bed'],
  'qingci-days.example': ['eaf3ef bcdcd0 5fa08c 1f4a44 c98a4a', 'serif', 'studio', 'teapot', 'plate'],
  'xiaolu-speak.example': ['fff4d6 ffdc7a f08a24 5a3010 2f9ac0', 'sans', 'blobs', 'laptop', 'book'],
  'rangoli-aangan.example': ['fdf0e0 f8c98a d9542f 5a1440 128a8a', 'serif', 'rays', 'rug', 'diya'],
  'pathshala-saathi.example': ['e6f0fd b4d2f8 2f6fd0 142f66 ff9a2e', 'sans', 'screens', 'phone', 'book'],
  'masala-mandali.example': ['fff0d9 fbcb78 d9691f 4f1710 3f8a5a', 'condensed', 'rays', 'spices', 'soup'],
  'wahat-aloudia.example': ['f6ecdf e0bf8f 7a2f3c 2e1018 c99a3f', 'serif', 'podium', 'perfume', 'attar'],
  'bayt-alnakhilat.example': ['f8f0dc e8cd8c 3f7a4f 1f3a26 b5722a', 'serif', 'table', 'dates', 'cookies'],
  'duroob-alrimal.example': ['fdeedb f6c48c cf6a34 3a1c45 f2b544', 'sans', 'night', 'camp', 'mountains'],
  'dapur-sarirasa.example': ['fff0dc fcc680 d43f26 4d120e 4f9a3f', 'condensed', 'rays', 'jar', 'soup'],
  'langkahrimba.example': ['e9f4ea b9dcbd 3f9160 173a2b f28a3c', 'condensed', 'hills', 'shoe', 'backpack'],
  'trasensom.example': ['fceef2 f5c3d2 cf5f86 4a1f3a 4f8f6a', 'serif', 'table', 'tin', 'box'],
  'baan-baiboon.example': ['f1f6e4 cfe2a8 5f9a3f 24431f d9a23a', 'sans', 'podium', 'soap', 'dropper'],
};

export const looks: Record<string, Look> = Object.fromEntries(
  Object.entries(rows).map(([domain, [colours, letters, backdrop, ...products]]) => [
    domain,
    { colours, letters, backdrop, products },
  ]),
);

/** What stickers and buttons say. */
export const words: Record<string, { sale: string; goods?: string; apps?: string; games?: string; services?: string }> =
  {
    en: { sale: 'Sale', goods: 'Shop now', apps: 'Get started', games: 'Play now', services: 'Learn more' },
    de: { sale: 'Aktion', goods: 'Jetzt kaufen', apps: 'Jetzt starten' },
    fr: { sale: 'Promo', goods: 'J’en profite' },
    es: { sale: 'Oferta', goods: 'Comprar ya', services: 'Empieza hoy' },
    pt: { sale: 'Oferta', goods: 'Compre agora', services: 'Reserve já' },
    it: { sale: 'Offerta', goods: 'Acquista ora' },
    nl: { sale: 'Actie', goods: 'Shop nu' },
    tr: { sale: 'İndirim', goods: 'Hemen al' },
    pl: { sale: 'Rabat', services: 'Zarezerwuj' },
    ko: { sale: '할인', goods: '지금 구매하기', services: '지금 시작하기' },
    ja: { sale: '本日限定', goods: '今すぐ購入' },
    zh: { sale: '優惠', goods: '立即選購', services: '立即報名' },
    hi: { sale: 'छूट', goods: 'अभी खरीदें', services: 'अभी जुड़ें' },
    ar: { sale: 'خصم', goods: 'تسوّق الآن', services: 'احجز الآن' },
    id: { sale: 'Diskon', goods: 'Beli sekarang' },
    vi: { sale: 'Ưu đãi', goods: 'Mua ngay' },
    th: { sale: 'ลดราคา', goods: 'ช้อปเลย' },
  };

/** Prices are in the currency of an advertiser's first country. */
export const currencies: Record<string, string> = {
  US: 'USD',
  GB: 'GBP',
  BR: 'BRL',
  MX: 'MXN',
  DE: 'EUR',
  FR: 'EUR',
  ES: 'EUR',
  IT: 'EUR',
  NL: 'EUR',
  TR: 'TRY',
  PL: 'PLN',
  KR: 'KRW',
  JP: 'JPY',
  TW: 'TWD',
  IN: 'INR',
  SA: 'SAR',
  AE: 'AED',
  ID: 'IDR',
  VN: 'VND',
  TH: 'THB',
};
