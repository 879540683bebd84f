//! Quotations that leave out a negation directly outside of them are removed; true ones remain.

use proptest::prelude::*;

use super::{claim_tests::verified, *};
use crate::{
    chat::passages,
    transcript::{Segment, test_transcript},
};

/// Language, spoken line and quotation, which is not what the line says.
const REVERSED: [(&str, &str, &str); 62] = [
    ("en", "The water is not safe to drink.", "safe to drink"),
    ("en", "The water isn't safe to drink.", "safe to drink"),
    ("en", "the water from the well is not safe to drink and we closed it", "safe to drink"),
    ("en", "The water is not very safe to drink.", "safe to drink"),
    ("en", "The water will not be safe to drink.", "safe to drink"),
    ("en", "The water is no longer safe to drink.", "safe to drink"),
    ("en", "Why, it is \"not\" safe to drink.", "safe to drink"),
    ("en", "Do not mix bleach and ammonia.", "mix bleach and ammonia"),
    ("en", "Don't mix bleach and ammonia.", "mix bleach and ammonia"),
    ("en", "You can’t mix bleach and ammonia.", "mix bleach and ammonia"),
    ("en", "Vaccines do not cause autism.", "cause autism"),
    ("en", "No danger for children was found.", "danger for children"),
    ("en", "There is no danger for children.", "danger for children"),
    ("en", "Nobody knows the recipe of the cake.", "knows the recipe"),
    ("en", "No one believes that the mayor stole the money.", "believes that the mayor stole the money"),
    ("en", "Nothing stopped the fishermen.", "stopped the fishermen"),
    ("en", "He never drove without a licence.", "drove without a licence"),
    ("en", "They crossed the channel without a map and a compass.", "a map and a compass"),
    ("en", "He neither drank nor smoked in the hospital.", "drank nor smoked in the hospital"),
    ("en", "He is not a famous doctor.", "a famous doctor"),
    ("en", "She was never the oldest captain.", "the oldest captain"),
    ("en", "We have never been to the island of birds.", "to the island of birds"),
    ("en", "It is not uncommon to see whales.", "uncommon to see whales"),
    ("en", "Not all of the boats came back.", "all of the boats came back"),
    ("de", "Das Wasser ist nicht sicher zu trinken.", "sicher zu trinken"),
    ("de", "Das Wasser ist nicht mehr sehr sauber genug.", "sauber genug"),
    ("de", "Keine Gefahr für Kinder.", "Gefahr für Kinder"),
    ("de", "Es besteht keine große Gefahr für Kinder.", "große Gefahr für Kinder"),
    ("de", "Er hat das Geld nie gestohlen und verkauft.", "gestohlen und verkauft"),
    ("de", "Die Brücke ist nicht für Lastwagen geeignet.", "Lastwagen geeignet"),
    ("de", "Niemand kennt das alte Rezept.", "kennt das alte Rezept"),
    ("fr", "Le pont n'est pas sûr en hiver.", "sûr en hiver"),
    ("fr", "Il n'y a pas de danger pour les enfants.", "danger pour les enfants"),
    ("fr", "Il ne faut jamais ouvrir cette vanne.", "ouvrir cette vanne"),
    ("fr", "Aucun village de la vallée n'a brûlé.", "village de la vallée"),
    ("es", "No bebas el agua del pozo.", "bebas el agua del pozo"),
    ("es", "El puente no es seguro en invierno.", "seguro en invierno"),
    ("es", "No hay peligro para los niños.", "peligro para los niños"),
    ("es", "El capitán nunca robó el dinero del puerto.", "robó el dinero del puerto"),
    ("pt", "A água não é segura para beber.", "segura para beber"),
    ("pt", "Não há perigo para as crianças.", "perigo para as crianças"),
    ("it", "L'acqua non è sicura da bere.", "sicura da bere"),
    ("it", "Non c'è pericolo per i bambini.", "pericolo per i bambini"),
    ("nl", "Het water is niet veilig om te drinken.", "veilig om te drinken"),
    ("nl", "Er is geen gevaar voor kinderen.", "gevaar voor kinderen"),
    ("pl", "Ta woda nie jest bezpieczna do picia.", "bezpieczna do picia"),
    ("ru", "Эта вода не безопасна для детей.", "безопасна для детей"),
    ("ru", "Здесь нет опасности для детей.", "опасности для детей"),
    ("ru", "Он никогда не продавал старый дом.", "продавал старый дом"),
    ("uk", "Ця вода не була безпечна для дітей.", "безпечна для дітей"),
    ("el", "Δεν υπάρχει κίνδυνος για παιδιά.", "κίνδυνος για παιδιά"),
    ("ar", "لا يمكن السباحة في هذه البحيرة.", "السباحة في هذه البحيرة"),
    ("ar", "لم يسرق الوزير المال من البنك.", "يسرق الوزير المال"),
    ("he", "המים לא בטוחים לשתייה בקיץ.", "בטוחים לשתייה בקיץ"),
    ("zh", "你不能喝这里的水。", "喝这里的水"),
    ("zh", "这药不是安全的药品。", "安全的药品"),
    ("zh", "他们从来没有离开过海边的村子。", "离开过海边的村子"),
    ("zh", "千万别打开这个阀门。", "打开这个阀门"),
    ("ja", "この水は安全ではありません。", "この水は安全"),
    ("ja", "この水は飲まないでください。", "この水は飲ま"),
    ("ko", "이 물은 절대로 마시지 않습니다.", "이 물은 절대로 마시지"),
    ("tr", "Bu su içmek için güvenli değil.", "içmek için güvenli"),
];

