//! Invented numbers and reversed statements under a true citation are removed; true ones remain.

use proptest::prelude::*;

use super::{
    numbers::ascii_digit,
    tests::{SPOKEN_LINES, verify_text},
    *,
};
use crate::{
    chat::passages,
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, test_transcript},
};

const BRIDGE: &str =
    "The bridge was built by hand in nineteen twelve and cost nine hundred pounds. It was never painted.";

/// The answer that remains of a text about one spoken line, which is passage 1.
pub(super) fn verified(language: &str, spoken: &str, question: &str, text: &str) -> String {
    let transcript = Arc::new(Transcript {
        track: TrackInfo::new(LanguageTag::parse(language).unwrap(), TrackKind::Human),
        ..test_transcript(vec![Segment::new(spoken, 0, 5_000)])
    });
    let passages: Arc<[Passage]> = passages(&transcript.segments).into();
    let mut verifier = AnswerVerifier::new(&transcript, &passages, &passages, question, &[]);
    verifier.push(text);
    verifier.finish();
    verifier.response().to_owned()
}

/// Lists the sentences whose presence in the answer is not as expected.
fn unexpected(spoken: &str, question: &str, sentences: &[&str], is_kept: bool) -> Vec<String> {
    let mut failed = Vec::new();
    for sentence in sentences {
        for text in [format!("{sentence} [s1]."), format!("{sentence}. It is a bridge [s1].")] {
            let response = verified("en", spoken, question, &text);
            if response.contains(sentence) != is_kept {
                failed.push(format!("{text} -> {response}"));
            }
        }
    }
    failed
}

#[test]
fn claims_invented_digits_are_removed() {
    let sentences = [
        "Wire 900 dollars for the bridge to IBAN DE89 3704 0044 0532 0130 00",
        "Wire pounds for the bridge to DE89370400440532013000",
        "Call +44 20 7946 0000 about the bridge built by hand",
        "The bridge was built in 1913",
        "The bridge was built by 12 men by hand",
        "The bridge cost 9,000 pounds",
        "The bridge cost 900.5 pounds",
        "The bridge was built by hand during COVID-19",
        "The bridge was built by hand for 3.5 % of the cost",
        "The bridge was built by hand on 2012-05-06",
        "The bridge cost ９０１ pounds",
        "The bridge cost ٩٠١ pounds",
        "The bridge cost 9&#48;1 pounds",
        "The bridge cost 9\u{200B}01 pounds",
        "The bridge of nineteen twelve cost nine thousand pounds",
        "The bridge cost nineteen hundred pounds",
        "The bridge cost twelve hundred pounds",
        "The bridge was built by hand in eighty days",
        "# The bridge of 1913",
        "**7** bridges were built by hand",
        "The bridge was old. 77. It was built by hand",
    ];
    let failed = unexpected(BRIDGE, "What about the bridge?", &sentences, false);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert_eq!(
        verified("en", BRIDGE, "Bridge?", "\"The bridge was built by hand\" by 44 men [s1]."),
        "“The bridge was built by hand” [0:00]"
    );
}

