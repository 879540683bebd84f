//! True sentences about words that have, or seem to have, an opposite in their passage remain.

use super::claim_tests::verified;

/// Language, spoken line, and a true sentence.
const TRUE_SENTENCES: [(&str, &str, &str); 100] = [
    ("en", "The mill was bought by a brewer in the valley", "The mill was sold to a brewer in the valley"),
    ("en", "The farmer sold the old horse to the miller.", "The miller bought the old horse from the farmer"),
    (
        "en",
        "Arsenal lost the final to Chelsea in the rain.",
        "Chelsea won the final against Arsenal in the rain",
    ),
    ("en", "More than forty boats sank in the storm.", "At least forty boats sank in the storm"),
    (
        "en",
        "Many boats sank in the storm near the harbour.",
        "Quite a few boats sank in the storm near the harbour",
    ),
    ("en", "More than forty boats sank in the storm.", "At the very least forty boats sank in the storm"),
    (
        "en",
        "The new engine burns less coal than the old engine.",
        "The new engine is more efficient than the old engine",
    ),
    (
        "en",
        "The new engine burns less coal than the old engine.",
        "The old engine burns more coal than the new engine",
    ),
    (
        "en",
        "The boy was nineteen years old when he joined the crew.",
        "The boy was young when he joined the crew",
    ),
    ("en", "The well was only two metres deep at the farm.", "The well was shallow at the farm"),
    ("en", "The walls of the tower were forty metres high.", "The walls of the tower were high"),
    (
        "en",
        "The northern route over the mountains to the old city is longer in winter than the southern route.",
        "The southern route is shorter in winter than the northern route",
    ),
    ("en", "The shop is close to the harbour gate.", "The shop opens near the harbour gate"),
    (
        "en",
        "They ended up in the harbour after the storm and waited.",
        "They began to wait in the harbour when the storm was over",
    ),
    ("en", "The ferry is cheaper than the train.", "The ferry is less expensive than the train"),
    ("en", "The ferry is cheaper than the train.", "The train is more expensive than the ferry"),
    (
        "en",
        "The cheapest fare of the ferry is in winter.",
        "The least expensive fare of the ferry is in winter",
    ),
    ("en", "Few houses are cheap in the valley.", "Most houses are expensive in the valley"),
    (
        "en",
        "The fare on the ferry was cheap in winter. In summer it cost a fortune.",
        "The fare on the ferry was expensive in summer",
    ),
    (
        "en",
        "The train arrives five minutes before the ferry leaves.",
        "The ferry leaves five minutes after the train arrives",
    ),
    ("en", "Ben arrived ten minutes after Anna.", "Anna arrived ten minutes before Ben"),
    ("en", "Ben arrived ten minutes after Anna.", "Ten minutes before Ben, Anna arrived"),
    (
        "en",
        "Before the wood in the stove burns, it must dry.",
        "After the wood in the stove has dried, it burns",
    ),
    (
        "en",
        "Before the war the mill ground rye, when the war ended it ground wheat.",
        "After the war the mill ground wheat",
    ),
    (
        "en",
        "The cabin of the captain is above the engine room.",
        "The engine room is below the cabin of the captain",
    ),
    ("en", "The glass on the table is half full.", "The glass on the table is half empty"),
    ("en", "Hang the wet wool on the line in the garden.", "Dry the wool on the line in the garden"),
    ("en", "Wash the dirty nets in the harbour.", "Clean the nets in the harbour"),
    ("en", "We harvest the grapes as the price rises.", "The grapes are harvested in the fall"),
    ("en", "The price of bread rose and the price of fish fell.", "The price of fish fell"),
    ("en", "The soup is hot, and the bread is cold.", "The bread is cold"),
    ("en", "The big ship towed a boat to the harbour.", "The big ship towed a small boat to the harbour"),
    (
        "en",
        "The water is better in the north than in the south.",
        "The water is worse in the south than in the north",
    ),
    ("en", "Bread is easier to bake than cake.", "Cake is more difficult to bake than bread"),
    (
        "en",
        "It is a myth that the old lamp burns whale oil.",
        "It is not true that the old lamp burns whale oil",
    ),
    (
        "en",
        "Many say that the old lamp burns whale oil, but that is wrong.",
        "It is not true that the old lamp burns whale oil",
    ),
    (
        "en",
        "The miller survived the flood in the valley by ten years.",
        "The miller died ten years after the flood in the valley",
    ),
    (
        "en",
        "The fare on the ferry was expensive in winter.",
        "The fare on the ferry was far from cheap in winter",
    ),
    (
        "en",
        "We bake the small loaves quickly in the large oven.",
        "The loaves bake quickly in the large oven",
    ),
    ("de", "Die Mühle wurde von einem Brauer gekauft.", "Die Mühle wurde an einen Brauer verkauft"),
    ("de", "Sie lieferten das Salz vor allem nach Polen.", "Das Salz lieferten sie nach Polen"),
    ("de", "Das Salz ging vor mehr als hundert Jahren in die Stadt Wien.", "Das Salz ging nach Wien"),
    ("de", "Der Junge kam im Alter von neunzehn Jahren zur Mannschaft.", "Der Junge kam jung zur Mannschaft"),
    ("de", "Das Schloss am Fluss kann man besuchen.", "Das Schloss am Fluss ist offen"),
    ("de", "Der Brunnen ist zwei Meter tief.", "Der Brunnen ist flach"),
    (
        "de",
        "Der neue Kanal ist breiter als der alte Kanal.",
        "Der alte Kanal ist schmaler als der neue Kanal",
    ),
    ("de", "Nach dem Sturm reparierten sie das Dach der Scheune.", "Sie reparierten das Dach nach dem Sturm"),
    ("de", "Die Fähre ist billiger als der Zug.", "Der Zug ist teurer als die Fähre"),
    ("de", "Die Fähre ist billiger als der Zug.", "Die Fähre ist weniger teuer als der Zug"),
    ("de", "Der Motor verbraucht weniger Kohle als die Lok.", "Die Lok verbraucht mehr Kohle als der Motor"),
    (
        "de",
        "Bevor das Holz im Ofen brennt, muss es trocknen.",
        "Nachdem das Holz im Ofen getrocknet ist, brennt es",
    ),
    ("de", "Das kleine Boot gehört zu dem großen Schiff im Hafen.", "Das große Schiff im Hafen hat ein Boot"),
    (
        "de",
        "Es ist ein Mythos, dass die alte Lampe Tran brennt.",
        "Es ist nicht wahr, dass die alte Lampe Tran brennt",
    ),
    ("fr", "Le moulin a été acheté par un brasseur.", "Le moulin a été vendu à un brasseur"),
    (
        "fr",
        "Plus de deux mille personnes vivent dans le village.",
        "Au moins deux mille personnes vivent dans le village",
    ),
    ("fr", "Le bateau est plus cher que le train.", "Le train est moins cher que le bateau"),
    ("fr", "Le pont est long de deux mètres au village.", "Le pont est court au village"),
    (
        "fr",
        "Elle a fermé la fromagerie après la mort de son mari.",
        "Son mari est mort avant la fermeture de la fromagerie",
    ),
    (
        "fr",
        "Le petit bateau du port suit le grand navire.",
        "Le grand navire précède le petit bateau du port",
    ),
    ("fr", "Le nord du pays est plus froid que le sud.", "Le sud du pays est plus chaud que le nord"),
    (
        "fr",
        "On raconte un mythe sur la vieille lampe du port.",
        "Il n'est pas vrai que la vieille lampe du port brûle",
    ),
    ("es", "El molino fue comprado por un cervecero.", "El molino fue vendido a un cervecero"),
    ("es", "Más de dos mil personas viven en el pueblo.", "Al menos dos mil personas viven en el pueblo"),
    ("es", "Más de dos mil personas viven en el pueblo.", "Por lo menos dos mil personas viven en el pueblo"),
    ("es", "El río subió tres metros bajo el puente.", "El río subió bajo el puente"),
    ("es", "El barco es más barato que el tren.", "El tren es más caro que el barco"),
    ("es", "Comieron el pan antes de la cena.", "La cena fue después del pan"),
    ("es", "El barco pequeño sigue al barco grande del puerto.", "El barco grande del puerto va delante"),
    ("ja", "新しい橋は古い橋より長いです。", "古い橋は新しい橋より短いです"),
    ("ja", "地震の後に駅が建てられました。", "駅は地震の後に建てられました"),
    ("ja", "最後に駅が建てられました。", "駅が建てられました"),
    ("ja", "三年前に村で祭りが始まりました。", "村で祭りが始まりました"),
    ("ja", "去年の冬は魚の値段が高いままでした。", "冬は魚の値段が高い"),
    ("ja", "大きな船が小さな船を港まで引きました。", "小さな船は大きな船に引かれました"),
    ("ja", "北の町は南の町より寒いです。", "南の町は北の町より暑いです"),
    ("ja", "馬は牛より強いです。", "牛は馬より弱いです"),
    ("ja", "店は土地を会社に売りました。", "会社は店から土地を買いました"),
    ("ja", "人口が増えました。魚の数は減りました。", "魚の数は減りました"),
    ("zh", "地震之后村里建了新学校。", "村里建新学校之前发生了地震"),
    ("zh", "啤酒商买了这座磨坊。", "这座磨坊卖给了啤酒商"),
    ("zh", "村里的人口增加，学校的数量减少。", "学校的数量减少"),
    ("zh", "这座塔有四十米高。", "这座塔四十米高"),
    ("zh", "战争以前这里有一座工厂。", "工厂在战争以前就有"),
    ("zh", "新桥比旧桥长。", "旧桥比新桥短"),
    ("zh", "他先去了上海，之后去了北京。", "去北京之前他去了上海"),
    ("en", "The price of grain rose in spring. Then it went back down.", "The price of grain fell"),
    (
        "en",
        "The price of grain rose in spring and went back down in autumn.",
        "The price of grain fell in autumn",
    ),
    (
        "en",
        "We thought that the fare on the ferry was cheap, until we paid a month of wages.",
        "The fare on the ferry was expensive",
    ),
    (
        "en",
        "the fare on the ferry was cheap in winter in summer it cost a fortune",
        "The fare on the ferry was expensive in summer",
    ),
    (
        "en",
        "The old machine was slower than the new machine.",
        "The new machine was faster than the old machine",
    ),
    ("de", "Der Bürgermeister ist nicht für den Vertrag.", "Der Bürgermeister stimmt nicht für den Vertrag"),
    ("de", "Der Preis stieg im Frühling und ging im Herbst zurück.", "Der Preis sank im Herbst"),
    (
        "de",
        "Die alte Maschine war langsamer als die neue Maschine.",
        "Die neue Maschine war schneller als die alte Maschine",
    ),
    (
        "fr",
        "Le prix du pain a augmenté au printemps, puis il est redescendu en automne.",
        "Le prix du pain a baissé en automne",
    ),
    ("fr", "Le train arrive cinq minutes avant le bateau.", "Le bateau arrive cinq minutes après le train"),
    ("es", "El tren llega cinco minutos antes del barco.", "El barco llega cinco minutos después del tren"),
    ("es", "El precio aumentó en primavera y volvió a su nivel en otoño.", "El precio disminuyó en otoño"),
    ("ja", "春に値段が増えました。秋に元に戻りました。", "秋に値段が減りました"),
    ("zh", "火车比轮船早到，之后轮船到了。", "轮船到之前火车到了"),
    ("zh", "春天人口增加，秋天回到原来的水平。", "秋天人口减少"),
];

#[test]
fn claims_true_sentences_with_opposites_remain() {
    let mut removed = Vec::new();
    for (language, spoken, sentence) in TRUE_SENTENCES {
        let response = verified(language, spoken, "?!", &format!("{sentence} [s1]."));
        if !response.contains(sentence) {
            removed.push(format!("{sentence} <- {spoken}"));
        }
    }
    assert!(removed.is_empty(), "{}:\n{}", removed.len(), removed.join("\n"));
}