/// The same with a quotation that the line says, or of which it is unsure.
const TRUE: [(&str, &str, &str); 124] = [
    ("en", "There is no doubt whatsoever that the harbour is deep.", "the harbour is deep"),
    ("en", "No doubt the bridge is safe.", "the bridge is safe"),
    ("en", "I don't think the bridge is ugly but the tower is beautiful.", "the tower is beautiful"),
    ("en", "It was nothing but a small wooden boat.", "a small wooden boat"),
    ("en", "I can't help but admire the old lighthouse.", "admire the old lighthouse"),
    ("en", "I couldn't help laughing at the captain.", "laughing at the captain"),
    ("en", "Without a doubt the lighthouse is the oldest building.", "the lighthouse is the oldest building"),
    ("en", "The lighthouse is none other than the oldest building.", "the oldest building"),
    ("en", "There is nothing better than fresh bread with butter.", "fresh bread with butter"),
    ("en", "I have never seen a more beautiful harbour in my life.", "a more beautiful harbour"),
    ("en", "Why don't you visit the museum in the harbour.", "visit the museum in the harbour"),
    ("en", "Why not visit the museum in the harbour.", "visit the museum in the harbour"),
    ("en", "You cannot overestimate the value of clean water.", "the value of clean water"),
    ("en", "The ferry doesn't leave at nine, it leaves at ten.", "it leaves at ten"),
    ("en", "He did not come by train, he took the ferry.", "he took the ferry"),
    ("en", "they did not he took the ferry to the island", "he took the ferry"),
    ("en", "they never did the captain took the ferry", "the captain took the ferry"),
    ("en", "they did not the captain took the ferry", "the captain took the ferry"),
    ("en", "I'm not sure why the engine stopped working.", "the engine stopped working"),
    ("en", "I do not know why the old bridge collapsed.", "the old bridge collapsed"),
    ("en", "I don't remember how we fixed the engine.", "we fixed the engine"),
    ("en", "He never realized that the engine was broken.", "the engine was broken"),
    ("en", "It's not a problem that the engine is loud.", "the engine is loud"),
    ("en", "I don't care that the engine is loud.", "the engine is loud"),
    ("en", "No matter how cold it is, the fishermen sail at dawn.", "the fishermen sail at dawn"),
    ("en", "No wonder the fishermen sail at dawn.", "the fishermen sail at dawn"),
    ("en", "no the fishermen sail at dawn", "the fishermen sail at dawn"),
    ("en", "No, fishermen sail at dawn.", "fishermen sail at dawn"),
    ("en", "If you don't water the tomatoes, the leaves turn yellow.", "water the tomatoes"),
    ("en", "Don't forget to water the tomatoes every morning.", "water the tomatoes every morning"),
    ("en", "Don't hesitate to call the harbour office.", "call the harbour office"),
    ("en", "Not far from the harbour stands an old mill.", "far from the harbour stands an old mill"),
    ("en", "Not until May did the harbour freeze over.", "until May did the harbour freeze over"),
    ("en", "Not until May did the harbour freeze over.", "did the harbour freeze over"),
    ("en", "Not only the dam broke, but also the pier.", "the dam broke"),
    ("en", "Not only the dam broke, but also the pier.", "only the dam broke"),
    ("en", "He has no choice but to sell the boat.", "sell the boat"),
    ("en", "Last but not least, the captain thanked the crew.", "the captain thanked the crew"),
    ("en", "Believe it or not the captain thanked the crew.", "the captain thanked the crew"),
    ("en", "More often than not the harbour freezes in January.", "the harbour freezes in January"),
    ("en", "Our address is house no 5 near the harbour.", "5 near the harbour"),
    ("en", "Our address is No. 5 near the harbour.", "5 near the harbour"),
    ("en", "Without it the pump works by hand.", "the pump works by hand"),
    ("en", "I wouldn't say no to a cup of coffee.", "a cup of coffee"),
    ("en", "She couldn't wait to see the harbour again.", "see the harbour again"),
    ("en", "We have never been busier than this summer.", "busier than this summer"),
    ("en", "I was barely twenty years old then.", "twenty years old then"),
    ("en", "stand up dennis no sit down the ambulance took him", "sit down the ambulance took him"),
    ("en", "It took no more than two hours to repair the engine.", "two hours to repair the engine"),
    ("en", "No fewer than forty men built the bridge.", "forty men built the bridge"),
    ("en", "No fewer than forty men built the bridge.", "fewer than forty men built the bridge"),
    ("en", "Is it not safe to cross in winter?", "safe to cross in winter"),
    ("en", "The water is not safe to drink. Boiled water is safe to drink.", "safe to drink"),
    ("en", "The water is not safe to drink.", "not safe to drink"),
    ("de", "Nicht nur der Damm brach, sondern auch das Haus.", "der Damm brach"),
    ("de", "Nicht zuletzt hat der Bürgermeister die Brücke gebaut.", "der Bürgermeister die Brücke gebaut"),
    ("de", "Ich weiß nicht, warum die Brücke eingestürzt ist.", "die Brücke eingestürzt ist"),
    ("de", "Nicht weit vom Hafen steht eine alte Mühle.", "weit vom Hafen steht eine alte Mühle"),
    ("de", "Er ist nichts anderes als ein einfacher Fischer.", "ein einfacher Fischer"),
    ("de", "Vergiss nicht, die Tomaten zu gießen.", "die Tomaten zu gießen"),
    ("de", "das weiß ich nicht die Brücke ist eingestürzt", "die Brücke ist eingestürzt"),
    ("fr", "Je crains que le pont ne s'écroule bientôt.", "s'écroule bientôt"),
    ("fr", "Il ne mange que du pain frais le matin.", "du pain frais le matin"),
    ("fr", "Il n'y a rien de mieux que le pain frais.", "le pain frais"),
    ("fr", "Je ne sais pas pourquoi le pont s'est effondré.", "pourquoi le pont s'est effondré"),
    ("fr", "Je ne sais pas si le pont est vieux.", "le pont est vieux"),
    ("fr", "Ce n'est pas pour rien que le village est célèbre.", "le village est célèbre"),
    ("fr", "On ne sait pas ce qu'il y avait dedans.", "ce qu'il y avait dedans"),
    ("fr", "N'oubliez pas d'arroser les tomates.", "arroser les tomates"),
    ("fr", "Il n'a pas seulement construit le pont du port.", "construit le pont du port"),
    ("es", "No es otra cosa que un barco de madera.", "un barco de madera"),
    ("es", "No hay nada mejor que el pan fresco.", "el pan fresco"),
    ("es", "No cabe duda de que el puente es seguro.", "el puente es seguro"),
    ("es", "No sé por qué se cayó el puente.", "se cayó el puente"),
    ("es", "No solo vendió el barco, también compró la casa.", "vendió el barco"),
    ("es", "Fuimos al puerto, ¿no?, y compramos pescado fresco.", "compramos pescado fresco"),
    ("es", "Apenas llegó el barco, empezó la tormenta.", "llegó el barco"),
    ("it", "Non solo il ponte è bello, ma anche la torre.", "il ponte è bello"),
    ("pt", "Não só a ponte é bonita, mas também a torre.", "a ponte é bonita"),
    ("ru", "Он не только продал старый дом.", "продал старый дом"),
    ("ru", "Он чуть не утонул в холодной реке.", "утонул в холодной реке"),
    ("ru", "Я не знаю, почему рухнул старый мост.", "рухнул старый мост"),
    ("ru", "Нельзя не заметить старую башню.", "заметить старую башню"),
    ("ru", "Не раз он видел китов в море.", "раз он видел китов в море"),
    ("ru", "Нет ничего лучше свежего хлеба.", "лучше свежего хлеба"),
    ("ar", "لا شك أن الجسر آمن في الشتاء.", "الجسر آمن في الشتاء"),
    ("ar", "لا يزال الجسر القديم مفتوحا.", "يزال الجسر القديم مفتوحا"),
    ("ar", "لا أعرف لماذا انهار الجسر القديم.", "انهار الجسر القديم"),
    ("zh", "我们不得不卖掉这条船。", "卖掉这条船"),
    ("zh", "他不但会修船，还会做面包。", "会修船，还会做面包"),
    ("zh", "这条船差不多有一百年历史。", "有一百年历史"),
    ("zh", "不过这座桥是石头建造的。", "这座桥是石头建造的"),
    ("zh", "对不起我昨天去了海边。", "我昨天去了海边"),
    ("zh", "他忍不住笑了起来了。", "笑了起来了"),
    ("zh", "不用说这座桥非常古老。", "这座桥非常古老"),
    ("zh", "了不起的工程师建造了大桥。", "工程师建造了大桥"),
    ("zh", "他问船长能不能通过这座大桥。", "通过这座大桥"),
    ("ja", "毎日トマトに水をやらなければならない。", "毎日トマトに水をやら"),
    ("ja", "この橋は安全かもしれません。", "この橋は安全かもしれ"),
    ("ja", "バスだけではなく列車も選びました。", "バスだけではなく列車"),
    ("ja", "一緒に港まで行きませんか。", "一緒に港まで行き"),
    ("ja", "部屋のなかに猫がいます。", "部屋のなかに猫"),
    ("ja", "雨が降らないうちに船を出しました。", "雨が降らないうちに"),
    ("ko", "이 약은 매일 저녁마다 먹지 않으면 안 됩니다.", "약은 매일 저녁마다 먹지"),
    ("tr", "Bugün hava çok güzel değil mi?", "Bugün hava çok güzel"),
    ("en", "Isn't the harbour beautiful in winter!", "harbour beautiful in winter"),
    ("en", "Isn't the harbour beautiful in winter!", "the harbour beautiful in winter"),
    ("en", "Wasn't the old lighthouse lovely.", "the old lighthouse lovely"),
    ("fr", "La maison est à deux pas du port de pêche.", "port de pêche"),
    ("fr", "L'école est à quelques pas de la cathédrale Saint-Pierre.", "la cathédrale Saint-Pierre"),
    ("fr", "C'est à cent pas du vieux phare rouge.", "vieux phare rouge"),
    ("fr", "Le premier pas de la fusée géante.", "la fusée géante"),
    ("fr", "Aujourd'hui plus que jamais le port est vivant.", "le port est vivant"),
    ("es", "Hoy más que nunca el puerto es importante.", "el puerto es importante"),
    ("pt", "Hoje mais do que nunca o porto é importante.", "o porto é importante"),
    ("ru", "нет капитан вернулся домой вечером", "капитан вернулся домой"),
    ("ru", "как бы то ни было капитан вернулся домой", "капитан вернулся домой"),
    ("uk", "ні капітан повернувся додому ввечері", "капітан повернувся додому"),
    ("zh", "洪水淹没整个村子和学校。", "整个村子和学校"),
    ("zh", "大火吞没整条街道和商店。", "整条街道和商店"),
    ("zh", "泥石流埋没整个山村的房子。", "整个山村的房子"),
    ("zh", "旧船沉没在冰冷的海里。", "在冰冷的海里"),
    ("ko", "집 안 공기가 아주 따뜻합니다.", "공기가 아주 따뜻합니다"),
    ("ko", "배 안 사람들이 모두 춤을 춥니다.", "사람들이 모두 춤을 춥니다"),
];

