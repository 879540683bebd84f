//! Classifies a question by which passages it needs.

use std::ops::Range;

use super::{
    ChatRole, Passage, Question,
    answer::{NOTHING_FOLLOWS, NOTHING_PRECEDES},
    bm25::Bm25Query,
    common_words::CommonWords,
    generic_words::is_happening_verb,
    search_index::{SearchIndex, query_words},
    video_part::asked_part,
    whole_video::{has_phrase, has_unspaced_words, is_whole},
};

/// Which passages a question needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    /// Passages with the words of the question.
    Words,
    /// The whole video.
    Whole,
    /// The passages of a part of the video, by index.
    Part(Range<usize>),
    /// Everything in the video that has the words of the question.
    List,
    /// Passages after the latest citation of the last answer; its time in milliseconds.
    After(u64),
    /// Passages before the earliest citation of the last answer; its time in milliseconds.
    Before(u64),
    /// The passage at a time of the video, in milliseconds.
    At(u64),
}

/// Beginnings of requests for a list of everything, in lower case.
const LIST_PHRASES: &str = "list all |list every|list each|list the |name all |name every|enumerate |what are all the |\
    liste alle|nenne alle|zähle alle|zähl alle|liste tous|liste toutes|énumère |cite tous|cite toutes|\
    enumera |lista todos|lista todas|liste todos|liste todas|elenca |перечисли|перелічи|назови все|wymień |listele|\
    列出|列举|列舉|すべて挙げて|全部挙げて|列挙して|모두 나열|나열해|اذكر كل|اذكر جميع|सभी बताओ";

/// What speakers list without naming it so, such as decisions. In scripts without spaces a phrase is any part of a
/// text.
const VAGUE_WORDS: &str = "advantages arguments changes claims conclusions decisions disadvantages errors events facts \
    ideas lessons mistakes opinions points problems questions reasons recommendations results rules steps suggestions \
    tips topics entscheidungen probleme fehler gründe tipps schritte regeln argumente themen ergebnisse vorteile \
    nachteile ideen fragen punkte ratschläge décisions problèmes erreurs raisons conseils étapes règles sujets résultats \
    avantages inconvénients idées decisiones problemas errores razones consejos pasos reglas argumentos temas \
    resultados ventajas desventajas preguntas decisões erros razões conselhos passos regras vantagens dicas \
    decisioni problemi errori ragioni consigli passi regole argomenti risultati vantaggi решения проблемы ошибки \
    причины советы шаги правила аргументы темы результаты القرارات النصائح المشاكل الأسباب الأخطاء الخطوات";
const VAGUE_PHRASES: &str =
    "决定|決定|问题|問題|错误|錯誤|原因|理由|建议|建議|步骤|步驟|规则|規則|결정|문제|이유";

/// Words that request what follows, compared with the lower-case words of the question.
const AFTER_WORDS: &str = "after afterwards then next later continue continues dann danach nachher anschließend \
    weiter après ensuite puis después luego entonces depois então dopo poi daarna daarop toen dan vervolgens потом \
    затем дальше далее после потім далі potem następnie dalej sonra ardından sedan sen därefter derefter deretter \
    بعد بعدها ثم फिर बाद μετά έπειτα ύστερα setelah lalu kemudian selanjutnya";
/// The same for scripts without spaces.
const AFTER_PHRASES: &str = "之后|之後|接着|接著|接下来|接下來|然后|然後|后来|後來|その後|この後|そのあと|それから|次に|다음|그 후|그리고 나서|หลังจาก|ต่อไป";
const BEFORE_WORDS: &str = "before beforehand earlier davor vorher zuvor avant antes prima daarvoor раньше \
    перед wcześniej önce قبل πριν sebelum";
const BEFORE_PHRASES: &str = "之前|以前|その前|まえ|전에|ก่อน";

