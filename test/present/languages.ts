/** Everyday advertising copy, invented, in the languages ads come in. */
export const languages: Readonly<Record<string, string>> = {
  English:
    'Meet the boots that outlast every trail. Hand-made in small batches, shipped free within two days, and yours to return for ninety days if they do not fit. Walk more and buy less this autumn.',
  German:
    'Die Stiefel, die jeden Weg überstehen. In kleinen Serien von Hand gefertigt, kostenlos in zwei Tagen geliefert und neunzig Tage lang zurückzugeben, wenn sie nicht passen. Jetzt entdecken und sparen!',
  French:
    'Découvrez les bottes qui survivent à tous les sentiers. Fabriquées à la main en petites séries, livrées gratuitement en deux jours et reprises pendant quatre-vingt-dix jours. Profitez-en dès maintenant !',
  Spanish:
    'Conoce las botas que aguantan cualquier camino. Hechas a mano en series pequeñas, con envío gratis en dos días y noventa días para devolverlas si no te quedan bien. ¡Compra ahora y ahorra!',
  Portuguese:
    'Conheça as botas que resistem a qualquer trilha. Feitas à mão em pequenas séries, com entrega grátis em dois dias e noventa dias para devolução se não servirem. Aproveite agora os nossos descontos!',
  Italian:
    'Scopri gli stivali che resistono a ogni sentiero. Fatti a mano in piccole serie, spedizione gratuita in due giorni e novanta giorni per il reso se non vanno bene. Acquista subito e risparmia!',
  Dutch:
    'Ontdek de laarzen die elk pad overleven. Met de hand gemaakt in kleine oplages, gratis binnen twee dagen bezorgd en negentig dagen te retourneren als ze niet passen. Bestel vandaag nog!',
  Polish:
    'Poznaj buty, które przetrwają każdy szlak. Szyte ręcznie w małych seriach, wysyłane za darmo w dwa dni, a jeśli nie pasują, masz dziewięćdziesiąt dni na zwrot. Sprawdź już dziś!',
  Czech:
    'Seznamte se s botami, které vydrží každou cestu. Ručně vyráběné v malých sériích, doručené zdarma do dvou dnů a s devadesáti dny na vrácení, pokud nesedí. Objednejte ještě dnes!',
  Turkish:
    'Her patikaya dayanan botlarla tanışın. Küçük partiler halinde elde üretilir, iki günde ücretsiz teslim edilir ve olmazsa doksan gün içinde iade edilir. Hemen alışverişe başlayın!',
  Swedish:
    'Möt kängorna som överlever varje stig. Handgjorda i små serier, fri frakt inom två dagar och nittio dagars öppet köp om de inte passar. Handla redan i dag och spara pengar!',
  Finnish:
    'Tutustu saappaisiin, jotka kestävät jokaisen polun. Käsin tehty pienissä erissä, toimitetaan ilmaiseksi kahdessa päivässä ja palautusaika on yhdeksänkymmentä päivää. Tilaa jo tänään!',
  Hungarian:
    'Ismerje meg a bakancsot, amely minden ösvényt túlél. Kis szériában, kézzel készül, két napon belül ingyen szállítjuk, és kilencven napig visszaküldheti, ha nem jó a mérete.',
  Romanian:
    'Descoperă ghetele care rezistă pe orice potecă. Lucrate manual în serii mici, livrate gratuit în două zile și cu nouăzeci de zile pentru retur dacă nu ți se potrivesc. Cumpără acum!',
  Indonesian:
    'Kenali sepatu bot yang tahan di segala medan. Dibuat dengan tangan dalam jumlah terbatas, dikirim gratis dalam dua hari, dan bisa dikembalikan dalam sembilan puluh hari. Belanja sekarang!',
  Vietnamese:
    'Hãy làm quen với đôi ủng bền bỉ trên mọi nẻo đường. Được làm thủ công với số lượng nhỏ, giao hàng miễn phí trong hai ngày và đổi trả trong chín mươi ngày. Mua ngay hôm nay!',
  Russian:
    'Познакомьтесь с ботинками, которые переживут любую тропу. Сшиты вручную небольшими партиями, бесплатная доставка за два дня и девяносто дней на возврат. Закажите прямо сейчас!',
  Ukrainian:
    'Познайомтеся з черевиками, які витримають будь-яку стежку. Пошиті вручну невеликими партіями, безкоштовна доставка за два дні та дев’яносто днів на повернення. Замовляйте зараз!',
  Bulgarian:
    'Запознайте се с обувките, които издържат на всяка пътека. Ръчно изработени в малки серии, безплатна доставка за два дни и деветдесет дни за връщане. Поръчайте още днес!',
  Greek:
    'Γνωρίστε τις μπότες που αντέχουν σε κάθε μονοπάτι. Φτιαγμένες στο χέρι σε μικρές σειρές, δωρεάν αποστολή σε δύο ημέρες και ενενήντα ημέρες για επιστροφή. Αγοράστε τώρα!',
  Hebrew:
    'הכירו את המגפיים ששורדים כל שביל. עבודת יד בסדרות קטנות, משלוח חינם תוך יומיים ותשעים יום להחזרה אם הם לא מתאימים. קנו עכשיו ותחסכו!',
  Arabic:
    'تعرّف على الأحذية التي تصمد أمام كل الدروب. مصنوعة يدويًا بكميات صغيرة، مع توصيل مجاني خلال يومين وتسعين يومًا للإرجاع إن لم تناسبك. تسوق الآن ووفر!',
  Persian:
    'با چکمه‌هایی آشنا شوید که در هر مسیری دوام می‌آورند. دست‌دوز در تیراژ کم، ارسال رایگان در دو روز و نود روز فرصت بازگشت. همین حالا خرید کنید!',
  Hindi:
    'मिलिए उन जूतों से जो हर रास्ते पर टिकते हैं। हाथ से बने, दो दिन में मुफ़्त डिलीवरी और पसंद न आने पर नब्बे दिन में वापसी। आज ही खरीदें और बचत करें!',
  Bengali:
    'এমন জুতো যা প্রতিটি পথে টিকে থাকে। হাতে তৈরি, দুই দিনে বিনামূল্যে ডেলিভারি এবং পছন্দ না হলে নব্বই দিনের মধ্যে ফেরত। আজই কিনুন এবং সাশ্রয় করুন!',
  Tamil: 'ஒவ்வொரு பாதையிலும் நீடித்து நிற்கும் காலணிகளைச் சந்தியுங்கள். கையால் செய்யப்பட்டவை, இரண்டு நாட்களில் இலவச விநியோகம். இன்றே வாங்குங்கள்!',
  Telugu: 'ప్రతి దారిలో నిలిచే బూట్లను కలవండి. చేతితో తయారు చేసినవి, రెండు రోజుల్లో ఉచిత డెలివరీ, నచ్చకపోతే తొంభై రోజుల్లో వాపసు. ఈరోజే కొనండి!',
  Kannada: 'ಪ್ರತಿ ದಾರಿಯಲ್ಲೂ ಬಾಳಿಕೆ ಬರುವ ಬೂಟುಗಳನ್ನು ಭೇಟಿ ಮಾಡಿ. ಕೈಯಿಂದ ಮಾಡಿದವು, ಎರಡು ದಿನಗಳಲ್ಲಿ ಉಚಿತ ವಿತರಣೆ. ಇಂದೇ ಖರೀದಿಸಿ!',
  Gujarati: 'દરેક રસ્તા પર ટકી રહે તેવા બૂટને મળો. હાથથી બનાવેલા, બે દિવસમાં મફત ડિલિવરી અને ન ગમે તો નેવું દિવસમાં પરત. આજે જ ખરીદો!',
  Malayalam: 'എല്ലാ വഴികളിലും നിലനിൽക്കുന്ന ബൂട്ടുകൾ പരിചയപ്പെടൂ. കൈകൊണ്ട് നിർമ്മിച്ചത്, രണ്ട് ദിവസത്തിനുള്ളിൽ സൗജന്യ ഡെലിവറി. ഇന്ന് തന്നെ വാങ്ങൂ!',
  Thai: 'พบกับรองเท้าบูทที่ทนทานทุกเส้นทาง ทำด้วยมือในจำนวนจำกัด จัดส่งฟรีภายในสองวัน และคืนสินค้าได้ภายในเก้าสิบวันหากไม่พอดี สั่งซื้อวันนี้เลย',
  Korean:
    '어떤 길에서도 오래가는 부츠를 만나보세요. 소량으로 손수 만들고, 이틀 안에 무료로 배송하며, 맞지 않으면 구십 일 안에 반품할 수 있습니다. 지금 바로 구매하고 특별한 할인 혜택을 받아보세요!',
  Japanese:
    'どんな道にも負けないブーツをご紹介します。職人が少量ずつ手作りし、二日以内に送料無料でお届け。合わなければ九十日以内に返品できます。今すぐチェックして、お得なセールをお楽しみください！',
  Chinese:
    '认识一双走遍所有小路都不怕的靴子。小批量手工制作，两天内免费送达，不合脚九十天内可以退货。现在就购买，享受秋季特别优惠，让每一步都更轻松！',
  'Traditional Chinese':
    '認識一雙走遍所有小路都不怕的靴子。小批量手工製作，兩天內免費送達，不合腳九十天內可以退貨。現在就購買，享受秋季特別優惠，讓每一步都更輕鬆！',
  Georgian:
    'გაიცანით ჩექმები, რომლებიც ყველა ბილიკს უძლებს. ხელით დამზადებული მცირე სერიებით, უფასო მიწოდება ორ დღეში. შეიძინეთ დღესვე!',
  Hinglish:
    'Ab boots kharidna hua aasan! Haath se bane, do din mein free delivery aur pasand na aaye to nabbe din mein wapas. Aaj hi order karo aur paise bachao, offer sirf kuch din ke liye hai.',
  Emoji:
    '🔥 Summer SALE is ON! 🔥 Up to 50% OFF ✨ Free shipping 🚚 👉 Tap the link now ❤️ #boots #autumn #sale ✅ 30-day returns ✅ 4.8/5 ⭐️ from 12,345 customers 🎉',
};
