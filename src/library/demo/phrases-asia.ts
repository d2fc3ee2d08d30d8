import type { PhrasesByTrade } from './phrases.ts';

const korean = {
  launch: ['드디어 출시! {product} 🎉', '{brand}의 새 소식: {product}'],
  offer: ['이번 주 단 7일, {product} {percent}% 할인 ⏰', '시즌 최대 할인 시작! {product}도 함께합니다.'],
  proof: ['“왜 이제야 만났을까요?” ⭐⭐⭐⭐⭐ {product}', '벌써 {thousands},000명이 선택했습니다: {product}'],
} satisfies Partial<Record<string, [string, string]>>;

const koreanHeadlines: [string, string, string] = [
  '{product} 오늘만 {percent}% 할인',
  '{product} 지금 만나보세요',
  '모두가 이야기하는 {product}',
];

const chinese = {
  launch: ['終於登場：{product} 🎉', '{brand} 全新推出「{product}」。'],
  offer: ['只有這週，{product} 享 {percent}% 折扣 ⏰', '年度最大優惠開跑，「{product}」也在其中。'],
  proof: ['「真希望早一點遇見。」⭐⭐⭐⭐⭐ {product}', '超過 {thousands},000 人已經選擇「{product}」。'],
} satisfies Partial<Record<string, [string, string]>>;

const chineseHeadlines: [string, string, string] = [
  '{product} 今日 {percent}% 優惠',
  '認識「{product}」',
  '為什麼大家都在聊「{product}」',
];

const hindi = {
  launch: ['इंतज़ार खत्म: {product}। 🎉', '{brand} की नई पेशकश: {product}।'],
  offer: ['सिर्फ़ इस हफ़्ते: {product} पर {percent}% की छूट। ⏰', 'सीज़न का सबसे बड़ा ऑफ़र शुरू, {product} भी शामिल।'],
  proof: ['“काश {product} के बारे में पहले पता होता।” ⭐⭐⭐⭐⭐', '{thousands},000 से ज़्यादा परिवारों की पसंद: {product}।'],
} satisfies Partial<Record<string, [string, string]>>;

const hindiHeadlines: [string, string, string] = [
  '{product}: आज {percent}% छूट',
  '{product} से मिलिए',
  'सब {product} की बात क्यों कर रहे हैं',
];

const arabic = {
  launch: ['أخيرًا بين أيديكم: {product} 🎉', 'جديد {brand}: {product}.'],
  offer: ['هذا الأسبوع فقط: خصم {percent}% على {product} ⏰', 'بدأت أكبر عروض الموسم، و{product} ضمن العروض.'],
  proof: ['«ليتني عرفت {product} من قبل» ⭐⭐⭐⭐⭐', 'أكثر من {thousands} ألف شخص اختاروا {product}.'],
} satisfies Partial<Record<string, [string, string]>>;

const arabicHeadlines: [string, string, string] = [
  '{product}: خصم {percent}% اليوم',
  'اكتشف {product}',
  'لماذا يتحدث الجميع عن {product}',
];

