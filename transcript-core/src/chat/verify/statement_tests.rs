//! Statements that reverse an exception, a refusal, a doubt or a Chinese negation are removed, others remain.

use super::claim_tests::verified;

/// Language, spoken line, and a false sentence.
const FALSE_SENTENCES: [(&str, &str, &str); 31] = [
    ("en", "The ferry runs every day except Sunday.", "The ferry runs on Sunday"),
    ("en", "The ferry runs every day except Sunday.", "The ferry runs every day, Sunday included"),
    ("en", "The ferry runs every day except Sunday.", "The ferry runs only on Sunday"),
    ("en", "All shops in the village are open apart from the bakery.", "The bakery in the village is open"),
    ("en", "Everyone voted for the treaty, with the exception of Norway.", "Norway voted for the treaty"),
    ("de", "Die Fähre fährt täglich außer sonntags.", "Die Fähre fährt sonntags"),
    ("de", "Die Fähre fährt jeden Tag, ausgenommen Sonntag.", "Die Fähre fährt am Sonntag"),
    ("fr", "Le bac circule tous les jours sauf le dimanche.", "Le bac circule le dimanche"),
    ("es", "El transbordador sale todos los días excepto el domingo.", "El transbordador sale el domingo"),
    ("it", "Il traghetto parte ogni giorno tranne la domenica.", "Il traghetto parte la domenica"),
    ("pt", "A balsa sai todos os dias exceto domingo.", "A balsa sai no domingo"),
    ("nl", "De veerboot vaart elke dag behalve zondag.", "De veerboot vaart op zondag"),
    ("ru", "Паром ходит каждый день, кроме воскресенья.", "Паром ходит в воскресенье"),
    ("ar", "تعمل العبارة كل يوم ما عدا الأحد.", "تعمل العبارة يوم الأحد"),
    ("zh", "我们没有责怪工程师。", "我们责怪了工程师"),
    ("zh", "我们没有责怪工程师。", "他们责怪了工程师"),
    ("zh", "那天晚上没有人死亡。", "那天晚上死亡了三人"),
    ("zh", "他没有参观博物馆。", "他参观过博物馆"),
    ("zh", "警察沒有逮捕司機。", "警察逮捕了司機"),
    ("zh", "我们没有去北京旅游。", "我们去了北京"),
    (
        "en",
        "The mayor, Ellen Whitcombe, refused to evacuate the mill.",
        "The mayor agreed to evacuate the mill",
    ),
    ("en", "The mayor refused to evacuate the mill.", "The mayor agreed to evacuate the mill"),
    ("en", "The captain refused the offer of the bank.", "The captain accepted the offer of the bank"),
    (
        "en",
        "Dr Patel doubts that the dam will survive another flood.",
        "Dr Patel is sure that the dam will survive another flood",
    ),
    (
        "de",
        "Die Bürgermeisterin weigerte sich, die Mühle zu räumen.",
        "Die Bürgermeisterin war bereit, die Mühle zu räumen",
    ),
    (
        "de",
        "Herr Doktor Patel bezweifelt, dass der Damm hält.",
        "Herr Doktor Patel ist sicher, dass der Damm hält",
    ),
    ("fr", "La maire a refusé d'évacuer le moulin.", "La maire a accepté d'évacuer le moulin"),
    ("es", "La alcaldesa se negó a evacuar el molino.", "La alcaldesa aceptó evacuar el molino"),
    ("zh", "市长拒绝疏散磨坊。", "市长同意疏散磨坊"),
    (
        "de",
        "Die Bürgermeisterin weigerte sich die Mühle zu räumen.",
        "Die Bürgermeisterin war bereit die Mühle zu räumen",
    ),
    ("de", "Der Wirt weigerte sich, die Mühle zu räumen.", "Der Wirt war bereit, die Mühle zu räumen"),
];

