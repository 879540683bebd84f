//! What kind of question it is, as far as that changes which passages are wanted.

use super::{
    Passage, Question, Role,
    rank::{Query, best, rank},
};

/// Which passages a question wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    /// Those with the words of the question.
    Words,
    /// The whole video.
    Whole,
    /// What comes after the moment that was cited last, in milliseconds.
    After(u64),
    /// What comes before the moment that was cited first, in milliseconds.
    Before(u64),
}

/// Pieces of questions about a whole video, in lower case.
const WHOLE: &[&str] = &[
    "summar",
    "overview",
    "tl;dr",
    "tldr",
    "main point",
    "key point",
    "main idea",
    "key idea",
    "main topic",
    "takeaway",
    "gist",
    "nutshell",
    "outline",
    "recap",
    "video about",
    "talk about?",
    "lecture about",
    "this about",
    "it about",
    "zusammenfass",
    "fass ",
    "fasse",
    "worum geht",
    "hauptpunkt",
    "überblick",
    "kernaussage",
    "wovon handelt",
    "résum",
    "de quoi parle",
    "points clés",
    "points principaux",
    "en bref",
    "sur quoi porte",
    "resúm",
    "resum",
    "de qué trata",
    "de que trata",
    "puntos clave",
    "puntos principales",
    "do que se trata",
    "sobre o que",
    "principais pontos",
    "riassu",
    "di cosa parla",
    "di che cosa",
    "punti chiave",
    "samenvat",
    "waar gaat",
    "кратко",
    "о чём",
    "о чем",
    "резюм",
    "перескаж",
    "главн",
    "підсум",
    "про що",
    "podsum",
    "streść",
    "o czym jest",
    "özet",
    "ne hakkında",
    "ringkas",
    "tentang apa",
    "tóm tắt",
    "nói về gì",
    "περίληψη",
    "σύνοψ",
    "सारांश",
    "किस बारे",
    "لخص",
    "ملخص",
    "عن ماذا",
    "总结",
    "總結",
    "概括",
    "摘要",
    "主要内容",
    "主要內容",
    "讲了什么",
    "講了什麼",
    "关于什么",
    "要約",
    "まとめ",
    "概要",
    "何について",
    "どんな内容",
    "요약",
    "정리해",
    "무엇에 관한",
    "어떤 내용",
    "สรุป",
    "เกี่ยวกับอะไร",
];

/// Words that ask for what follows, folded as pieces of the lower-case question between spaces.
const AFTER: &[&str] = &[
    "after",
    "afterwards",
    "then",
    "next",
    "later",
    "continue",
    "continues",
    "danach",
    "nachher",
    "anschließend",
    "weiter",
    "après",
    "ensuite",
    "puis",
    "después",
    "luego",
    "depois",
    "dopo",
    "poi",
    "daarna",
    "daarop",
    "потом",
    "затем",
    "дальше",
    "после",
    "potem",
    "następnie",
    "sonra",
    "بعد",
    "μετά",
    "setelah",
    "lalu",
];
/// The same where no spaces are written.
const AFTER_RUNS: &[&str] = &[
    "之后",
    "之後",
    "接着",
    "接著",
    "然后",
    "然後",
    "后来",
    "後來",
    "その後",
    "そのあと",
    "それから",
    "次に",
    "다음",
    "그 후",
    "หลังจาก",
    "ต่อไป",
];
const BEFORE: &[&str] = &[
    "before",
    "beforehand",
    "earlier",
    "davor",
    "vorher",
    "zuvor",
    "avant",
    "antes",
    "prima",
    "daarvoor",
    "раньше",
    "перед",
    "wcześniej",
    "önce",
    "قبل",
    "πριν",
    "sebelum",
];
const BEFORE_RUNS: &[&str] = &["之前", "以前", "その前", "まえ", "전에", "ก่อน"];

/// What a question wants of these passages.
pub(super) fn intent(question: &Question, passages: &[Passage]) -> Intent {
    let asked = question.message().to_lowercase();
    if let Some((first, last)) = last_cited(question) {
        if asks_only(&asked, AFTER, AFTER_RUNS) {
            return Intent::After(last);
        }
        if asks_only(&asked, BEFORE, BEFORE_RUNS) {
            return Intent::Before(first);
        }
    }
    if is_whole(&asked, passages) { Intent::Whole } else { Intent::Words }
}

/// Whether a question is about everything: it has a piece that says so, and no other word of the transcript.
fn is_whole(asked: &str, passages: &[Passage]) -> bool {
    let Some(piece) = WHOLE.iter().find(|piece| asked.contains(**piece)) else { return false };
    let mut rest = Query::default();
    if asked.chars().any(|c| c >= '\u{E00}') {
        // Where words are not told apart, a short request is one for all.
        rest.add(&asked.replacen(piece, " ", 1), 1.0);
        return rest.telling() <= RUNS_MAX;
    }
    let piece: Vec<&str> = piece.split_whitespace().collect();
    let is_of_piece = |word: &str| piece.iter().any(|part| word.contains(part));
    for word in asked.split_whitespace().filter(|word| !is_of_piece(word) && !is_form(word)) {
        rest.add_telling(word);
    }
    best(&rank(passages, &rest)).is_empty()
}