export const asianPhrases = {
  ko: {
    goods: {
      openings: {
        ...korean,
        story: ['{tries}번의 시도 끝에 완성했습니다: {product}', '작은 주방 식탁에서 시작된 {product} 이야기'],
        question: ['오늘 하루, {product} 어떠세요?', '아직도 고민 중이신가요? 답은 {product}입니다.'],
      },
      headlines: koreanHeadlines,
      offers: ['쿠폰 코드 HELLO{percent} 입력 시 {percent}% 추가 할인', '무료 배송, {days}일 이내 무료 반품'],
      closings: ['👉 지금 바로 확인하세요!', '수량이 얼마 남지 않았어요.'],
    },
    services: {
      openings: {
        ...korean,
        story: ['선생님 {tries}명이 함께 만들었습니다: {product}', '거실 책상에서 시작된 {product} 이야기'],
        question: ['하루 15분, 한 달 뒤가 궁금하다면? {product}', '작심삼일이 걱정인가요? 함께 가는 {product}'],
      },
      headlines: koreanHeadlines,
      offers: ['쿠폰 코드 HELLO{percent} 입력 시 첫 달 {percent}% 할인', '{days}일 안에 마음이 바뀌면 전액 환불'],
      closings: ['👉 무료 체험 신청하기', '이번 달 모집이 곧 끝나요.'],
    },
  },
  ja: {
    goods: {
      openings: {
        launch: ['ついに登場、{product} 🎉', '{brand}の新作「{product}」ができました。'],
        offer: ['今週限定、{product}が{percent}%オフ ⏰', '今季最大のセールが始まりました。{product}も対象です。'],
        proof: [
          '「{product}にもっと早く出会いたかった」⭐⭐⭐⭐⭐',
          'すでに{thousands},000人以上が{product}を選んでいます。',
        ],
        story: ['{tries}回の試作を重ねて完成した{product}。', '小さな机から始まった{product}の物語。'],
        question: [
          '毎日に小さな楽しみを。{product}はいかがですか？',
          'まだ迷っていますか？ {product}をお試しください。',
        ],
      },
      headlines: ['{product}｜本日{percent}%オフ', '{product}、はじめました', 'みんなが{product}を選ぶ理由'],
      offers: ['クーポン「HELLO{percent}」で{percent}%割引。', '送料無料、{days}日間返品できます。'],
      closings: ['👉 詳しくはこちら', '数量限定、お早めにどうぞ。'],
    },
  },
  zh: {
    goods: {
      openings: {
        ...chinese,
        story: ['試做 {tries} 次，才有今天的「{product}」。', '從一張餐桌開始，「{product}」走進許多家庭。'],
        question: ['每天的餐桌，想不想多一點好心情？「{product}」陪你。', '還在將就嗎？試試「{product}」。'],
      },
      headlines: chineseHeadlines,
      offers: ['輸入優惠碼 HELLO{percent} 再享 {percent}% 折扣。', '全館免運，{days} 天內可退換。'],
      closings: ['👉 立即了解', '數量有限，售完為止。'],
    },
    services: {
      openings: {
        ...chinese,
        story: [
          '聽過 {tries} 個家庭的想法，才有了「{product}」。',
          '從一間小教室開始，「{product}」陪孩子走進故事裡。',
        ],
        question: ['孩子敢開口嗎？讓「{product}」陪他說第一句。', '週末想做點不一樣的？試試「{product}」。'],
      },
      headlines: chineseHeadlines,
      offers: ['報名時輸入 HELLO{percent}，學費享 {percent}% 折扣。', '上課 {days} 天內不滿意，全額退費。'],
      closings: ['👉 預約試聽', '名額有限，額滿為止。'],
    },
  },
  hi: {
    goods: {
      openings: {
        ...hindi,
        story: ['{tries} कोशिशों के बाद: {product}।', 'एक छोटे आँगन से शुरू हुई {product} की कहानी।'],
        question: ['घर में रौनक चाहिए? मिलिए {product} से।', 'अब भी तलाश जारी है? देखिए {product}।'],
      },
      headlines: hindiHeadlines,
      offers: ['कोड NAMASTE{percent} लगाएँ और {percent}% बचाएँ।', 'मुफ़्त डिलीवरी और {days} दिन में वापसी।'],
      closings: ['👉 अभी देखें।', 'स्टॉक सीमित है, देर न करें।'],
    },
    services: {
      openings: {
        ...hindi,
        story: ['{tries} शिक्षकों की मेहनत से: {product}।', 'एक छोटी कक्षा से शुरू हुई {product} की कहानी।'],
        question: ['परीक्षा की चिंता? साथ है {product}।', 'सवाल अटक गया? पूछिए {product} से।'],
      },
      headlines: hindiHeadlines,
      offers: ['कोड NAMASTE{percent} लगाएँ, फ़ीस में {percent}% की छूट पाएँ।', '{days} दिन में पसंद न आए तो पूरे पैसे वापस।'],
      closings: ['👉 आज ही शुरू करें।', 'सीटें सीमित हैं।'],
    },
  },
  ar: {
    goods: {
      openings: {
        ...arabic,
        story: ['بعد {tries} تجربة وصلنا إلى {product}.', 'بدأت الحكاية من بيت صغير، واليوم يصل {brand} إلى بيوتكم.'],
        question: ['ماذا تهدي من تحب؟ جرّب {product}.', 'ما زلت تبحث؟ تعرّف على {product}.'],
      },
      headlines: arabicHeadlines,
      offers: ['استخدم الرمز AHLAN{percent} واحصل على خصم {percent}%.', 'توصيل مجاني وإرجاع خلال {days} يومًا.'],
      closings: ['👈 اطلبه الآن.', 'الكمية محدودة.'],
    },
    services: {
      openings: {
        ...arabic,
        launch: ['الحجز مفتوح الآن: {product} 🎉', 'جديد {brand}: {product}.'],
        story: ['بعد {tries} رحلة اخترنا لكم {product}.', 'بدأت الحكاية بسيارة وخيمة، واليوم ندعوكم إلى {product}.'],
        question: ['متى كانت آخر إجازة لك؟ جرّب {product}.', 'لم تقرر وجهتك بعد؟ تعرّف على {product}.'],
      },
      headlines: arabicHeadlines,
      offers: ['استخدم الرمز AHLAN{percent} عند الحجز واحصل على خصم {percent}%.', 'احجز اليوم وادفع بعد {days} يومًا.'],
      closings: ['👈 احجز مكانك الآن.', 'الأماكن محدودة.'],
    },
  },
  id: {
    goods: {
      openings: {
        launch: ['Akhirnya hadir: {product}. 🎉', 'Baru dari {brand}: {product} untuk setiap hari.'],
        offer: [
          'Khusus minggu ini: {product} diskon {percent}%. ⏰',
          'Promo terbesar musim ini dimulai, {product} ikut serta.',
        ],
        proof: [
          '“Coba dari dulu kenal {product}.” ⭐⭐⭐⭐⭐',
          'Lebih dari {thousands}.000 orang sudah memilih {product}.',
        ],
        story: [
          '{tries} kali percobaan sampai {product} terasa pas.',
          'Berawal dari usaha rumahan, kini {product} dikirim ke seluruh negeri.',
        ],
        question: ['Sudah siap mencoba {product}?', 'Masih cari yang pas? Kenalan dengan {product}.'],
      },
      headlines: [
        '{product}: diskon {percent}% hari ini',
        'Kenalan dengan {product}',
        'Kenapa semua membicarakan {product}',
      ],
      offers: ['Pakai kode HALO{percent} untuk potongan {percent}%.', 'Gratis ongkir dan {days} hari pengembalian.'],
      closings: ['👉 Cek sekarang.', 'Stok terbatas, jangan sampai kehabisan.'],
    },
  },
  vi: {
    goods: {
      openings: {
        launch: ['Đã có mặt: {product}. 🎉', 'Mới từ {brand}: {product} cho mỗi ngày.'],
        offer: [
          'Chỉ tuần này: giảm {percent}% cho {product}. ⏰',
          'Đợt giảm giá lớn nhất mùa đã bắt đầu, có cả {product}.',
        ],
        proof: ['“Giá mà biết {product} sớm hơn.” ⭐⭐⭐⭐⭐', 'Hơn {thousands}.000 người đã chọn {product}.'],
        story: ['{tries} lần thử để có {product} như ý.', 'Bắt đầu từ căn bếp nhỏ, nay {product} có mặt khắp nơi.'],
        question: ['Sáng nay bạn uống gì? Thử {product} nhé.', 'Tìm quà cho người thân? Hãy xem {product}.'],
      },
      headlines: ['{product}: giảm {percent}% hôm nay', 'Khám phá {product}', 'Vì sao ai cũng nhắc đến {product}'],
      offers: ['Nhập mã CHAO{percent} để giảm {percent}%.', 'Miễn phí giao hàng, đổi trả trong {days} ngày.'],
      closings: ['👉 Xem ngay.', 'Số lượng có hạn.'],
    },
  },
  th: {
    goods: {
      openings: {
        launch: ['มาแล้ว {product} 🎉', 'ใหม่จาก {brand}: {product} สำหรับทุกวัน'],
        offer: ['เฉพาะสัปดาห์นี้ {product} ลด {percent}% ⏰', 'เริ่มแล้วโปรใหญ่ประจำฤดูกาล มี {product} ด้วย'],
        proof: ['“น่าจะรู้จัก {product} เร็วกว่านี้” ⭐⭐⭐⭐⭐', 'กว่า {thousands},000 คนเลือก {product} แล้ว'],
        story: ['ลองทำ {tries} ครั้งกว่าจะได้ {product} ที่พอใจ', 'เริ่มจากครัวเล็กๆ วันนี้ {product} ส่งทั่วประเทศ'],
        question: ['ผิวของคุณต้องการอะไร ลอง {product} สิ', 'ยังหาที่ถูกใจไม่เจอหรือเปล่า ลอง {product} สิ'],
      },
      headlines: ['{product} ลด {percent}% วันนี้', 'รู้จัก {product}', 'ทำไมใครๆ ก็พูดถึง {product}'],
      offers: ['ใส่โค้ด SAWASDEE{percent} ลดทันที {percent}%', 'ส่งฟรี คืนได้ใน {days} วัน'],
      closings: ['👉 ดูเลย', 'สินค้ามีจำนวนจำกัด'],
    },
  },
} satisfies Record<string, PhrasesByTrade>;