/// Language, spoken line, and a true sentence.
const TRUE_SENTENCES: [(&str, &str, &str); 97] = [
    ("en", "The ferry runs every day except Sunday.", "The ferry does not run on Sunday"),
    ("en", "The ferry runs every day except Sunday.", "The ferry runs every day except Sunday"),
    ("en", "The ferry runs every day except Sunday.", "On Sunday the ferry doesn't run"),
    (
        "en",
        "The ferry runs every day except Sunday. On Sunday the ferry runs in summer only.",
        "The ferry runs on Sunday in summer",
    ),
    (
        "en",
        "The ferry runs every day except Sunday. On Sunday we rest on the island.",
        "We rest on the island on Sunday",
    ),
    ("en", "The ferry runs every day except when it storms.", "The ferry runs every day"),
    (
        "en",
        "The plan worked for everyone except that it rained.",
        "It rained when everyone worked on the plan",
    ),
    ("en", "Apart from the castle, the town has two museums.", "The town has a castle"),
    ("en", "The town has two museums apart from the castle.", "The town has a castle and two museums"),
    ("en", "Besides the castle, all the museums are free.", "The castle is free"),
    (
        "en",
        "All the boats sank apart from the storm damage also in other harbours.",
        "The boats sank in other harbours",
    ),
    ("en", "Everyone except Ben went swimming in the lake.", "Everyone went swimming in the lake"),
    ("en", "The ferry runs every day except Sunday.", "The ferry runs every day"),
    ("en", "The ferry runs every day except Sunday.", "The ferry rests on Sunday"),
    ("de", "Die Fähre fährt täglich außer sonntags.", "Die Fähre fährt sonntags nicht"),
    ("de", "Außer dem Schloss hat die Stadt zwei Museen.", "Die Stadt hat ein Schloss"),
    ("de", "Die Fähre fährt täglich außer sonntags.", "Die Fähre fährt täglich"),
    ("fr", "Le bac circule tous les jours sauf le dimanche.", "Le bac ne circule pas le dimanche"),
    ("es", "El transbordador sale todos los días excepto el domingo.", "El transbordador no sale el domingo"),
    ("it", "Il traghetto parte ogni giorno tranne la domenica.", "Il traghetto non parte la domenica"),
    ("nl", "De veerboot vaart elke dag behalve zondag.", "De veerboot vaart niet op zondag"),
    ("ru", "Паром ходит каждый день, кроме воскресенья.", "Паром не ходит в воскресенье"),
    ("ru", "Кроме музея, в городе есть замок.", "В городе есть музей и замок"),
    ("ar", "تعمل العبارة كل يوم ما عدا الأحد.", "لا تعمل العبارة يوم الأحد"),
    ("ja", "城以外にも博物館が二つあります。", "町に城があります"),
    ("zh", "除了城堡以外，城里还有两个博物馆。", "城里有城堡"),
    ("zh", "渡船除星期天外每天开。", "渡船每天开"),
    ("zh", "我们没有责怪工程师。", "我们没有责怪工程师"),
    ("zh", "我们没有责怪工程师，我们责怪了老板。", "我们责怪了老板"),
    ("zh", "如果没有参观博物馆，就参观教堂。", "他参观了教堂"),
    ("zh", "你有没有参观博物馆？我参观了。", "他参观了博物馆"),
    ("zh", "他还没有完成这座桥，后来完成了。", "他完成了这座桥"),
    ("zh", "没有钱买书，他去了图书馆。", "他去了图书馆"),
    ("zh", "他没想到老板同意了。", "老板同意了"),
    ("zh", "他不了解这座桥。", "他不了解这座桥"),
    ("zh", "那天晚上没有人死亡。", "那天晚上没有人死亡"),
    (
        "en",
        "At first the mayor refused the plan, later the mayor agreed to the plan of the mill.",
        "The mayor agreed to the plan of the mill",
    ),
    ("en", "The mayor refused the plan of the mill.", "The mayor did not agree to the plan of the mill"),
    ("en", "Anna refused the offer of the bank, but Ben took it.", "Ben accepted the offer of the bank"),
    ("en", "A certain captain refused the medal of the town.", "A certain captain refused the medal"),
    ("de", "Niemand bezweifelt, dass der Damm hält.", "Alle sind sicher, dass der Damm hält"),
    (
        "fr",
        "La maire a d'abord refusé, puis a accepté d'évacuer le moulin.",
        "La maire a accepté d'évacuer le moulin",
    ),
    ("es", "Primero se negó, luego aceptó evacuar el molino.", "La alcaldesa aceptó evacuar el molino"),
    ("zh", "市长不同意疏散磨坊。", "市长拒绝疏散磨坊"),
    ("zh", "市长先拒绝疏散磨坊，后来同意了。", "市长同意疏散磨坊"),
    ("en", "All visitors pay ten euros except children, who pay five.", "Children pay five euros"),
    ("en", "The ferry runs every day except Sunday.", "The ferry runs every day other than Sunday"),
    ("en", "Everyone came by bus except Tom.", "Everyone besides Tom came by bus"),
    ("en", "Everyone came by bus except Tom.", "Tom didn't come by bus"),
    ("en", "Everyone came by bus except Tom, who came before everyone.", "Tom came before everyone"),
    ("en", "All of us laughed except Anna.", "Anna was the only one who did not laugh"),
    ("en", "The house has everything except a garden.", "The house is without a garden"),
    ("en", "He eats everything except fish.", "He never eats fish"),
    ("en", "They all voted for the law except Smith.", "Smith voted against the law"),
    ("en", "The lights are always on except at night.", "The lights are off at night"),
    ("en", "Everything in the box is broken, except the cup.", "The cup in the box is whole"),
    ("en", "Every child got two sweets except Tim, he got more.", "Tim got more sweets"),
    ("de", "Die Fähre fährt jeden Tag außer Sonntag.", "Bis auf Sonntag fährt die Fähre jeden Tag"),
    ("fr", "Il mange tout sauf le poisson.", "Il mange sans poisson"),
    ("es", "Come de todo salvo pescado.", "Nunca come pescado"),
    ("it", "Tutti sono venuti in autobus tranne Tom.", "Tutti sono venuti in autobus, a parte Tom"),
    (
        "en",
        "At first she refused to sell the house. Years later she sold it.",
        "She later agreed to sell the house",
    ),
    ("en", "At first she refused to sell the house but later agreed.", "She later agreed to sell the house"),
    ("en", "The union refused the offer. The company took the offer.", "The company accepted the offer"),
    ("en", "He refused to accept the prize.", "He did not accept the prize"),
    ("en", "He refused the prize.", "He did not accept the prize"),
    ("en", "I doubt the results of the test.", "The speaker doubts the results of a certain test"),
    (
        "en",
        "Doctors doubted that he would walk again. He knew he would walk.",
        "He was sure that he would walk again",
    ),
    ("en", "The refuse collectors agreed to the offer.", "The refuse collectors accepted the offer"),
    ("en", "The refuse collectors took the offer.", "The refuse collectors accepted the offer"),
    (
        "en",
        "The king refused to leave the palace until he was promised safety.",
        "The king left the palace after he was promised safety",
    ),
    (
        "de",
        "Er weigerte sich zuerst, das Haus zu verkaufen. Dann tat er es doch.",
        "Schließlich war er bereit, das Haus zu verkaufen",
    ),
    ("de", "Bereits 1990 weigerte er sich zu zahlen.", "Er weigerte sich bereits 1990 zu zahlen"),
    ("fr", "Elle refuse l'offre. Son frère la prend.", "Son frère accepte l'offre"),
    ("es", "El banco le negó el crédito, otro banco se lo dio.", "Otro banco aceptó darle el crédito"),
    ("zh", "工会拒绝了提议，公司则赞成提议。", "公司同意提议"),
    ("zh", "他拒绝的条件她都接受。", "她接受他拒绝的条件"),
    ("zh", "一开始没有人相信他，后来大家都信了。", "后来大家相信了他"),
    ("zh", "小王没有参加比赛，小李去了。", "小李参加了比赛"),
    ("zh", "昨天没有下雨，今天一直在下。", "今天下雨了"),
    ("zh", "他没有离婚，一直拖到去年才办手续。", "他去年离婚了"),
    ("zh", "没有责怪他的人里有他的母亲。", "有人责怪了他"),
    ("zh", "他没收手机。", "老师没收了手机"),
    ("zh", "老师没收手机，下课还给学生。", "老师没收了手机"),
    ("zh", "洪水淹没村庄。", "洪水淹没了村庄"),
    ("zh", "他没有告诉妻子，妻子从邻居那里知道。", "邻居告诉了妻子"),
    ("zh", "要是没有发现火，全家都会死。", "他们发现了火"),
    ("zh", "医生没有发现问题，护士却看出来了。", "护士发现了问题"),
    (
        "en",
        "Every student passed the exam except Maria, who passed it a year later.",
        "Maria passed the exam a year later",
    ),
    ("en", "He always wears a hat except in church.", "In church he wears no hat"),
    ("en", "All dogs bark, except the basenji.", "The basenji is a dog"),
    ("en", "All members of the band except Ringo wrote songs at first.", "Ringo was a member of the band"),
    ("fr", "Tous les élèves ont réussi l'examen sauf Marie.", "Marie n'a pas réussi l'examen"),
    ("es", "Todos los niños están a salvo en la escuela.", "Los niños están en la escuela"),
    ("zh", "爸爸没有同意，妈妈同意了。", "妈妈同意了"),
    ("zh", "比赛前没有下雨，比赛时下了大雨。", "比赛时下了大雨"),
    ("zh", "没有吃早饭的孩子晕倒。", "孩子晕倒了"),
];

#[test]
fn claims_against_exceptions_and_refusals_are_removed() {
    let mut failed = Vec::new();
    for (language, spoken, sentence) in FALSE_SENTENCES {
        let response = verified(language, spoken, "?!", &format!("{sentence} [s1]."));
        if response.contains(sentence) {
            failed.push(format!("{sentence} <- {spoken}"));
        }
    }
    assert!(failed.is_empty(), "{}:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn claims_true_about_exceptions_and_refusals_remain() {
    let mut failed = Vec::new();
    for (language, spoken, sentence) in TRUE_SENTENCES {
        let response = verified(language, spoken, "?!", &format!("{sentence} [s1]."));
        if !response.contains(sentence) {
            failed.push(format!("{sentence} <- {spoken}"));
        }
    }
    assert!(failed.is_empty(), "{}:\n{}", failed.len(), failed.join("\n"));
}
