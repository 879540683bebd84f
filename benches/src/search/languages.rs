//! The languages of the generated talks: words that talks are about, their forms, and common words.

#[derive(Debug)]
pub(super) struct CorpusLanguage {
    pub(super) tag: &'static str,
    /// Stems of the words that talks are about: every form of a word is a prefix, its stem and an ending.
    pub(super) stems: Vec<&'static str>,
    /// Prefixes and endings of a form. The first form is the one of a dictionary.
    pub(super) forms: &'static [(&'static str, &'static str)],
    /// Words of almost every sentence.
    pub(super) common: Vec<&'static str>,
    /// Whether spaces separate the words of a text.
    pub(super) is_spaced: bool,
}

impl CorpusLanguage {
    /// A form of the word with this number.
    pub(super) fn form(&self, word: usize, form: usize) -> String {
        let (prefix, ending) = self.forms[form % self.forms.len()];
        format!("{prefix}{}{ending}", self.stems[word % self.stems.len()])
    }
}

struct Source {
    tag: &'static str,
    stems: &'static str,
    forms: &'static [(&'static str, &'static str)],
    common: &'static str,
}

const SOURCES: [Source; 8] = [
    Source {
        tag: "en",
        stems: "lighthouse harbour windmill tunnel bridge glacier orchard volcano falcon turtle rocket engine piano \
                violin museum castle desert canyon village market blanket lantern compass pigeon vineyard theatre \
                notebook hospital teacher gardener sailor painter baker tailor soldier dentist island meadow \
                waterfall telescope",
        forms: &[("", ""), ("", "s")],
        common: "the of and to in is that it we you with for on this have they",
    },
    Source {
        tag: "de",
        stems: "Brücke Schule Straße Mühle Glocke Kirche Blume Wolke Quelle Höhle Küste Insel Mauer Feder Leiter \
                Schraube Schaufel Gabel Decke Lampe Tasse Flasche Maschine Batterie Bühne Geige Trompete Flöte \
                Schnecke Biene Ameise Spinne Schlange Katze Ziege Möwe Eule Kerze Wiese Weide",
        forms: &[("", ""), ("", "n")],
        common: "der die und in den von zu das mit sich des auf für ist im dem",
    },
    Source {
        tag: "fr",
        stems: "phare moulin pont tunnel glacier verger volcan faucon tortue moteur piano violon musée désert village \
                marché lanterne boussole vignoble théâtre bibliothèque professeur jardinier marin peintre boulanger \
                tailleur soldat dentiste île prairie cascade rivière forêt montagne fenêtre chemise chaussure \
                fromage légume",
        forms: &[("", ""), ("", "s")],
        common: "le la les de des et un une est que dans pour sur avec nous vous",
    },
    Source {
        tag: "es",
        stems: "faro molino puente huerto abeja tortuga cohete piano museo castillo desierto pueblo mercado linterna \
                brújula viñedo teatro biblioteca maestro jardinero marinero panadero soldado dentista isla pradera \
                cascada montaña ventana camisa zapato queso cebolla guitarra iglesia escuela carretera máquina \
                botella cuchara",
        forms: &[("", ""), ("", "s")],
        common: "el la los de que y en un una es por con para se lo como",
    },
    Source {
        tag: "ru",
        stems: "школ машин картин комнат планет ракет корзин монет газет конфет гитар труб волн рыб коров коз лис \
                пчел ворон сосн берез малин калин стен шахт ферм антенн турбин плотин равнин долин пещер звезд \
                кассет кабин анкет скал шляп ламп карт",
        forms: &[("", "а"), ("", "ы"), ("", "у"), ("", "ой"), ("", "ам")],
        common: "и в не на я что он с как это по но они мы из за",
    },
    Source {
        tag: "ar",
        stems: "منارة ميناء طاحونة نفق جسر بستان بركان صقر سلحفاة صاروخ محرك بيانو كمان متحف قلعة صحراء قرية سوق \
                فانوس بوصلة حمامة كرم مسرح مكتبة مستشفى معلم بستاني بحار رسام خباز خياط جندي طبيب جزيرة مرج شلال \
                نهر غابة جبل نافذة",
        forms: &[("", ""), ("ال", ""), ("وال", ""), ("بال", "")],
        common: "في من على هذا التي الذي إلى عن مع كان هذه لا ما بعد كل ثم",
    },
    Source {
        tag: "zh",
        stems: "灯塔 港口 风车 隧道 大桥 冰川 果园 火山 猎鹰 海龟 火箭 引擎 钢琴 提琴 展馆 城堡 沙漠 峡谷 村庄 市场 \
                毛毯 灯笼 罗盘 鸽子 葡萄 剧院 书店 医院 老师 园丁 水手 画家 面包 裁缝 士兵 牙医 岛屿 草地 瀑布 森林",
        forms: &[("", "")],
        common: "的 了 在 是 我们 他们 这个 和 有 也 就 都 说 那 很 会",
    },
    Source {
        tag: "ja",
        stems: "灯台 港町 風車 トンネル 鉄橋 氷河 果樹園 火山 ハヤブサ 海亀 ロケット エンジン ピアノ バイオリン \
                博物館 城壁 砂漠 峡谷 村落 市場 毛布 提灯 羅針盤 鳩時計 葡萄 劇場 図書館 病院 先生 庭師 船乗り 画家 \
                パン屋 仕立屋 兵士 歯医者 島国 草原 滝壺 森林",
        forms: &[("", "")],
        common: "の は が を に で と も です ます から まで この その そして という",
    },
];

pub(super) fn languages() -> Vec<CorpusLanguage> {
    let language = |source: &Source| CorpusLanguage {
        tag: source.tag,
        stems: source.stems.split_whitespace().collect(),
        forms: source.forms,
        common: source.common.split_whitespace().collect(),
        is_spaced: !matches!(source.tag, "zh" | "ja"),
    };
    SOURCES.iter().map(language).collect()
}
