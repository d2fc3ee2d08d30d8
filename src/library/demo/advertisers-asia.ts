import type { Advertiser } from './advertisers.ts';

const korean = { language: 'ko', countries: ['KR'] } satisfies Partial<Advertiser>;
const japanese = { language: 'ja', countries: ['JP'] } satisfies Partial<Advertiser>;
const hindi = { language: 'hi', countries: ['IN'] } satisfies Partial<Advertiser>;

export const asianAdvertisers: Advertiser[] = [
  {
    ...korean,
    name: '달빛이슬 연구소',
    domain: 'dalbit-iseul.example',
    industry: 'beauty',
    products: [
      ['이슬 수분 세럼', 28000],
      ['달빛 진정 크림', 32000],
    ],
    points: ['끈적임 없이 가볍게 흡수', '민감 피부 테스트 완료', '하루 종일 촉촉한 보습', '비건 인증 원료'],
  },
  {
    ...korean,
    name: '하루소반상',
    domain: 'harusoban.example',
    industry: 'food',
    products: [
      ['소반 한 끼 도시락', 8900],
      ['시골 된장국 세트', 19900],
    ],
    points: ['전자레인지 3분이면 완성', '국내산 재료만 사용', '나트륨 30% 줄임', '새벽 배송 가능'],
  },
  {
    ...korean,
    name: '공부숲길',
    domain: 'gongbu-supgil.example',
    industry: 'education',
    products: [
      ['숲길 영어 회화', 49000],
      ['초등 수학 탐험대', 39000],
    ],
    points: ['하루 15분이면 충분해요', '1:1 맞춤 학습 계획', '7일 무료 체험', '부모님 리포트 제공'],
  },
  {
    ...japanese,
    name: '木漏れ日焙煎舎',
    domain: 'komorebi-baisen.example',
    industry: 'food',
    products: [
      ['朝霧ブレンド', 1480],
      ['飲み比べ三種セット', 2980],
    ],
    points: ['注文後に焙煎', 'すっきりした後味', '定期便はいつでもお休みできます', '農園から直接仕入れ'],
  },
  {
    ...japanese,
    name: 'そらいろ文具店',
    domain: 'sorairo-bungu.example',
    industry: 'home',
    products: [
      ['雲のノート', 780],
      ['空色インク万年筆', 6800],
    ],
    points: ['にじまない紙', '180度ひらく製本', '名入れ無料', '京都の工房で手づくり'],
  },
  {
    ...japanese,
    name: 'ゆめのね寝具',
    domain: 'yumenone.example',
    industry: 'home',
    products: [
      ['ねむりの枕', 9800],
      ['四季の掛け布団', 24800],
    ],
    points: ['高さを六段階で調整', '洗えるカバー', '30日お試し', '首と肩をやさしく支える'],
  },
  {
    name: '青瓷小日子',
    domain: 'qingci-days.example',
    industry: 'home',
    language: 'zh',
    countries: ['TW', 'HK'],
    products: [
      ['霧青茶具組', 1680],
      ['月牙餐盤', 880],
    ],
    points: ['職人手工拉坯', '可微波可洗碗機', '附木盒，送禮大方', '破損包賠'],
  },
  {
    name: '小鹿開口說',
    domain: 'xiaolu-speak.example',
    industry: 'education',
    language: 'zh',
    countries: ['TW', 'SG', 'MY'],
    products: [
      ['兒童英語開口課', 2990],
      ['週末故事劇場', 990],
    ],
    points: ['外師小班教學', '每堂二十五分鐘', '免費試聽一堂', '在家就能上課'],
  },
  {
    ...hindi,
    name: 'रंगोली आँगन',
    domain: 'rangoli-aangan.example',
    industry: 'home',
    products: [
      ['हाथ से बुना दरी कालीन', 2499],
      ['दीया संग्रह उपहार', 899],
    ],
    points: ['राजस्थान के कारीगरों का काम', 'प्राकृतिक रंग', 'घर बैठे भुगतान', 'सात दिन में डिलीवरी'],
  },
  {
    ...hindi,
    name: 'पाठशाला साथी',
    domain: 'pathshala-saathi.example',
    industry: 'education',
    products: [
      ['गणित मित्र ऐप', 299],
      ['बोर्ड परीक्षा तैयारी', 1999],
    ],
    points: ['हिंदी में आसान वीडियो', 'हर दिन अभ्यास प्रश्न', 'शिक्षक से सीधे सवाल पूछें', 'पहला महीना मुफ़्त'],
  },
  {
    name: 'Masala Mandali',
    domain: 'masala-mandali.example',
    industry: 'food',
    language: 'en',
    countries: ['IN', 'AE'],
    products: [
      ['the Dadi Spice Tin', 649],
      ['the Ten-Minute Dal Kit', 399],
    ],
    points: ['Stone-ground every Tuesday', 'No colours, no MSG', 'Serves four', 'Cash on delivery'],
  },
  {
    name: 'واحة العودية',
    domain: 'wahat-aloudia.example',
    industry: 'beauty',
    language: 'ar',
    countries: ['SA', 'AE', 'KW'],
    products: [
      ['عطر ليالي الواحة', 320],
      ['دهن العود الملكي', 540],
    ],
    points: ['ثبات يدوم حتى 12 ساعة', 'عود طبيعي معتّق', 'تغليف فاخر للهدايا', 'عيّنة مجانية مع كل طلب'],
  },
  {
    name: 'بيت النخيلات',
    domain: 'bayt-alnakhilat.example',
    industry: 'food',
    language: 'ar',
    countries: ['SA', 'EG', 'AE'],
    products: [
      ['صندوق تمور الموسم', 95],
      ['معمول الجدة', 48],
    ],
    points: ['تمر من المزرعة مباشرة', 'بدون سكر مضاف', 'هدية جاهزة للضيافة', 'توصيل في اليوم التالي'],
  },
  {
    name: 'دروب الرمال',
    domain: 'duroob-alrimal.example',
    industry: 'travel',
    language: 'ar',
    countries: ['AE', 'SA', 'JO'],
    products: [
      ['رحلة النجوم في الصحراء', 450],
      ['عطلة الجبال العائلية', 1290],
    ],
    points: ['مرشد محلي خبير', 'عشاء تحت النجوم', 'إلغاء مجاني قبل يومين', 'مناسبة للعائلات'],
  },
  {
    name: 'Dapur Sarirasa',
    domain: 'dapur-sarirasa.example',
    industry: 'food',
    language: 'id',
    countries: ['ID', 'MY'],
    products: [
      ['Sambal Bakar Nusa', 38000],
      ['Paket Rendang Siap Santap', 89000],
    ],
    points: ['Resep turun-temurun', 'Tanpa pengawet', 'Tahan 6 bulan', 'Pedas bisa dipilih'],
  },
  {
    name: 'Langkah Rimba',
    domain: 'langkahrimba.example',
    industry: 'fashion',
    language: 'id',
    countries: ['ID'],
    products: [
      ['Sepatu Embun Pagi', 349000],
      ['Tas Jelajah Kota', 279000],
    ],
    points: ['Ringan dan empuk', 'Bahan daur ulang', 'Garansi sol satu tahun', 'Bisa tukar ukuran'],
  },
  {
    name: 'Trà Sen Sớm',
    domain: 'trasensom.example',
    industry: 'food',
    language: 'vi',
    countries: ['VN'],
    products: [
      ['Trà Sen Hồ Sớm', 185000],
      ['Hộp Quà Bốn Mùa', 420000],
    ],
    points: ['Ướp sen thủ công', 'Không hương liệu', 'Giao nhanh 2 giờ', 'Hộp quà sang trọng'],
  },
  {
    name: 'บ้านใบบุญ',
    domain: 'baan-baiboon.example',
    industry: 'beauty',
    language: 'th',
    countries: ['TH'],
    products: [
      ['สบู่ใบบัวบก', 129],
      ['เซรั่มข้าวหอม', 390],
    ],
    points: ['สมุนไพรไทยแท้', 'อ่อนโยนต่อผิว', 'ไม่มีน้ำหอม', 'เห็นผลใน 14 วัน'],
  },
];