/// The response to a question for what follows or precedes the last answer, if the transcript has nothing there.
pub(super) fn nothing_beyond(question: &Question, passages: &[Passage]) -> Option<&'static str> {
    match continuation(question, &question.message().to_lowercase())? {
        Intent::After(cited_ms) => passages_after(passages, cited_ms).is_empty().then_some(NOTHING_FOLLOWS),
        Intent::Before(cited_ms) => {
            passages_before(passages, cited_ms).is_empty().then_some(NOTHING_PRECEDES)
        }
        _ => None,
    }
}

/// [`Intent::After`] or [`Intent::Before`], if the message, in lower case, requests what follows or precedes the last
/// answer.
fn continuation(question: &Question, message: &str) -> Option<Intent> {
    let (first, last) = last_cited(question)?;
    match () {
        () if has_only(message, AFTER_WORDS, AFTER_PHRASES) => Some(Intent::After(last)),
        () if has_only(message, BEFORE_WORDS, BEFORE_PHRASES) => Some(Intent::Before(first)),
        () => None,
    }
}

/// Indices of the passages after a cited time. Citations have whole seconds.
pub(super) fn passages_after(passages: &[Passage], cited_ms: u64) -> Range<usize> {
    passages.partition_point(|passage| passage.start_ms / 1_000 <= cited_ms / 1_000)..passages.len()
}

/// Indices of the passages before a cited time.
pub(super) fn passages_before(passages: &[Passage], cited_ms: u64) -> Range<usize> {
    0..passages.partition_point(|passage| passage.start_ms / 1_000 < cited_ms / 1_000)
}

/// Classifies a question, given the words of the transcript.
pub(super) fn intent(question: &Question, passages: &[Passage], index: &SearchIndex) -> Intent {
    let message = question.message().to_lowercase();
    if let Some(continuation) = continuation(question, &message) {
        return continuation;
    }
    if let Some(part) = asked_part(&message, passages, index) {
        return Intent::Part(part);
    }
    match () {
        () if is_whole(&message, index) => Intent::Whole,
        () if list_phrase(&message).is_some() => Intent::List,
        () => Intent::Words,
    }
}

/// The request for a list in a message in lower case.
fn list_phrase(message: &str) -> Option<&'static str> {
    LIST_PHRASES.split('|').find(|phrase| has_phrase(message, phrase))
}

/// A request for a list without the words that request it: they are not those of the transcript.
pub(super) fn without_list_phrase(question: &Question) -> Question {
    let message = question.message().to_lowercase();
    let rest = list_phrase(&message).map(|phrase| message.replacen(phrase, " ", 1));
    let rest = rest.and_then(|rest| Question::new(&rest, question.history().to_vec()).ok());
    rest.unwrap_or_else(|| question.clone())
}

/// Whether a request for a list has only words of what speakers list without naming it so.
pub(super) fn names_vaguely(message: &str, index: &SearchIndex) -> bool {
    let is_vague = |word: &str| has_word(VAGUE_WORDS, word.trim_matches(|c: char| !c.is_alphanumeric()));
    let rest: Vec<&str> = message.split_whitespace().filter(|word| !is_vague(word)).collect();
    let rest = VAGUE_PHRASES.split('|').fold(rest.join(" "), |rest, phrase| rest.replace(phrase, " "));
    query_words(&rest, index.common_words(message)).iter().all(|word| index.is_generic(word))
}

pub(super) fn has_word(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|known| known == word)
}

/// Whether a question has one of these words and no other informative word.
fn has_only(message: &str, words: &str, phrases: &str) -> bool {
    // Too short to show its language.
    let mut other_terms = Bm25Query::new(CommonWords::of(""));
    if let Some(phrase) = phrases.split('|').find(|phrase| message.contains(phrase)) {
        let rest = message.replacen(phrase, " ", 1);
        let rest = HAPPENING_PHRASES.split('|').fold(rest, |rest, phrase| rest.replace(phrase, " "));
        other_terms.add(&rest, 1.0);
        return other_terms.informative() <= OTHER_NGRAMS_MAX;
    }
    let mut has_match = false;
    for word in message.split(|c: char| !c.is_alphanumeric()) {
        // "And" is joined to the next word in Arabic.
        if has_word(words, word) || word.strip_prefix('و').is_some_and(|rest| has_word(words, rest)) {
            has_match = true;
        } else if !is_happening_verb(word) {
            other_terms.add(word, 1.0);
        }
    }
    has_match && other_terms.informative() == 0
}

