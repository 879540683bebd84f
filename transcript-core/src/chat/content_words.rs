//! Words of questions for numbers and prices, and of their answers, by language.
//!
//! Phrases are separated by `|`. An asterisk ends the beginning of a word. In scripts without spaces and in Korean a
//! phrase is any part of a text.

/// The phrases of one language.
#[derive(Debug)]
pub(super) struct ContentWords {
    /// Primary tag.
    pub(super) language: &'static str,
    /// Phrases that contain such a question or word and mean something else. They are removed from a question first.
    pub(super) idioms: &'static str,
    pub(super) number_questions: &'static str,
    pub(super) price_questions: &'static str,
    /// Words that ask for a price or a wage together with one of `money`.
    pub(super) what: &'static str,
    /// Words about prices and wages.
    pub(super) money: &'static str,
    /// Currencies, what is free, and large round numbers, by which people also name prices.
    pub(super) amounts: &'static str,
    /// Quantities, besides digits and the numbers of `NumberWords`.
    pub(super) quantities: &'static str,
}

/// Signs of currencies.
pub(super) const CURRENCY_SIGNS: [char; 10] = ['$', '€', '£', '¥', '₩', '₽', '₹', '฿', '₺', '₴'];

/// Only languages of which the numbers are complete.
pub(super) const CONTENT_WORDS: [ContentWords; 15] = [
    ContentWords {
        language: "en",
        idioms: "how much better|how much worse|how much more|how much less|pay attention|pays attention|\
            paid attention|paying attention|pay off|paid off",
        number_questions: "how many|how much|how old|how tall|how high|how deep|how wide|how heavy|how far|\
            what percentage|what year|which year|what time",
        price_questions: "how expensive",
        what: "what|whats",
        money: "cost|costs|costing|price*|salar*|wage|wages|rent|rents|fee|fees|earn|earns|earned|earning*|pay|\
            pays|paid|paying|payment*|expensive|fare|fares|spent",
        amounts: "free|dollar*|euro|euros|pound|pounds|pence|penny|pennies|cent|cents|quid|buck|bucks|grand|yen|\
            yuan|won|baht|rupee*|rupiah|shilling*|crown*|franc|francs|mark|marks|peso*|lira|rouble*|ruble*|fiver|\
            tenner|hundred*|thousand*|million*|billion*|k|on the house|minimum wage|bargain",
        quantities: "half|halves|dozen*|hundreds|thousands|millions|billions|couple|several|twice|both|pair|pairs|\
            quarter*|only one|just one|one of|one single|single|an hour|a mile|a week|a year|a month|a day|\
            a minute|a metre|a meter|noon|midday|midnight|none|no one|sixties|seventies|eighties|nineties|twenties|\
            thirties|forties|fifties|percent|third of|thirds|twins|triplets|a kilometre|a kilometer|a litre|\
            a liter|a cup|a pinch|a spoonful|a handful|a decade|a century|once|nobody|hardly any*|dawn|sunrise|\
            sunset|as old as|older than",
    },
    ContentWords {
        language: "de",
        idioms: "die zahlen|den zahlen|zahlt sich|zahlen sich|gehalt an",
        number_questions: "wie viel*|wieviel*|wie hoch|wie alt|wie tief|wie breit|wie schwer|wie weit|welchem jahr|\
            welches jahr|wie spät|um wie viel uhr",
        price_questions: "wie teuer",
        what: "was|welcher|welchen|welches",
        money: "kostet|kosten|kostete|gekostet|preis|preise|preisen|gehalt|gehälter|lohn|löhne|miete|mieten|gebühr|\
            gebühren|verdien*|bezahl*|zahlt|zahlen|zahle|zahlte|gezahlt|teuer|umsonst|kostenlos|gratis|ausgegeben",
        amounts: "euro|euros|cent|mark|pfennig*|franken|rappen|schilling*|dollar*|pfund|kronen|*hundert|hundert*|\
            tausend*|*tausend|million*|milliarde*|ist frei|taschengeld|mindestlohn|trinkgeld|zehner|zwanziger|\
            fünfziger",
        quantities: "halb*|hälfte|dutzend*|hunderte|tausende|paar|beide*|einzig*|doppelt|viertel|anderthalb|\
            eineinhalb|mittag|mitternacht|eine stunde|ein jahr|einen tag|eine woche|einen monat|ein kilometer|\
            einen kilometer|eine minute|kein*|prozent|zweimal|dreimal|mehrere|zwanziger|dreißiger|vierziger|\
            fünfziger|sechziger|siebziger|achtziger|neunziger|drittel|fünftel|zehntel|achtel|zweieinhalb|\
            dreieinhalb|viereinhalb|fünfeinhalb|zwilling*|jahrzehnt*|jahrhundert*|ein liter|einen liter|ein kilo|\
            ein meter|einen meter|volljährig|viermal|fünfmal|einmal|zwanzigst*",
    },
    ContentWords {
        language: "fr",
        idioms: "quel prix a|quels prix|gagne le|gagne la|a gagne|ont gagne|gagne t on",
        number_questions: "combien|quel age|quelle annee|quelle hauteur|quelle heure|quelle distance|\
            quelle profondeur",
        price_questions: "combien coute*|quel prix",
        what: "quel|quelle|que|qu",
        money: "coute|coutent|coutait|cout|couts|prix|salaire*|loyer*|gagne|gagnent|gagnait|tarif*|payer|paye|paie|\
            payent|paient|payait|gratuit*|depense*",
        amounts: "euro|euros|centime*|franc|francs|dollar*|livre|livres|cents|mille|million*|milliard*|balles|smic|\
            bouchee de pain|rembours*",
        quantities: "demi|demie|moitie|douzaine*|centaine*|millier*|dizaine*|vingtaine|trentaine|quarantaine|\
            cinquantaine|quinzaine|plusieurs|double|quart|midi|minuit|une heure|un an|une semaine|un mois|un jour|\
            un kilometre|un metre|un seul|une seule|aucun*|pour cent|deux fois|tiers|quarts|soixantaine|la plupart|\
            jumeaux|jumelles|un litre|un kilo|une livre|une tasse|une pincee|une poignee|siecle*|majeur*|mineur*",
    },
    ContentWords {
        language: "es",
        idioms: "en cuanto|equipo gana|gana la|gana el|quien gana|gano",
        number_questions: "cuanto|cuanta|cuantos|cuantas|que edad|que ano|que altura|que hora",
        price_questions: "cuanto cuesta*|cuanto vale*|que precio",
        what: "que|cual",
        money: "cuesta|cuestan|costo|costaba|costar|coste|costes|precio*|sueldo*|salario*|gana|ganan|ganaba|ganar|\
            alquiler*|tarifa*|paga|pagan|pago|pagaba|pagar|pagamos|gratis|gratuito|gratuita|gasto",
        amounts: "euro|euros|centimo*|peseta*|peso|pesos|dolar*|libra|libras|cien|ciento*|mil|millon*|duro|duros|\
            regalad*|de balde|miseria|propina*",
        quantities: "medio|media|mitad|docena*|centenar*|miles|varios|varias|doble|cuarto|cuartos|mediodia|\
            medianoche|una hora|un ano|una semana|un mes|un dia|un kilometro|un metro|uno solo|una sola|un solo|\
            ningun*|par|ambos|ambas|por ciento|decena*|tercio*|tercera parte|gemel*|a la una|un kilo|un litro|\
            una taza|una pizca|un puñado|siglo*|un hijo|una hija|decada*|quinta parte|treintena|veintena|quincena",
    },
    ContentWords {
        language: "pt",
        idioms: "quanto a|quanto ao|quanto aos|ganha a|ganha o|equipa ganha|time ganha",
        number_questions: "quanto|quanta|quantos|quantas|que idade|que ano|que altura|que horas",
        price_questions: "quanto custa*|que preco|qual o preco",
        what: "que|qual|quais",
        money: "custa|custam|custou|custava|custar|custo|custos|preco*|salario*|ganha|ganham|ganhava|ganhar|\
            aluguel|alugueis|paga|pagam|pagou|pagava|pagar|pagamos|gratis|gratuito|gratuita|gastou",
        amounts: "real|reais|euro|euros|centavo*|centimo*|escudo*|cruzeiro*|dolar*|cem|cento*|mil|milhao|milhoes|\
            de graca|graca|pechincha|ordenado*|borla",
        quantities: "meio|meia|metade|duzia*|centena*|milhares|varios|varias|dobro|quarto|meio dia|meia noite|\
            uma hora|um ano|uma semana|um mes|um dia|um quilometro|um metro|um so|uma so|unico|unica|nenhum*|par|\
            ambos|ambas|por cento|dezena*|terco*|gemeos|quinhentas|quatrocentas|seiscentas|setecentas|oitocentas|\
            novecentas|um quilo|um litro|uma pitada|uma tarde|seculo*|decada*|quase ninguem",
    },
    ContentWords {
        language: "it",
        idioms: "quanto a|quanto riguarda|la costa|sulla costa|della costa|che costa si|sulle coste",
        number_questions: "quanto|quanta|quanti|quante|che anno|che ora e|a che ora|che altezza|quale anno",
        price_questions: "quanto costa*|che prezzo|quale prezzo",
        what: "che|cosa|quale|qual",
        money: "costa|costano|costava|costo|costi|costato|costare|prezzo|prezzi|stipendi*|salari*|guadagn*|affitto|\
            affitti|paga|pagano|pagato|pagava|pagare|paghiamo|gratis|gratuito|gratuita|tariffa*",
        amounts: "euro|centesim*|lira|lire|dollar*|sterlin*|cento|mille|*mila|milione|milioni|miliard*|spicciol*|\
            mancia|duecento|trecento|quattrocento|cinquecento|seicento|settecento|ottocento|novecento",
        quantities: "mezzo|mezza|meta|dozzina*|centinaia|centinaio|migliaia|decina|decine|ventina|trentina|vari|\
            diversi|doppio|quarto|mezzogiorno|mezzanotte|un ora|un anno|una settimana|un mese|un giorno|\
            un chilometro|un metro|uno solo|una sola|un solo|nessun*|paio|entrambi|per cento|terzo|terzi|quaranta*|\
            cinquanta*|sessanta*|settanta*|ottanta*|novanta*|quarantina|cinquantina|coppia|gemell*|all una|\
            un litro|un chilo|un etto|un pizzico|un cucchiaio|secol*|centenari*|minorenne|maggiorenne|una figlia|\
            un figlio|quattrocento|trecento|duecento",
    },
    ContentWords {
        language: "nl",
        idioms: "",
        number_questions: "hoeveel|hoe oud|hoe hoog|hoe diep|hoe ver|hoe zwaar|hoe breed|welk jaar|hoe laat",
        price_questions: "hoe duur",
        what: "wat|welke|welk",
        money: "kost|kosten|kostte|gekost|prijs|prijzen|salaris*|loon|lonen|huur|verdien*|betaal*|betalen|gratis|\
            tarief",
        amounts: "euro|euros|cent|gulden|dollar*|pond|honderd*|*honderd|duizend*|*duizend|miljoen*|miljard*|\
            tientje*|koopje|minimumloon|fooi",
        quantities: "half|halve|helft|dozijn|honderden|duizenden|paar|beide*|enige|dubbel|kwart|anderhal*|middag|\
            middernacht|een uur|een jaar|een week|een maand|een dag|een kilometer|een meter|geen|procent|twee keer|\
            enkele|derde|tientallen|tiental|tweeling*|een liter|een kilo|een kwartier|kwartier|eeuw*|een dochter|\
            een zoon",
    },
    ContentWords {
        language: "ru",
        idioms: "стоит на|стоит в|стоит у|стоит возле|стоит перед|стоит за|стоит над|на какой|в какой",
        number_questions: "сколько|сколькими|скольких|каком году|какой год|какой высоты|какая высота|во сколько",
        price_questions: "сколько стоит|сколько стоил*|почем",
        what: "какая|каков|какова|какую|какой",
        money: "стоит|стоил|стоила|стоило|стоили|стоимост*|цена|цену|цены|цене|зарплат*|зарабатыва*|заработ*|плата|\
            плату|платы|платит|платят|платил*|платим|заплат*|бесплатн*|даром|оклад*|аренд*",
        amounts: "рубл*|копе*|доллар*|евро|гривен|гривн*|сто|ста|двести|триста|пятьсот|тысяч*|миллион*|миллиард*|\
            пятак*|сотня|сотню|пятьдесят|тридцать|двадцать",
        quantities: "половин*|пол|полтор*|десят*|сотн*|тысяч*|пару|пара|оба|обе|двое|трое|четверо|пятеро|дважды|\
            трижды|четверт*|полдень|полночь|час|год|неделю|месяц|день|километр|метр|единственн*|ни одного|ни одной|\
            процент*|двух|трех|четырех|пяти|шести|семи|восьми|девяти|двадцати|тридцати|сорока|пятидесяти|ста|\
            нескольк*|двоих|троих|полгода|полметра|полчаса|полкило|треть*|дюжин*|вдвое|втрое|близнец*|двухсот|\
            трехсот|четырехсот|пятисот|шестидесяти|семидесяти|восьмидесяти|девяноста|девяностых|одиннадцати|\
            двенадцати|тринадцати|четырнадцати|пятнадцати|шестнадцати|семнадцати|восемнадцати|девятнадцати|сыновей|\
            век|века|литр|кило|обоих|двум|трем|двумя|тремя|рассвет*",
    },
    ContentWords {
        language: "tr",
        idioms: "",
        number_questions: "kaç|kaçta|kaçıncı|kaça|hangi yıl|hangi yılda|ne kadar",
        price_questions: "kaça|kaç para|kaç lira",
        what: "ne|nedir|hangi",
        money: "ücret*|fiyat*|maaş*|kira|kirası|bedava|ucuz*|pahalı*|öder*|ödedi*|ödeme*|ödüyor*|kazanç*|\
            kazanıyor*|ücretsiz",
        amounts: "lira*|kuruş*|dolar*|euro*|avro*|yüz*|bin|milyon*|milyar*|asgari",
        quantities: "iki*|üç*|dört*|beş*|altı*|yedi*|sekiz*|dokuz*|on|yirmi*|otuz*|kırk*|elli*|altmış*|\
            yetmiş*|seksen*|doksan*|yüz*|bin|binler*|milyon*|milyar*|yarım*|yarı*|buçuk*|çeyrek*|çift*|düzine*|\
            birkaç|tek|hiç|öğle*|gece yarısı|bir saat|bir yıl|bir gün|bir hafta|bir ay|yüzde*|bir kilo|bir litre|\
            bir avuç|bir kilometre|bir tutam|bir kaşık|ikiz*|yüzyıl*|onda|ondan|onlarca",
    },
    ContentWords {
        language: "ar",
        idioms: "",
        number_questions: "كم|بكم|أي عام|أي سنة|في أي ساعة",
        price_questions: "بكم|كم سعر|كم ثمن|كم يتقاضى|كم يكلف|كم تكلف",
        what: "ما|ماذا",
        money: "السعر|راتب*|الراتب|والأجرة|يتقاضى|أتقاضى|تكلف*|يكلف*|كلف*|ثمن*|بثمن|إيجار*|الإيجار|مجان*|دفع*|\
            يدفع*|ندفع|أدفع|أجر|أجره|أجرها|أجرة|الأجر|أجور|الأجور|سعر|سعره|سعرها|بسعر",
        amounts: "دولار*|الدولار|يورو|دينار*|دنانير|درهم*|دراهم|ريال*|جنيه*|ليرة|ليرات|مئة|مائة|مئات|مئتي|مئتين|\
            مئتا|ألف|آلاف|ألفي|ألفين|مليون*|بدولار|بدينار*|بدرهم*|بالمجان|عشرة|عشرين|عشرون|ثلاثين|ثلاثون|أربعين|\
            خمسين|خمسون",
        quantities: "اثن*|ثلاث*|أربع*|خمس*|ست|ستة|ستين|ستون|سبع*|ثمان*|تسع*|عشر*|واحدا|واحد|واحدة|مئة|مائة|مئات|\
            مئتي|مئتين|مئتا|ألف|آلاف|ألفي|ألفين|مليون*|ملايين|نصف*|ربع|ثلث|سنتين|سنتان|عامين|يومين|ساعتين|شهرين|\
            أسبوعين|مرتين|كيلومترين|وحيد*|لا أحد|ساعة|سنة|عام|يوم|شهر|أسبوع|بضع*|عدة|وثلاث*|وأربع*|وخمس*|وست*|\
            وسبع*|وثمان*|وتسع*|وعشر*|بثلاث*|بأربع*|بخمس*|بعشر*|لثلاث*|لخمس*|التسعين|الثمانين|السبعين|الستين|\
            الخمسين|الأربعين|الثلاثين|العشرين|الثانية|الثالثة|الرابعة|الخامسة|السادسة|السابعة|الثامنة|التاسعة|\
            العاشرة|الواحدة|الستينيات|السبعينيات|الثمانينيات|التسعينيات|الخمسينيات|والنصف|لتر*|متر*|كيلومتر*|مترين|\
            ولدان|ولدين|بنتان|بنتين|طفلان|طفلين|حادثان|حادثين|توأم*|ملعقة|ضعف|قرن",
    },
    ContentWords {
        language: "hi",
        idioms: "",
        number_questions: "कितना|कितने|कितनी|कितनों|किस साल|किस वर्ष|कौन से साल|कितने बजे",
        price_questions: "कितने का|कितने की|कितने में|कितने रुपये",
        what: "क्या|कितनी|कितना",
        money: "कीमत*|तनख्वाह*|वेतन*|किराया*|किराये*|मुफ्त*|मुफ़्त*|कमाई|कमाती|कमाता|कमाते|दाम|दामों",
        amounts: "रुपये|रुपए|रुपया|रुपयों|डॉलर*|सौ|हजार|हज़ार|लाख|करोड़|करोड|सस्ते|सस्ता|फ्री|पैसा|पैसे",
        quantities: "दो|तीन|चार|पांच|पाँच|छह|छः|छे|सात|आठ|नौ|दस|ग्यारह|बारह|तेरह|चौदह|पंद्रह|पन्द्रह|सोलह|सत्रह|\
            अठारह|उन्नीस|बीस|इक्कीस|बाईस|तेईस|चौबीस|पच्चीस|छब्बीस|सत्ताईस|अट्ठाईस|उनतीस|तीस|*तीस|*चालीस|*तालीस|\
            उनचास|पचास|इक्यावन|बावन|तिरपन|चौवन|पचपन|छप्पन|सत्तावन|अट्ठावन|*सठ|साठ|सत्तर|*हत्तर|अस्सी|*आसी|नब्बे|\
            *ानवे|सौ|हजार|हज़ार|लाख|करोड़|करोड|आधा|आधी|आधे|डेढ़|ढाई|सवा|साढ़े|दोनों|दोपहर|एक घंटा|एक साल|एक दिन|\
            एक महीना|एक महीने|अकेली|अकेला|सिर्फ एक|बयासी|तिरासी|चौरासी|पचासी|छियासी|सत्तासी|अट्ठासी|नवासी|इक्यासी|\
            दर्जन*|चौथाई|तिहाई|दुगुन*|दुगन*|दोगुन*|जुड़व*|एक ही|एक मील|एक किलो|एक लीटर|मुट्ठी|चुटकी",
    },
    ContentWords {
        language: "zh",
        idioms: "多重宇宙|这几|那几|這幾|那幾|几乎|幾乎|好几|浪费|浪費|消费|消費|费力|费劲|钱先生|钱老师|钱塘|姓钱",
        number_questions: "多少|几个|幾個|几年|几岁|幾歲|几点|幾點|几次|几人|几天|几位|几名|几层|几块|多高|多长|多深|多远|多大年|哪一年|哪年",
        price_questions: "多少钱|多少錢|什么价|几块钱",
        what: "什么|多少|什麼",
        money: "钱|錢|工资|工資|房租|价格|價格|薪|费|費|租金",
        amounts: "元|块|塊|毛|人民币|美元|百|千|万|萬|亿|十",
        quantities: "两|兩|二|三|四|五|六|七|八|九|十|百|千|万|萬|亿|億|半|几|幾|双|一共|一个|一個|一年|一天|一次|一点|零|没有|正午|中午|半夜|天亮|天不亮|一里|一米|一公里|\
            一斤|一丈|一缸|一把",
    },
    ContentWords {
        language: "ja",
        idioms: "何度も|何回も|何人か|何人も|何年も|何年か|いくつか|何時間も|何個か|いくらでも|注意を払",
        number_questions: "いくつ|何人|何年|何個|何本|何歳|何回|何時|何枚|何台|何メートル|何キロ|何パーセント|何軒|何日|何度",
        price_questions: "いくらです|いくらでし|いくらかか|いくらもら|いくら払|いくらし|いくらだ|いくらの|おいくら|何円",
        what: "いくら|何",
        money: "値段|価格|料金|給料|家賃|費用|無料|代金|払|タダ",
        amounts: "円|銭|ドル|ユーロ|百|千|万|億|ただで|ただです",
        quantities: "二|三|四|五|六|七|八|九|十|百|千|万|億|半|一人|ひとり|ふたり|一つ|ひとつ|ふたつ|みっつ|一年|一日|一時間|一回|正午|数|両方|ゼロ|零|はたち|よっつ|いつつ|\
            むっつ|ななつ|やっつ|ここのつ|とお",
    },
    ContentWords {
        language: "ko",
        idioms: "몇몇|얼마나|얼마 전|얼마 뒤|얼마 후|얼마든",
        number_questions: "몇|얼마",
        price_questions: "얼마",
        what: "무엇|얼마|몇",
        money: "가격|월급|요금|비용|임금|월세|집세|돈을|무료|공짜|값",
        amounts: "원|달러|유로|백|천|만|억",
        quantities: "둘|두|셋|세|넷|네|다섯|여섯|일곱|여덟|아홉|열|스물|스무|서른|마흔|쉰|예순|일흔|여든|아흔|십|백|천|만|억|반|하나|한|혼자|이틀|사흘|나흘|열흘|삼|사|오|\
            육|칠|팔|구|정오|자정",
    },
    ContentWords {
        language: "th",
        idioms: "เกี่ยว",
        number_questions: "กี่|เท่าไ",
        price_questions: "กี่บาท|ราคาเท่าไ|เงินเดือนเท่าไ|ค่าเช่าเท่าไ",
        what: "เท่าไ",
        money: "ราคา|เงินเดือน|ค่าเช่า|ค่าจ้าง|ฟรี|จ่าย",
        amounts: "บาท|สตางค์|ดอลลาร์|ร้อย|พัน|หมื่น|แสน|ล้าน",
        quantities: "สอง|สาม|สี่|ห้า|หก|เจ็ด|แปด|เก้า|สิบ|ยี่|ร้อย|พัน|หมื่น|แสน|ล้าน|ครึ่ง|หนึ่ง|เดียว|คู่|เที่ยง|\
            โหล|เช้ามืด",
    },
];
