import type { Phrases } from './phrases.ts';

export const asianPhrases = {
  ko: {
    openings: {
      launch: ['드디어 출시! {product} 🎉', '{brand}의 신제품, 매일 쓰고 싶은 {product}'],
      offer: ['이번 주 단 7일, {product} {percent}% 할인 ⏰', '시즌 최대 할인 시작! {product}도 함께합니다.'],
      proof: ['“{product}, 왜 이제야 만났을까요?” ⭐⭐⭐⭐⭐', '벌써 12,000명이 {product}(으)로 바꿨습니다.'],
      story: ['41번의 시도 끝에 완성한 {product}', '작은 주방 식탁에서 시작된 {product} 이야기'],
      question: [
        '매주 한 시간이 생긴다면? {product}가 도와드려요.',
        '아직도 예전 방식 그대로인가요? {product}를 만나보세요.',
      ],
    },
    headlines: ['{product} 오늘만 {percent}% 할인', '{product} 지금 만나보세요', '모두가 {product}를 이야기하는 이유'],
    offers: ['쿠폰 코드 HELLO{percent} 입력 시 {percent}% 추가 할인', '무료 배송, {days}일 이내 무료 반품'],
    closings: ['👉 지금 바로 확인하세요!', '수량이 얼마 남지 않았어요.'],
  },
  ja: {
    openings: {
      launch: ['ついに登場、{product} 🎉', '{brand}の新作「{product}」ができました。'],
      offer: ['今週限定、{product}が{percent}%オフ ⏰', '今季最大のセールが始まりました。{product}も対象です。'],
      proof: ['「{product}にもっと早く出会いたかった」⭐⭐⭐⭐⭐', 'すでに12,000人以上が{product}を選んでいます。'],
      story: ['41回の試作を重ねて完成した{product}。', '小さな台所から始まった{product}の物語。'],
      question: [
        '毎週一時間のゆとりが生まれたら？ {product}がお手伝いします。',
        'まだ昔のやり方のままですか？ {product}をお試しください。',
      ],
    },
    headlines: ['{product}｜本日{percent}%オフ', '{product}、はじめました', 'みんなが{product}を選ぶ理由'],
    offers: ['クーポン「HELLO{percent}」で{percent}%割引。', '送料無料、{days}日間返品できます。'],
    closings: ['👉 詳しくはこちら', '数量限定、お早めにどうぞ。'],
  },
  zh: {
    openings: {
      launch: ['終於上市：{product} 🎉', '{brand} 全新推出 {product}，為日常而生。'],
      offer: ['只有這週，{product} 現折 {percent}% ⏰', '年度最大優惠開跑，{product} 也在其中。'],
      proof: ['「真希望早一點遇見 {product}」⭐⭐⭐⭐⭐', '超過 12,000 人已經換成 {product}。'],
      story: ['試做四十一次，才有今天的 {product}。', '從一張餐桌開始，{product} 走進千萬家庭。'],
      question: ['如果每週多出一小時，你想做什麼？讓 {product} 幫你。', '還在用老方法嗎？試試 {product}。'],
    },
    headlines: ['{product} 今日 {percent}% 優惠', '認識 {product}', '為什麼大家都在聊 {product}'],
    offers: ['輸入優惠碼 HELLO{percent} 再折 {percent}%。', '全館免運，{days} 天鑑賞期。'],
    closings: ['👉 立即了解', '數量有限，售完為止。'],
  },
  hi: {
    openings: {
      launch: ['इंतज़ार खत्म: {product} आ गया है। 🎉', '{brand} की नई पेशकश: {product}, हर दिन के लिए।'],
      offer: ['सिर्फ़ इस हफ़्ते: {product} पर {percent}% की छूट। ⏰', 'सीज़न की सबसे बड़ी सेल शुरू, {product} भी शामिल।'],
      proof: ['“काश {product} पहले मिल जाता।” ⭐⭐⭐⭐⭐', '12,000 से ज़्यादा परिवार {product} चुन चुके हैं।'],
      story: ['41 कोशिशों के बाद तैयार हुआ {product}।', 'एक छोटी रसोई से शुरू हुई {product} की कहानी।'],
      question: ['क्या हो अगर {product} हर हफ़्ते एक घंटा बचा दे?', 'अब भी पुराना तरीका? मिलिए {product} से।'],
    },
    headlines: ['{product}: आज {percent}% छूट', '{product} से मिलिए', 'सब {product} की बात क्यों कर रहे हैं'],
    offers: ['कोड NAMASTE{percent} लगाएँ और {percent}% बचाएँ।', 'मुफ़्त डिलीवरी और {days} दिन में वापसी।'],
    closings: ['👉 अभी देखें।', 'स्टॉक सीमित है, देर न करें।'],
  },
  ar: {
    openings: {
      launch: ['وصل أخيرًا: {product} 🎉', 'جديد {brand}: {product} لكل يوم.'],
      offer: ['هذا الأسبوع فقط: خصم {percent}% على {product} ⏰', 'بدأت أكبر تخفيضات الموسم، و{product} ضمن العروض.'],
      proof: ['«ليتني عرفت {product} من قبل» ⭐⭐⭐⭐⭐', 'أكثر من 12 ألف شخص اختاروا {product}.'],
      story: ['بعد 41 تجربة وصلنا إلى {product} كما نريده.', 'بدأت الحكاية من مطبخ صغير، واليوم {product} في تسع دول.'],
      question: ['ماذا لو وفّر لك {product} ساعة كل أسبوع؟', 'ما زلت على الطريقة القديمة؟ تعرّف على {product}.'],
    },
    headlines: ['{product}: خصم {percent}% اليوم', 'اكتشف {product}', 'لماذا يتحدث الجميع عن {product}'],
    offers: ['استخدم الرمز AHLAN{percent} واحصل على خصم {percent}%.', 'توصيل مجاني وإرجاع خلال {days} يومًا.'],
    closings: ['👈 اطلبه الآن.', 'الكمية محدودة.'],
  },
  id: {
    openings: {
      launch: ['Akhirnya hadir: {product}. 🎉', 'Baru dari {brand}: {product} untuk setiap hari.'],
      offer: [
        'Khusus minggu ini: {product} diskon {percent}%. ⏰',
        'Promo terbesar musim ini dimulai, {product} ikut serta.',
      ],
      proof: ['“Coba dari dulu kenal {product}.” ⭐⭐⭐⭐⭐', 'Lebih dari 12.000 orang sudah pindah ke {product}.'],
      story: [
        '41 kali percobaan sampai {product} terasa pas.',
        'Berawal dari meja dapur, kini {product} dikirim ke seluruh negeri.',
      ],
      question: [
        'Bagaimana kalau {product} menghemat satu jam tiap minggu?',
        'Masih cara lama? Kenalan dengan {product}.',
      ],
    },
    headlines: [
      '{product}: diskon {percent}% hari ini',
      'Kenalan dengan {product}',
      'Kenapa semua membicarakan {product}',
    ],
    offers: ['Pakai kode HALO{percent} untuk potongan {percent}%.', 'Gratis ongkir dan {days} hari pengembalian.'],
    closings: ['👉 Cek sekarang.', 'Stok terbatas, jangan sampai kehabisan.'],
  },
  vi: {
    openings: {
      launch: ['Đã có mặt: {product}. 🎉', 'Mới từ {brand}: {product} cho mỗi ngày.'],
      offer: [
        'Chỉ tuần này: giảm {percent}% cho {product}. ⏰',
        'Đợt giảm giá lớn nhất mùa đã bắt đầu, có cả {product}.',
      ],
      proof: ['“Giá mà biết {product} sớm hơn.” ⭐⭐⭐⭐⭐', 'Hơn 12.000 người đã chọn {product}.'],
      story: ['41 lần thử để có {product} như ý.', 'Bắt đầu từ căn bếp nhỏ, nay {product} có mặt khắp nơi.'],
      question: ['Nếu {product} giúp bạn tiết kiệm một giờ mỗi tuần?', 'Vẫn làm theo cách cũ? Hãy thử {product}.'],
    },
    headlines: ['{product}: giảm {percent}% hôm nay', 'Khám phá {product}', 'Vì sao ai cũng nhắc đến {product}'],
    offers: ['Nhập mã CHAO{percent} để giảm {percent}%.', 'Miễn phí giao hàng, đổi trả trong {days} ngày.'],
    closings: ['👉 Xem ngay.', 'Số lượng có hạn.'],
  },
  th: {
    openings: {
      launch: ['มาแล้ว {product} 🎉', 'ใหม่จาก {brand}: {product} สำหรับทุกวัน'],
      offer: ['เฉพาะสัปดาห์นี้ {product} ลด {percent}% ⏰', 'เริ่มแล้วโปรใหญ่ประจำฤดูกาล มี {product} ด้วย'],
      proof: ['“น่าจะรู้จัก {product} เร็วกว่านี้” ⭐⭐⭐⭐⭐', 'กว่า 12,000 คนเลือก {product} แล้ว'],
      story: ['ลองทำ 41 ครั้งกว่าจะได้ {product} ที่พอใจ', 'เริ่มจากครัวเล็กๆ วันนี้ {product} ส่งทั่วประเทศ'],
      question: ['ถ้า {product} ช่วยประหยัดเวลาได้สัปดาห์ละชั่วโมงล่ะ', 'ยังทำแบบเดิมอยู่หรือเปล่า ลอง {product} สิ'],
    },
    headlines: ['{product} ลด {percent}% วันนี้', 'รู้จัก {product}', 'ทำไมใครๆ ก็พูดถึง {product}'],
    offers: ['ใส่โค้ด SAWASDEE{percent} ลดทันที {percent}%', 'ส่งฟรี คืนได้ใน {days} วัน'],
    closings: ['👉 ดูเลย', 'สินค้ามีจำนวนจำกัด'],
  },
} satisfies Record<string, Phrases>;