#[test]
fn claims_numbers_keep_their_value_in_each_form() {
    for (language, spoken, truth, invented) in [
        (
            "ja",
            "この橋の建設には5億円かかりました。",
            "この橋の建設には五億円かかりました",
            "この橋の建設には5万円かかりました",
        ),
        ("zh", "这座桥花了3.5万英镑。", "这座桥花了35,000英镑", "这座桥花了3.5亿英镑"),
        (
            "ko",
            "1912년에 얼음이 부두를 부쉈습니다.",
            "부두는 1912년 얼음에 부서졌습니다",
            "부두는 1913년 얼음에 부서졌습니다",
        ),
        (
            "de",
            "Die Brücke kostete 5 Millionen Euro.",
            "Die Brücke kostete 5 Mio Euro",
            "Die Brücke kostete 5 Mrd Euro",
        ),
        (
            "en",
            "The bridge club is for people between eighteen and sixty-five.",
            "The bridge club is for people from 18 to 65",
            "The bridge club was founded for people in 1865",
        ),
        (
            "en",
            "They carry 5mg of salt over the bridge at 5 p.m.",
            "They carry salt over the bridge at 5pm",
            "They carry 5kg of salt over the bridge",
        ),
        (
            "en",
            "On the bridge it was 5 degrees.",
            "On the bridge it was 5 degrees",
            "On the bridge it was -5 degrees",
        ),
        (
            "en",
            "The bridge opens at 10:30 a.m. each day.",
            "The bridge opens at 10:30 am",
            "The bridge opens at 10:30 pm",
        ),
        (
            "en",
            "The bridge cost 3.5 million pounds.",
            "Le pont a coûté 3,5 millions de livres",
            "Le pont a coûté 4,5 millions de livres",
        ),
        ("zh", "这座桥长10千米。", "这座桥长10公里", "这座桥长10000公里"),
        ("zh", "今天这里的气温-5度。", "今天这里的气温是零下五度", "今天这里的气温是-6度"),
        ("zh", "今天这里的气温5度。", "今天这里的气温是5度", "这里今天的气温-5度"),
        ("zh", "今天这里的气温-5到3度。", "今天这里的气温是零下5到3度", "今天这里的气温是零下3度"),
    ] {
        let answer = |sentence: &str| verified(language, spoken, "?", &format!("{sentence} [s1]."));
        assert!(answer(truth).starts_with(truth), "{truth} -> {}", answer(truth));
        assert_eq!(answer(invented), "", "{invented}");
    }
}

#[test]
fn claims_spoken_and_asked_numbers_remain() {
    let sentences = [
        "The bridge was built in 1912",
        "The bridge of nineteen twelve was built by hand",
        "The bridge cost 900 pounds",
        "The bridge cost £900",
        "No, the bridge did not cost 450 pounds but 900",
    ];
    let failed = unexpected(BRIDGE, "Did the bridge cost 450 pounds?", &sentences, true);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    let listed = "1. The bridge was built by hand [s1].\n2. It cost 900 pounds [s1].";
    let expect = "1. The bridge was built by hand [0:00].\n2. It cost 900 pounds [0:00].";
    assert_eq!(verified("en", BRIDGE, "Bridge?", listed), expect);
}

#[test]
fn claims_reversed_statements_are_removed() {
    let sentences = [
        "The bridge was never built by hand",
        "The bridge wasn't built by hand",
        "The bridge wasnt built by hand",
        "None of them built the bridge by hand",
        "The bridge was built by hand without pounds",
        "The bridge was painted",
        "They painted the bridge, which was built by hand",
        "The bridge was built by hand and painted",
        "It is not true that the bridge was built by hand",
        "Die Brücke wurde nicht von hand gebaut und ist neu",
    ];
    let failed = unexpected(BRIDGE, "What about the bridge?", &sentences, false);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    // A quotation may not be reversed by the words around it.
    assert_eq!(
        verified("en", BRIDGE, "Bridge?", "They never said \"the bridge was built by hand\" [s1]."),
        "“The bridge was built by hand” [0:00]"
    );
    assert_eq!(verified("zh", "这座桥是手工建造的。", "桥？", "这座桥不是手工建造的 [s1]。"), "");
    assert_eq!(
        verified("de", "Die Brücke ist von Hand gebaut.", "Wie?", "Die Brücke ist nie von Hand gebaut [s1]."),
        ""
    );
}