/// How many telling runs of letters a request has at most that is taken for one for all.
const RUNS_MAX: usize = 10;

/// Whether a word only says in which form an answer is wanted.
fn is_form(word: &str) -> bool {
    const FORMS: &[&str] = &[
        "short",
        "brief",
        "briefly",
        "shortly",
        "quick",
        "quickly",
        "one",
        "two",
        "three",
        "four",
        "five",
        "ten",
        "sentence",
        "sentences",
        "paragraph",
        "paragraphs",
        "word",
        "words",
        "bullet",
        "bullets",
        "list",
        "whole",
        "entire",
        "full",
        "lecture",
        "episode",
        "recording",
        "main",
        "key",
        "kurz",
        "zusammen",
        "ganze",
        "satz",
        "sätzen",
        "phrases",
        "frases",
        "frasi",
        "court",
        "breve",
    ];
    FORMS.contains(&word.trim_matches(|c: char| !c.is_alphanumeric()))
}

/// Whether a question has one of these words, and no other that says anything.
fn asks_only(asked: &str, words: &[&str], runs: &[&str]) -> bool {
    let mut rest = Query::default();
    if let Some(run) = runs.iter().find(|run| asked.contains(**run)) {
        rest.add(&asked.replacen(run, " ", 1), 1.0);
        return rest.telling() <= BESIDE_RUNS_MAX;
    }
    let mut has_one = false;
    for word in asked.split(|c: char| !c.is_alphanumeric()) {
        if words.contains(&word) {
            has_one = true;
        } else {
            rest.add(word, 1.0);
        }
    }
    has_one && rest.telling() == 0
}

/// How many telling runs of letters such a question has at most beside the one that asks.
const BESIDE_RUNS_MAX: usize = 3;

/// The earliest and the latest moment that the last answer cites, in milliseconds.
pub(super) fn last_cited(question: &Question) -> Option<(u64, u64)> {
    let answer = question.history().iter().rev().find(|turn| turn.role == Role::Assistant)?;
    let moments: Vec<u64> = answer.content.split('[').skip(1).filter_map(moment_ms).collect();
    Some((*moments.iter().min()?, *moments.iter().max()?))
}

/// The longest marker, with its closing bracket.
const MARKER_BYTES_MAX: usize = 12;

/// The moment of a marker, `m:ss` or `h:mm:ss`, up to its closing bracket.
fn moment_ms(text: &str) -> Option<u64> {
    let end = text.bytes().take(MARKER_BYTES_MAX).position(|byte| byte == b']')?;
    let marker = text.get(..end)?;
    let mut seconds: u64 = 0;
    let mut parts = 0;
    for part in marker.split(':') {
        let is_number = (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        seconds = seconds * 60 + part.parse::<u64>().ok().filter(|_| is_number)?;
        parts += 1;
    }
    (parts == 2 || parts == 3).then_some(seconds.saturating_mul(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        chat::{Turn, passages},
        transcript::Segment,
    };

    fn check(answered: Option<&str>, asked: &str, expect: Intent) {
        let history = answered.map(|text| Turn { role: Role::Assistant, content: text.to_owned() });
        let question = Question::new(asked, history.into_iter().collect()).unwrap();
        let talk = passages(&[Segment::new(
            "Volcanoes in Iceland, and why the sky is blue in three colours.",
            0,
            1,
        )]);
        assert_eq!(intent(&question, &talk), expect, "{asked}");
    }

    #[test]
    fn a_question_about_everything_is_known_in_many_languages() {
        for asked in [
            "Summarise the video",
            "Give me a summary, please.",
            "What is this video about?",
            "TL;DR",
            "Main points?",
            "Summarize it in three short sentences",
            "Fasse das Video zusammen",
            "Worum geht es hier?",
            "Résume la vidéo",
            "De quoi parle cette vidéo ?",
            "¿De qué trata el video?",
            "О чём это видео?",
            "总结一下这个视频",
            "この動画を要約して",
            "이 영상 요약해줘",
            "สรุปวิดีโอ",
        ] {
            check(None, asked, Intent::Whole);
        }
        for asked in ["Why is the sky blue?", "Summarise the part on volcanoes"] {
            check(None, asked, Intent::Words);
        }
    }

    #[test]
    fn what_follows_is_told_from_the_last_answer() {
        let answered = Some("“Boil it.” [1:05] and [1:02:03], [99] [x:1] [");
        check(answered, "And after that?", Intent::After(3_723_000));
        check(answered, "Und danach?", Intent::After(3_723_000));
        check(answered, "然后呢？", Intent::After(3_723_000));
        check(answered, "What came before?", Intent::Before(65_000));
        check(answered, "What happens after the harvest festival?", Intent::Words);
        check(None, "And after that?", Intent::Words);
        check(Some("nothing cited"), "And then?", Intent::Words);
    }
}