/// Most other informative n-grams in such a question in an unspaced script.
const OTHER_NGRAMS_MAX: usize = 3;

/// What asks what happened and names no subject, in scripts without spaces.
const HAPPENING_PHRASES: &str =
    "发生了什么|發生了什麼|发生什么|發生什麼|何が起きましたか|何が起きた|何が起こりましたか|何が起こった";

/// Words of a question for what is at a time, which name no subject, in lower case.
const TIME_WORDS: &str = "mark minute timestamp describe topic minuten zeitpunkt passiert geschieht passe pasa sucede \
    ocurre minuto acontece passa succede accade minuut gebeurt минута минуте минуту происходит случается dakika \
    dakikada oluyor olur dzieje minuta minucie الدقيقة دقيقة يحدث मिनट होता phút xảy menit terjadi händer";

/// The time of the video that a question asks for, in milliseconds.
///
/// `None` if the question has a word of a subject, if the time is spoken, or if nothing is spoken at it.
pub(super) fn asked_time_ms(message: &str, passages: &[Passage], index: &SearchIndex) -> Option<u64> {
    let mut numbers = message.split(|c: char| !c.is_ascii_digit() && c != ':');
    let (time, time_ms) = numbers.find_map(|number| Some((number, parse_time_ms(number)?)))?;
    // "16:9" is a ratio.
    let is_clock = time.rsplit_once(':').is_some_and(|(_, seconds)| seconds.len() == 2);
    let spoken = passages.first()?.start_ms / 1_000..=passages.last()?.end_ms / 1_000;
    let is_of_video = is_clock
        && !names_subject(&message.replacen(time, " ", 1), index)
        && spoken.contains(&(time_ms / 1_000))
        && !passages.iter().any(|passage| passage.text.contains(time));
    is_of_video.then_some(time_ms)
}

/// Whether a question for a time has a word of a subject beside it.
fn names_subject(rest: &str, index: &SearchIndex) -> bool {
    // Too short to show its language.
    let common = CommonWords::of("");
    if has_unspaced_words(rest) {
        let mut other_terms = Bm25Query::new(common);
        other_terms.add(rest, 1.0);
        return other_terms.informative() > TIME_NGRAMS_MAX;
    }
    let words = query_words(rest, common);
    words.iter().any(|word| index.is_of_subject(word) && !has_word(TIME_WORDS, &word.lower))
}

/// Most informative n-grams beside a time in a question for it, in an unspaced script.
const TIME_NGRAMS_MAX: usize = 8;

/// Earliest and latest time that the last answer cites, in milliseconds; one that there is nothing beyond it is none.
pub(super) fn last_cited(question: &Question) -> Option<(u64, u64)> {
    let is_beyond = |content: &str| [NOTHING_FOLLOWS, NOTHING_PRECEDES].contains(&content);
    let mut answers = question.history().iter().rev().filter(|turn| turn.role == ChatRole::Assistant);
    let answer = answers.find(|turn| !is_beyond(&turn.content))?;
    let times: Vec<u64> = answer.content.split('[').skip(1).filter_map(parse_marker_ms).collect();
    Some((*times.iter().min()?, *times.iter().max()?))
}

/// Longest time marker with its closing bracket, in bytes.
const MARKER_BYTES_MAX: usize = 12;

/// Parses a time marker, `m:ss` or `h:mm:ss`, up to its closing bracket.
fn parse_marker_ms(text: &str) -> Option<u64> {
    let end = text.bytes().take(MARKER_BYTES_MAX).position(|byte| byte == b']')?;
    parse_time_ms(text.get(..end)?)
}