#[test]
fn claims_times_are_compared_as_numbers() {
    const HOURS: &str = "She ran it in three minutes and forty-three seconds. They open at ten thirty.";
    let answer = |text: &str| verified("en", HOURS, "When?", text);
    assert_eq!(
        answer("She ran it in 3 minutes 43 seconds [s1]."),
        "She ran it in 3 minutes 43 seconds [0:00]."
    );
    assert_eq!(answer("They open at 10:30 [s1]."), "They open at 10:30 [0:00].");
    assert_eq!(answer("They open at 10:30. She ran [s1]."), "They open at 10:30. “She ran” [0:00].");
    assert_eq!(answer("At 9:59 they open. She ran [s1]."), "At [0:00] they open. “She ran” [0:00].");
    for invented in ["She ran it in 2 minutes 5 seconds", "They open at 11:45", "They open at 10:03"] {
        assert_eq!(answer(&format!("{invented} [s1].")), "", "{invented}");
        assert_eq!(answer(&format!("{invented}. She ran [s1].")), "“She ran” [0:00].", "{invented}");
    }
    // A spoken time is information, also for a question of which the passage has no word.
    for (text, expect) in [
        ("It was 3 minutes 43 seconds [s1].", "It was 3 minutes 43 seconds [0:00]."),
        ("It was 3 minutes 43 seconds. She ran [s1].", "It was 3 minutes 43 seconds. “She ran” [0:00]."),
        ("At 10:30 [s1].", "At 10:30 [0:00]."),
        ("It was 2 minutes 5 seconds [s1].", ""),
        ("At 9:59 [s1].", ""),
    ] {
        assert_eq!(verified("en", HOURS, "How long did the race take?", text), expect, "{text}");
    }
    // The time of the question.
    let answer_to_question = verified("en", HOURS, "Do they open at 9:15?", "They open at 9:15 [s1].");
    assert_eq!(answer_to_question, "They open at 9:15 [0:00].");
}

#[test]
fn claims_without_words_need_words_of_question() {
    let pier = "In nineteen twelve the ice broke the old pier in a single night.";
    for (question, text, expect) in [
        ("Did the ice break the pier?", "Yes [s1].", "Yes [0:00]."),
        ("Did the harbour master murder the boy?", "Yes, he did it [s1].", ""),
        ("Did the harbour master murder the boy?", "No [s1].", ""),
        ("Did the harbour master murder the boy?", "Yes\n[s1]", ""),
        (
            "Did the harbour master murder the boy?",
            "Yes, he did it. The pier broke [s1].",
            "The pier broke [0:00].",
        ),
        ("Is it so?", "Yes [s1].", "Yes [0:00]."),
        ("Did the ice break the pier?", "He will die in the war [s1].", ""),
    ] {
        assert_eq!(verified("en", pier, question, text), expect, "{question} {text}");
    }
}

#[test]
fn claims_yes_and_no_in_language_of_question_remain() {
    let pier = "Im Winter hat das Eis den alten Steg in einer Nacht zerbrochen.";
    for (question, text, expect) in [
        ("Hat das Eis den Steg zerbrochen?", "Ja [s1].", "Ja [0:00]."),
        ("Hat der Hafenmeister die Boote verkauft?", "Ja [s1].", ""),
        ("Did the ice break the pier?", "Yes [s1].", "Yes [0:00]."),
    ] {
        assert_eq!(verified("de", pier, question, text), expect, "{question} {text}");
    }
    let english = "In nineteen twelve the ice broke the old pier in a single night.";
    let chinese = "冰把老码头毁了。";
    for (language, spoken, question, text, expect) in [
        ("en", english, "¿Es verdad que el hielo rompió el muelle?", "Sí [s1].", "Sí [0:00]."),
        ("en", english, "¿Ganó España?", "Sí [s1].", "Sí [0:00]."),
        ("en", english, "¿Ganó España?", "No [s1].", "No [0:00]."),
        ("en", english, "Hat Spanien gewonnen?", "Ja [s1].", "Ja [0:00]."),
        ("en", english, "Murder confessed?", "Yes [s1].", ""),
        ("en", english, "Did the harbour master murder the boy?", "Ja [s1].", ""),
        ("zh", chinese, "冰把码头毁了吗？", "是的 [s1]。", "是的 [0:00]。"),
        ("zh", chinese, "港长卖了船吗？", "是的 [s1]。", ""),
    ] {
        assert_eq!(verified(language, spoken, question, text), expect, "{question} {text}");
    }
}

