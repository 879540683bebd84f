//! Statements that reverse a passage in other ways than with a negating word, each beside a true one.

use super::claim_tests::verified;

/// Language, spoken line, a true statement, and one that reverses the line.
const REVERSALS: [(&str, &str, &str, &str); 25] = [
    (
        "en",
        "The fare on the old ferry was cheap, even in winter.",
        "The fare on the ferry was cheap in winter",
        "The fare on the ferry was expensive in winter",
    ),
    (
        "en",
        "The new lamp burns more oil than the old lamp.",
        "The old lamp burns less oil than the new lamp",
        "The new lamp burns less oil than the old lamp",
    ),
    (
        "en",
        "They painted the hull before they repaired the deck.",
        "They repaired the deck after they painted the hull",
        "They painted the hull after they repaired the deck",
    ),
    (
        "en",
        "The crew reached the island before dark.",
        "The crew reached the island before dark",
        "The crew failed to reach the island before dark",
    ),
    (
        "en",
        "Everyone on the boat could swim to the shore.",
        "Everyone on the boat could swim",
        "No one on the boat could swim",
    ),
    (
        "en",
        "All of the boats came back in the evening.",
        "All boats came back in the evening",
        "None of the boats came back in the evening",
    ),
    (
        "en",
        "The harbour master agreed to sign the contract.",
        "The harbour master agreed to sign",
        "The harbour master refused to sign the contract",
    ),
    (
        "en",
        "They crossed the channel with a compass and a map.",
        "They crossed the channel with a map",
        "They crossed the channel without a map",
    ),
    (
        "en",
        "The price of grain rose in the second year.",
        "In the second year the price of grain rose",
        "The price of grain fell in the second year",
    ),
    (
        "de",
        "Die Bauern ernteten im Herbst viel Getreide.",
        "Im Herbst ernteten die Bauern viel Getreide",
        "Die Bauern ernteten im Herbst kaum Getreide",
    ),
    (
        "de",
        "Alle Schüler bestanden die schwere Prüfung.",
        "Die Schüler bestanden die Prüfung",
        "Keiner der Schüler bestand die Prüfung",
    ),
    (
        "de",
        "Das Wasser stieg in der Nacht um zwei Meter.",
        "In der Nacht stieg das Wasser",
        "Das Wasser sank in der Nacht",
    ),
    (
        "de",
        "Der Bürgermeister unterschrieb den Vertrag mit der Bahn.",
        "Den Vertrag mit der Bahn unterschrieb der Bürgermeister",
        "Der Bürgermeister verweigert den Vertrag mit der Bahn",
    ),
    (
        "fr",
        "Le boulanger ouvre sa boutique le dimanche matin.",
        "Le boulanger ouvre le dimanche",
        "Le boulanger n'ouvre jamais le dimanche",
    ),
    (
        "fr",
        "Le prix du pain a augmenté pendant la guerre.",
        "Pendant la guerre, le prix du pain a augmenté",
        "Le prix du pain a baissé pendant la guerre",
    ),
    (
        "fr",
        "Tous les villages de la vallée avaient un moulin.",
        "Les villages de la vallée avaient un moulin",
        "Aucun village de la vallée n'avait de moulin",
    ),
    (
        "fr",
        "Le miel de printemps est plus clair que le miel d'été.",
        "Le miel de printemps est plus clair",
        "Le miel de printemps est moins clair que le miel d'été",
    ),
    (
        "fr",
        "Elle a fermé la fromagerie après la mort de son mari.",
        "La fromagerie a fermé après la mort de son mari",
        "Elle a fermé la fromagerie avant la mort de son mari",
    ),
    (
        "es",
        "Todos los barcos volvieron al puerto de noche.",
        "Los barcos volvieron al puerto",
        "Ningún barco volvió al puerto",
    ),
    (
        "es",
        "Los pescadores venden más atún que sardinas.",
        "Los pescadores venden más atún que sardinas",
        "Los pescadores venden menos atún que sardinas",
    ),
    (
        "es",
        "Plantaron los olivos antes de la gran sequía.",
        "Antes de la gran sequía plantaron los olivos",
        "Plantaron los olivos después de la gran sequía",
    ),
    (
        "es",
        "La barca cruzó la bahía con una vela nueva.",
        "La barca cruzó la bahía con vela",
        "La barca cruzó la bahía sin vela",
    ),
    ("ja", "店は毎日朝早く開きます。", "店は朝早く開きます", "店は朝早く開かない"),
    ("ja", "学生の全員が試験に合格しました。", "学生は試験に合格しました", "学生は試験に合格しませんでした"),
    ("zh", "地震之后村里建了新学校。", "地震之后建了学校", "地震之前村里建了新学校"),
];

/// The same of negations that a parenthesis or a mark of a quotation interrupts.
const INTERRUPTED: [(&str, &str, &str, &str); 6] = [
    (
        "en",
        "Never, under any circumstances, pour water into the acid.",
        "Never pour water into the acid",
        "Pour water into the acid",
    ),
    (
        "en",
        "The bridge is safe to cross in winter.",
        "The bridge is safe, however, to cross",
        "It is not, however, safe to cross",
    ),
    (
        "en",
        "The bridge is not, however, safe to cross in winter.",
        "The bridge is not safe to cross",
        "It is safe to cross in winter",
    ),
    (
        "en",
        "It is not \"safe\" to touch the wire.",
        "It is not safe to touch the wire",
        "It is safe to touch the wire",
    ),
    ("en", "No, the ice broke the pier.", "The ice broke the pier", "The ice never broke the pier"),
    (
        "fr",
        "Il ne faut jamais, selon lui, ouvrir cette vanne.",
        "Il ne faut jamais ouvrir cette vanne",
        "Il faut ouvrir cette vanne",
    ),
];

#[test]
fn claims_reversed_by_other_words_are_removed() {
    check(&REVERSALS);
}

#[test]
fn claims_reversed_by_interrupted_negations_are_removed() {
    check(&INTERRUPTED);
}

fn check(statements: &[(&str, &str, &str, &str)]) {
    let mut failed = Vec::new();
    for (language, spoken, truth, reversed) in statements {
        for (statement, is_kept) in [(*truth, true), (*reversed, false)] {
            let response = verified(language, spoken, "?!", &format!("{statement} [s1]."));
            if response.contains(statement) != is_kept {
                failed.push(format!("{statement} -> {response}"));
            }
        }
    }
    assert!(failed.is_empty(), "{}:\n{}", failed.len(), failed.join("\n"));
}