/// Sentences of the model that deny the words, too.
const DENIED: [(&str, &str, &str); 8] = [
    ("en", "No danger for children.", "There is no \"danger for children\" [s1]."),
    ("en", "No danger for children.", "He denies any \"danger for children\" [s1]."),
    ("en", "The water is not safe to drink.", "The water isn't \"safe to drink\" [s1]."),
    ("de", "Keine Gefahr für Kinder.", "Es besteht keine „Gefahr für Kinder“ [s1]."),
    ("fr", "Le pont n'est pas sûr en hiver.", "Le pont n'est pas « sûr en hiver » [s1]."),
    ("zh", "你不能喝这里的水。", "你不能“喝这里的水” [s1]。"),
    ("ja", "この水は安全ではありません。", "「この水は安全」ではありません [s1]。"),
    ("ru", "Здесь нет опасности для детей.", "Нет «опасности для детей» [s1]."),
];

fn unexpected(quotations: &[(&str, &str, &str)], is_kept: bool) -> Vec<String> {
    let mut failed = Vec::new();
    for (language, spoken, quoted) in quotations {
        let response = verified(language, spoken, "?!", &format!("“{quoted}” [s1]."));
        if response.contains('“') != is_kept {
            failed.push(format!("{quoted} <- {spoken}: {response}"));
        }
    }
    failed
}