/// Parses a time, `m:ss` or `h:mm:ss`.
fn parse_time_ms(time: &str) -> Option<u64> {
    let mut seconds: u64 = 0;
    let mut parts = 0;
    for part in time.split(':') {
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
        chat::{ChatTurn, passages},
        transcript::Segment,
    };

    fn check(answered: Option<&str>, message: &str, expect: Intent) {
        let history = answered.map(|text| ChatTurn { role: ChatRole::Assistant, content: text.to_owned() });
        let question = Question::new(message, history.into_iter().collect()).unwrap();
        let transcript_passages = passages(&[Segment::new(
            "Volcanoes in Iceland, and why the sky is blue in three colours.",
            0,
            1,
        )]);
        let index = SearchIndex::new(&transcript_passages);
        assert_eq!(intent(&question, &transcript_passages, &index), expect, "{message}");
    }

    #[test]
    fn intent_summary_request_is_recognized_in_many_languages() {
        for message in [
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
            "Nenne die wichtigsten Punkte",
            "Summarise the meeting",
            "Sammanfatta videon",
            "Give me the gist",
            "Eine Kurzzusammenfassung, bitte",
            "What is the topic?",
            "Sum it up",
            "Can you sum this up for me?",
            "Um was geht es?",
            "De quoi s'agit-il ?",
            "De quoi ça parle ?",
            "¿Cuál es el tema?",
            "¿De qué se trata?",
            "Bu video ne anlatıyor?",
            "यह वीडियो किसके बारे में है?",
            "मुख्य बातें बताओ",
            "영상 내용이 뭐예요?",
            "视频的主题是什么？",
            "内容を教えて",
        ] {
            check(None, message, Intent::Whole);
        }
        for message in [
            "List all volcanoes",
            "Énumère tous les volcans",
            "Nenne alle Vulkane",
            "列出所有的火山",
            "Перечисли вулканы",
        ] {
            check(None, message, Intent::List);
        }
        for message in [
            "Why is the sky blue?",
            "Summarise the part on volcanoes",
            "What did the geologist say?",
            "Who is the psychologist?",
            "Who was the magistrate?",
            "C'est quoi la photosynthèse ?",
            "Was he presumed dead?",
            "How did they enlist the help of farmers?",
        ] {
            check(None, message, Intent::Words);
        }
    }

    #[test]
    fn intent_after_and_before_use_last_answer() {
        let answered = Some("“Boil it.” [1:05] and [1:02:03], [99] [x:1] [");
        check(answered, "And after that?", Intent::After(3_723_000));
        check(answered, "Und danach?", Intent::After(3_723_000));
        check(answered, "然后呢？", Intent::After(3_723_000));
        check(answered, "What came before?", Intent::Before(65_000));
        check(answered, "What happens after the harvest festival?", Intent::Words);
        for message in [
            "and then?",
            "And then what happened?",
            "Und dann?",
            "Was passierte danach?",
            "Et après ?",
            "Et puis ?",
            "¿Y luego?",
            "¿Qué pasó después?",
            "¿Y entonces?",
            "E depois?",
            "E então?",
            "E poi?",
            "En toen?",
            "И что потом?",
            "А дальше?",
            "Peki sonra?",
            "Sonra ne oldu?",
            "وماذا بعد؟",
            "وبعد ذلك؟",
            "ثم ماذا؟",
            "और फिर?",
            "उसके बाद?",
            "その後は？",
            "それから？",
            "接下来呢？",
            "后来发生了什么？",
            "그 다음은?",
            "그리고 나서?",
        ] {
            check(answered, message, Intent::After(3_723_000));
        }
        check(answered, "Und dann in Wien?", Intent::Words);
        check(None, "And after that?", Intent::Words);
        check(Some("nothing cited"), "And then?", Intent::Words);
    }
}