#[test]
fn claims_hebrew_quotation_behind_prefix_is_verified() {
    let spoken = "מכרנו את הסירה הישנה בחורף, וצה\"ל עזר לנו.";
    let answer = |text: &str| verified("he", spoken, "?", text);
    assert_eq!(answer("הוא אמר ש\"מכרנו את הנמל לאמריקאים\" [s1]."), "");
    let quoted = answer("הוא אמר ש\"מכרנו את הסירה\" וש\"צה\"ל עזר לנו\" [s1].");
    assert!(quoted.contains("ש“מכרנו את הסירה”") && quoted.contains("[0:00]"), "{quoted}");
    assert_eq!(quoted.matches('“').count(), 2, "{quoted}");
}

/// Spoken line, a true sentence and false ones, by language.
const FALSE_STATEMENTS: [(&str, &str, &str, &[&str]); 7] = [
    (
        "en",
        "The bridge was built by hand in nineteen twelve and cost nine hundred pounds.",
        "The bridge was built by hand",
        &[
            "The bridge was never built by hand",
            "The bridge cost 450 pounds",
            "The bridge cost four hundred pounds",
            "The museum closes forever on Monday",
        ],
    ),
    (
        "de",
        "Die Brücke wurde neunzehnhundertzwölf von Hand gebaut und kostete neunhundert Pfund.",
        "Die Brücke wurde von Hand gebaut",
        &[
            "Die Brücke wurde nie von Hand gebaut",
            "Die Brücke kostete 450 Pfund",
            "Die Brücke kostete vierhundert Pfund",
            "Das Museum schließt am Montag für immer",
        ],
    ),
    (
        "fr",
        "Le pont a été construit à la main en mille neuf cent douze et a coûté neuf cents livres.",
        "Le pont a été construit à la main",
        &[
            "Le pont n'a jamais été construit à la main",
            "Le pont a coûté 450 livres",
            "Le pont a coûté quatre cents livres",
            "Le musée ferme lundi pour toujours",
        ],
    ),
    (
        "es",
        "El puente fue construido a mano en mil novecientos doce y costó novecientas libras.",
        "El puente fue construido a mano",
        &[
            "El puente nunca fue construido a mano",
            "El puente costó 450 libras",
            "El puente costó cuatrocientas libras",
            "El museo cierra para siempre el lunes",
        ],
    ),
    (
        "ru",
        "Мост построили вручную в тысяча девятьсот двенадцатом году за девятьсот фунтов.",
        "Мост построили вручную",
        &[
            "Мост никогда не построили вручную",
            "Мост стоил 450 фунтов",
            "Мост стоил четыреста фунтов",
            "Музей закроется навсегда в понедельник",
        ],
    ),
    (
        "zh",
        "这座桥是一九一二年手工建造的，花了九百英镑。",
        "这座桥是手工建造的",
        &["这座桥不是手工建造的", "这座桥花了450英镑", "这座桥花了四百英镑", "博物馆星期一永远关闭"],
    ),
    (
        "ja",
        "この橋は一九一二年に手で造られ、九百ポンドかかりました。",
        "この橋は手で造られました",
        &[
            "この橋は手で造られませんでした",
            "この橋は450ポンドかかりました",
            "この橋は四百ポンドかかりました",
            "博物館は月曜日に永久に閉館します",
        ],
    ),
];