/// The answer that remains of a text about these lines, each of which is a passage.
fn verify_lines(lines: &[&str], text: &str) -> String {
    let segments = (0..).zip(lines).map(|(n, line)| Segment::new(*line, n * 60_000, 5_000)).collect();
    let transcript = Arc::new(test_transcript(segments));
    let passages: Arc<[Passage]> = passages(&transcript.segments).into();
    let mut verifier = AnswerVerifier::new(&transcript, &passages, &passages, "?!", &[]);
    verifier.push(text);
    verifier.finish();
    verifier.response().to_owned()
}

#[test]
fn quotations_without_their_negation_are_removed() {
    let failed = unexpected(&REVERSED, false);
    assert!(failed.is_empty(), "{}:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn quotations_that_are_true_or_unsure_remain() {
    let failed = unexpected(&TRUE, true);
    assert!(failed.is_empty(), "{}:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn quotations_in_sentence_that_denies_remain() {
    for (language, spoken, text) in DENIED {
        let response = verified(language, spoken, "?!", text);
        assert!(response.contains('“'), "{text} <- {spoken}: {response}");
    }
    // Without the words that deny it, the quotation would stand alone.
    let text = "Purple penguins never danced with giraffes near volcanoes or “danger for children” [s1].";
    assert_eq!(verified("en", "No danger for children.", "?!", text), "");
}

#[test]
fn quotations_are_sought_at_other_places() {
    let lines = ["The water is not", "safe to drink in May.", "We boil it.", "Then it is safe to drink."];
    assert_eq!(verify_lines(&lines, "“safe to drink” [s2]."), "“safe to drink” [3:00].");
    assert_eq!(verify_lines(&lines, "“safe to drink in May” [s2]."), "“safe to drink in May.” [1:00].");
    assert_eq!(verify_lines(&lines[..2], "“safe to drink” [s2]."), "");
}

#[test]
fn quotations_beyond_limits_remain() {
    let spoken = "not safe to drink, ".repeat(500);
    let quoted = "“safe to drink” [s1]. ".repeat(40);
    let lines = ["It is not safe to drink.", spoken.as_str()];
    assert_eq!(verify_lines(&lines, &quoted).matches('“').count(), 40);
}

proptest! {
    #[test]
    fn quotations_of_whole_passages_remain(
        lines in prop::collection::vec("(not|no|never|safe|to drink|the water|nicht|pas|不|ない| ){1,8}", 1..6)
    ) {
        let lines: Vec<String> = lines.iter().map(|line| format!("harbour water {line} is not")).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let quoted: Vec<String> =
            lines.iter().enumerate().map(|(n, line)| format!("“{line}” [s{}]", n + 1)).collect();
        let response = verify_lines(&lines, &quoted.join("\n"));
        prop_assert_eq!(response.matches('“').count(), lines.len(), "{}", response);
    }
}
