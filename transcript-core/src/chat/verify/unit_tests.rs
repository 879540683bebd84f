//! Statements with another currency or unit of length than the spoken one are removed, others remain.

use super::claim_tests::verified;

/// Language, spoken line, and a false sentence.
const FALSE_SENTENCES: [(&str, &str, &str); 9] = [
    (
        "en",
        "In March 1987 the river rose nine metres in a single night.",
        "The river rose nine feet in a single night",
    ),
    (
        "en",
        "In March 1987 the river rose nine metres in a single night.",
        "The river rose nine kilometres in a single night",
    ),
    (
        "en",
        "We sold eighty-five tickets for the concert and raised 2,300 pounds for charity.",
        "They raised 2,300 dollars for charity",
    ),
    (
        "en",
        "We sold eighty-five tickets for the concert and raised 2,300 pounds for charity.",
        "They raised $2,300 for charity",
    ),
    ("en", "The insurance paid 12,500 pounds.", "The insurance paid 12,500 % of the loss"),
    ("en", "The insurance paid £3.5 million.", "The insurance paid $3.5 million"),
    ("en", "The insurance paid £900 thousand.", "The insurance paid 900,000 euros"),
    ("de", "Die Versicherung zahlte 12.500 Euro.", "Die Versicherung zahlte 12.500 Dollar"),
    ("de", "Im März 1987 stieg der Fluss in einer Nacht um neun Meter.", "Der Fluss stieg um neun Kilometer"),
];

/// Language, spoken line, and a true sentence.
const TRUE_SENTENCES: [(&str, &str, &str); 44] = [
    ("en", "In March 1987 the river rose nine metres.", "The river may rise nine metres"),
    ("en", "In March 1987 the river rose nine metres.", "In march 1987 the river rose nine metres"),
    ("en", "In March 1987 the river rose nine metres.", "Im März 1987 stieg der Fluss um neun Meter"),
    ("en", "In March 1987 the river rose nine metres.", "En mars 1987, la rivière est montée"),
    ("ru", "В марте 1987 года река поднялась на девять метров.", "Река поднялась в марте 1987 года"),
    ("zh", "1987年3月，河水上涨了九米。", "1987年三月河水上涨了九米"),
    ("en", "We raised 2,300 pounds for charity.", "They raised £2,300 for charity"),
    ("en", "We raised 2,300 pounds for charity.", "They raised 2,300 for charity"),
    ("en", "The box weighs 20 pounds, which is 9 kg.", "The box weighs 20 pounds (9 kg)"),
    ("en", "The insurance paid £3.5 million.", "The insurance paid 3.5 million pounds"),
    ("en", "The insurance paid $900 thousand.", "The insurance paid 900,000 dollars"),
    ("en", "The bridge costs 5 dollars a day, or 5 euros.", "The bridge costs 5 euros"),
    ("en", "Between five and ten dollars for the ferry.", "The ferry costs $5 to $10"),
    ("en", "He stood on his two feet, two metres from the river.", "He stood on two feet by the river"),
    ("en", "The insect has six feet and eats leaves.", "The insect has six feet"),
    ("en", "The wall is nine feet high.", "The nine-foot wall is high"),
    ("en", "The river rose nine metres.", "The river rose 9 m"),
    ("en", "The river rose nine metres.", "The river rose by nine meters"),
    ("en", "The river is 9 km long.", "The river is nine kilometres long"),
    ("en", "Fifty percent of the boats sank.", "50 % of the boats sank"),
    ("en", "Fifty per cent of the boats sank.", "50% of the boats sank"),
    ("de", "Die Versicherung zahlte 12.500 Euro.", "Die Versicherung zahlte 12.500 €"),
    ("de", "Fünfzig Prozent der Boote sanken.", "50 % der Boote sanken"),
    ("fr", "L'assurance a payé 12 500 euros.", "L'assurance a payé 12 500 €"),
    ("fr", "Cinquante pour cent des bateaux ont coulé.", "50 % des bateaux ont coulé"),
    ("es", "El seguro pagó 12.500 euros.", "El seguro pagó €12.500"),
    ("es", "Vive a mil metros del río.", "Vive a 1000 metros del río"),
    ("ru", "Страховая выплатила 12 500 рублей.", "Страховая выплатила 12 500 рублей"),
    ("en", "The road is 900 square metres of asphalt.", "The road has 900 square metres of asphalt"),
    ("en", "The song sold nine million, nine dollars each.", "The song sold nine million"),
    ("en", "He ran a mile in 4 minutes at 5 am.", "He ran one mile at 5 am"),
    ("en", "The 5 Miles Band played at 5 pm in the hall.", "At 5 pm the band played in the hall"),
    ("ja", "保険会社は12,500円を支払いました。", "保険会社は¥12,500を支払いました"),
    ("en", "The price rose five percent, about five dollars.", "The price rose by $5"),
    ("en", "He earned fifty thousand dollars.", "He earned $50,000"),
    ("en", "He earned fifty thousand.", "He earned 50,000 euros"),
    ("en", "It is 20 metres and 65 feet.", "It is 65 feet"),
    ("en", "The 100 metres final was at 9 pm.", "The 100 m final was at 9 pm"),
    ("en", "It weighs 100 pounds.", "It weighs 100 lbs"),
    ("en", "Ten pounds of flour cost ten pounds.", "Ten pounds of flour cost £10"),
    ("en", "He has 3 dogs and 3 miles of road.", "He has 3 dogs"),
    ("en", "The tower is 30 metres high.", "The 30 metre high tower"),
    ("en", "She won 5 yen.", "She won ¥5"),
    ("en", "About 100 people paid 100 dollars.", "100 euros were paid by people"),
];

#[test]
fn claims_with_other_units_are_removed() {
    for (language, spoken, sentence) in FALSE_SENTENCES {
        let response = verified(language, spoken, "?!", &format!("{sentence} [s1]."));
        assert!(!response.contains(sentence), "{sentence} <- {spoken}");
    }
}

#[test]
fn claims_with_spoken_units_remain() {
    for (language, spoken, sentence) in TRUE_SENTENCES {
        let response = verified(language, spoken, "?!", &format!("{sentence} [s1]."));
        assert!(response.contains(sentence), "{sentence} <- {spoken}");
    }
}