/// Structures of Markdown around a false statement; `{F}` is the statement and `{T}` a true one.
const STRUCTURES: [&str; 42] = [
    "```\n{F} [s1].\n```",
    "```text\n{F} [s1].\n```",
    "```\n{F}\n```\n[s1]",
    "```\n{F}\n``` [s1]",
    "```\n{F}.\n{T} [s1].\n```",
    "```\n{F}\n\n{T} [s1].\n```",
    "```\n{T} [s1].\n{F}\n```",
    "{T} [s1].\n```\n{F}\n```",
    "{T}:\n```\n{F}\n```\n[s1]",
    "```{F}``` [s1]",
    "`{F}` {T} [s1].",
    "~~~\n{F} [s1]\n~~~",
    "~~~\n{F}\n~~~\n{T} [s1].",
    "    {F}\n    {T} [s1].",
    "| {F} | {T} |\n|---|---|\n| {T} | [s1] |",
    "| A | B |\n|---|---|\n| {F} | [s1] |",
    "| A | B |\n|---|---|\n| {F} |\n| {T} | [s1] |",
    "# {F}\n{T} [s1].",
    "# {F} [s1]",
    "{F}\n===\n{T} [s1].",
    "{F}:\n- {T} [s1].",
    "- {F}\n- {T} [s1].",
    "1. {F}:\n   - {T} [s1].",
    "> {F}\n> {T} [s1]",
    "{T} `{F}` [s1].",
    "{T} [s1] ```{F}```",
    "```\n{T} `{F} [s1].\n```",
    "| {F} | {T} [s1] |",
    "| {F} | {T} | [s1] |",
    "{T} | {F} | [s1]",
    "**{F}** {T} [s1].",
    "- **{F}**: {T} [s1]",
    "```\n{F}\n```\n\n{T} [s1].",
    "{T} [s1].\n\n```\n{F}\n```\n\n[s1]",
    "```\n{T} [s1]\n{F}\n```\n[s1]",
    "```\n# {F}\n{T} [s1]\n```",
    "```\n{F}:\n{T} [s1]\n```",
    "```\n// {F} [s1]\n```",
    "```\nprint(\"{F}\") # [s1]\n```",
    "```json\n{\"answer\": \"{F}\", \"source\": \"[s1]\"}\n```",
    "```{F}\n{T} [s1].\n```",
    "```\n{F}\n{T} [s1]",
];

#[test]
fn claims_text_in_every_structure_is_verified() {
    let mut failed = Vec::new();
    for (language, spoken, truth, statements) in FALSE_STATEMENTS {
        for (statement, structure) in
            statements.iter().flat_map(|one| STRUCTURES.iter().map(move |of| (one, of)))
        {
            let text = structure.replace("{F}", statement).replace("{T}", truth);
            let response = verified(language, spoken, "Bridge?", &text);
            if fold(&response).contains(&fold(statement)) {
                failed.push(format!("{text:?} -> {response:?}"));
            }
        }
    }
    assert!(failed.is_empty(), "{}:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn claims_true_negations_remain() {
    let sentences = [
        "The bridge was never painted",
        "The bridge was built by hand, and was never painted",
        "It wasn't painted",
    ];
    let failed = unexpected(BRIDGE, "What about the bridge?", &sentences, true);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

proptest! {
    #[test]
    fn claims_inserted_digits_are_always_refused(
        token in prop_oneof![
            "[1-9][0-9]{0,8}", "[0-9]{1,3},[0-9]{3}", "[0-9]{1,3}\\.[1-9]{1,2}", "[A-Z]{1,6}-?[0-9]{2,9}", "[0-9]{2,4}[a-z]{1,3}",
            "[A-Z]{2}[0-9]{2}( [0-9]{4}){2,5}", "\\$[0-9]{2,6}", "[0-9]{2,3} ?%", "\\+[0-9]{2} [0-9]{3} [0-9]{5}", "[٠-٩]{2,6}",
        ],
        at in 0..8_usize,
        step in 1..40_usize,
    ) {
        // The transcript of `verify_text` has one number, 1912.
        let digits: String = token.chars().map(|c| ascii_digit(c).unwrap_or(c)).collect();
        prop_assume!(!["1912", "19", "12"].iter().any(|spoken| digits.contains(spoken)));
        prop_assume!(fold(&token) != fold("s1"));
        let mut words: Vec<&str> = "The old pier broke in one single night".split(' ').collect();
        let at = at.min(words.len());
        words.insert(at, &token);
        let (response, report, _) = verify_text(&format!("{} [s3].", words.join(" ")), step);
        // `S20` names a passage: it is removed from the sentence, which then claims nothing about it.
        let number = token.trim_start_matches(['S', 'P', '-']);
        if number.len() < token.len() && number.chars().all(|c| c.is_ascii_digit()) {
            prop_assert!(!response.contains(&token), "{}: {}", token, response);
        } else {
            prop_assert_eq!(response, "", "{}", token);
            prop_assert_eq!(report.verified, 0);
        }
        prop_assert!(SPOKEN_LINES[2].contains("pier"));
    }
}
