//! Questions about a whole video: its summary, its subject, its main points.

use super::{
    bm25::Bm25Query,
    intent::has_word,
    search_index::{QueryWord, SearchIndex, query_words},
};
use crate::transcript::{
    is_unspaced,
    script::{Script, char_script},
};

/// Phrases of questions about a whole video, in lower case, by language. In scripts with spaces they begin a word, but
/// for those with an asterisk before them. One with `^` before it begins the message, one with `?` behind it ends it.
const WHOLE_VIDEO_PHRASES: [&str; 21] = [
    "summar|overview|tl;dr|tldr|main point|key point|main idea|key idea|main topic|takeaway|gist|highlights|what does he talk|what does she talk|what do they talk|\
     nutshell|outline|recap|video about|talk about?|*s the talk about|*s this talk about|lecture about|\
     this about|it about|*s the topic?|*s the subject?|topic of this|topic of the video|topic of the talk|\
     subject of this|subject of the video|subject of the talk|sum it up|sum this up|sum that up|sum up the|sum up this",
    "*zusammenfass|fass |fasse|worum geht|um was geht|hauptpunkt|*überblick|kernaussage|wovon handelt|wichtigsten punkte|kurzfassung|worüber spricht|worüber reden|worüber sprechen|ist das thema|hauptaussage",
    "résum|de quoi parle|de quoi ça parle|de quoi ca parle|de quoi s'agit|de quoi s’agit|est le sujet?|quoi le sujet?|\
     points clés|points principaux|principaux points|en bref|sur quoi porte|idées principales|synthèse|de quoi est-il question|sujet de la vidéo|sujet de cette vidéo",
    "resúm|resum|de qué trata|de que trata|puntos clave|puntos principales|principales puntos|ideas principales|de qué habla|de que habla|de qué va|sobre qué habla|\
     de que va el|de que va la|de que va est|de que va?|tema del vídeo|tema del video|\
     es el tema?|de qué se trata|de que se trata",
    "do que se trata|sobre o que|principais pontos|é o tema?|é o assunto?|tema do vídeo|assunto do vídeo",
    "riassu|di cosa parla|di che cosa|punti chiave|punti principali|sintesi|\
     di cosa si tratta|di che parla|è il tema?|è l'argomento?|è l’argomento?",
    "samenvat|waar gaat|hoofdpunten|belangrijkste punten|is het onderwerp?",
    "sammanfatta|vad handlar|opsummer|oppsummer|hvad handler|hva handler|är ämnet?|er emnet?|er temaet?",
    "кратко|о чём|о чем|про что|*резюм|перескаж|пересказ|главн|какая тема?|какова тема?|тема видео|тема лекции",
    "підсум|про що|яка тема?|тема відео",
    "podsum|streść|o czym jest|główne punkty|o czym mowa|jest temat?|temat filmu",
    "özet|ne hakkında|ne anlatıyor|konusu ne|konu ne?|konu nedir?",
    "*ringkas|tentang apa|apa topiknya|apa temanya|membahas apa",
    "tóm tắt|nói về gì|chủ đề là gì|chủ đề của video",
    "περίληψη|σύνοψ|είναι το θέμα?|θέμα του βίντεο",
    "सारांश|किस बारे|किसके बारे|मुख्य बात|मुख्य बिंदु|विषय क्या है?",
    "لخص|ملخص|عن ماذا|عم يتحدث|عم تتحدث|موضوع الفيديو|ما الموضوع?|ما هو الموضوع?",
    "总结|總結|概括|摘要|主要内容|主要內容|讲了什么|講了什麼|关于什么|讲的是什么|說了什麼|说了什么|说了些什么|介绍一下内容|\
     视频的主题|视频主题|影片的主題|影片主題|^主题是什么|^主題是什麼",
    "要約|まとめ|概要|何について|どんな内容|何の話|どんな話|動画の内容|テーマは|^内容を教えて|^内容は何",
    "요약|정리해|무엇에 관한|어떤 내용|영상 내용|영상의 내용|^무슨 내용|^내용이 뭐|^내용을 알려|^주제가 뭐|^주제는 뭐",
    "สรุป|เกี่ยวกับอะไร|วิดีโอพูดถึงอะไร|วิดีโอนี้พูดถึงอะไร|คลิปนี้พูดถึงอะไร|^หัวข้อคืออะไร",
];

/// Words for a summary, in lower case: what asks for one has them, and little else has. In scripts with spaces they
/// begin a word.
const SUMMARY_PHRASES: &str = "summar|tl;dr|tldr|recap|zusammenfass|fass den|fass das|fass die|fass mir|fasse |kurzfassung|résum|synthèse|resúm|resumen|\
    resumir|resume el|resume la|resume en|riassu|samenvat|sammanfatta|opsummer|oppsummer|резюм|перескаж|пересказ|\
    краткое содержание|підсум|podsum|streść|özetle|ringkas|tóm tắt|περίληψη|सारांश|لخص|لخّص|تلخيص|ملخص|总结|總結|概括|摘要|要約|\
    まとめ|요약|สรุป";
/// Words that limit a summary to a part of the video.
const PART_PHRASES: &str = "part |section|chapter|teil |abschnitt|kapitel|partie|passage|parte |capít|част|глав|раздел|الجزء|部分|章";

/// Another video than this one, in lower case.
const OTHER_VIDEO_PHRASES: &str = "next video|next episode|next lecture|next talk|previous video|previous episode|other video|\
    another video|nächste folge|nächsten folge|nächste video|nächsten video|vorigen video|vorigen folge|\
    prochaine vidéo|prochain épisode|vidéo suivante|próximo vídeo|próximo video|próximo episodio|próximo episódio|\
    siguiente video|siguiente vídeo|prossimo video|prossima puntata|prossimo episodio|volgende video|\
    volgende aflevering|следующее видео|следующем видео|следующей серии|следующем выпуске|sonraki video|\
    następnym filmie|następny film|الفيديو القادم|الفيديو التالي|अगले वीडियो|下一个视频|下个视频|下一期|上一期|\
    次の動画|次回の|다음 영상|다음 편";

/// What is important, and what a video has of it: a question with both is about the whole video. By language; an
/// asterisk ends the beginning of a word. In scripts without spaces a phrase is any part of a text.
const MAIN_POINTS: [(&str, &str); 11] = [
    (
        "main|key|important|central|essential|biggest",
        "point|points|idea|ideas|message|messages|argument|arguments|insight|insights|lesson|lessons|topic|topics|\
         theme|themes|statement|statements|fact|facts|finding|findings",
    ),
    (
        "wichtig*|zentral*|wesentlich*|haupt*|entscheidend*",
        "punkt|punkte|punkten|aussage|aussagen|erkenntnis*|idee|ideen|gedanke*|these|thesen|thema|themen|inhalt*|fakten",
    ),
    (
        "important*|principa*|essentiel*|clé|clés|majeur*",
        "point|points|idée|idées|message|messages|information*|sujet|sujets|argument*|enseignement*",
    ),
    (
        "important*|principal*|clave|esencial*|central*",
        "punto|puntos|idea|ideas|mensaje|mensajes|tema|temas|argumento*|conclusion*",
    ),
    ("important*|principa*|essencia*|centra*", "ponto|pontos|ideia|ideias|mensagem|mensagens|tema|temas"),
    (
        "important*|principal*|essenzial*|central*",
        "punto|punti|idea|idee|messaggio|messaggi|tema|temi|concett*",
    ),
    ("belangrijk*|hoofd*|kern*", "punt|punten|idee|ideeën|boodschap|onderwerp*"),
    ("основн*|главн*|важн*|ключев*", "мысл*|тезис*|идея|идеи|идей|момент*|пункт*|тема|темы|вывод*"),
    ("أهم|الرئيسية|الأساسية|الرئيسي|الأساسي", "النقاط|نقاط|الأفكار|أفكار|الفكرة|الموضوع|المواضيع"),
    ("主要|重要|核心|最大|关键|關鍵", "观点|觀點|内容|內容|重点|重點|要点|要點|观念|思想|信息"),
    ("大切|重要|主な|一番", "ポイント|点|内容|話|メッセージ|考え"),
];
/// The same in one phrase, in scripts without spaces.
const MAIN_POINT_PHRASES: &str =
    "要点|要點|重点是什么|重點是什麼|哪些重点|哪些重點|要旨|ポイントは|ポイントを|핵심|요점|주요 내용|ประเด็น";

/// Whether a question is about the whole video.
///
/// It then has one of [`WHOLE_VIDEO_PHRASES`] and no other word of the transcript that is not generic, or asks for the
/// main points, and has no other word that is not generic.
pub(super) fn is_whole(message: &str, index: &SearchIndex) -> bool {
    !names_other_video(message) && (has_whole_phrase(message, index) || asks_for_main_points(message, index))
}

/// Whether a request has a word for a summary, and does not limit it to a part of the video, or mean another
/// video.
pub(super) fn asks_for_summary(message: &str) -> bool {
    let message = message.to_lowercase();
    let is_request = |phrase: &str| message.match_indices(phrase).any(|(at, _)| begins_word(&message, at));
    SUMMARY_PHRASES.split('|').any(is_request)
        && !PART_PHRASES.split('|').any(|phrase| message.contains(phrase))
        && !names_other_video(&message)
}

/// Whether a message in lower case names another video than this one.
fn names_other_video(message: &str) -> bool {
    OTHER_VIDEO_PHRASES.split('|').any(|phrase| message.contains(phrase))
}

/// Whether a message has a phrase that begins a word; in a script without spaces, anywhere.
pub(super) fn has_phrase(message: &str, phrase: &str) -> bool {
    message.match_indices(phrase).any(|(at, _)| begins_word(message, at) || has_unspaced_words(message))
}

/// Whether a word begins here, perhaps behind the prefixes that Arabic joins to it.
fn begins_word(message: &str, at: usize) -> bool {
    let before = message.get(..at).unwrap_or_default();
    let prefix = before.rsplit(|c: char| !c.is_alphanumeric() || is_unspaced(c)).next().unwrap_or_default();
    matches!(prefix, "" | "ال" | "و" | "ب" | "ل" | "لل" | "وال" | "بال")
}

fn has_whole_phrase(message: &str, index: &SearchIndex) -> bool {
    let mut phrases = WHOLE_VIDEO_PHRASES.iter().flat_map(|phrases| phrases.split('|'));
    let Some(phrase) = phrases.find_map(|listed| find_phrase(message, listed)) else { return false };
    if has_unspaced_words(message) {
        // Without word boundaries, a short request counts as one about the whole video.
        let mut other_terms = Bm25Query::new(index.common_words(message));
        other_terms.add(&message.replacen(phrase, " ", 1), 1.0);
        return other_terms.informative() <= NGRAMS_MAX;
    }
    let phrase: Vec<&str> = phrase.split_whitespace().collect();
    let is_part_of_phrase = |word: &str| {
        phrase.iter().any(|part| match phrase.len() > 1 && part.chars().count() <= SHORT_LETTERS_MAX {
            true => trimmed(word) == *part,
            false => word.contains(part),
        })
    };
    let is_spoken = |word: &QueryWord| !index.is_generic(word) && !index.forms(word).is_empty();
    !other_words(message, index, is_part_of_phrase).iter().any(is_spoken)
}

/// A phrase of [`WHOLE_VIDEO_PHRASES`] without the signs around it, if a message has it.
fn find_phrase(message: &str, listed: &'static str) -> Option<&'static str> {
    let phrase = listed.strip_suffix('?').unwrap_or(listed);
    let is_last = phrase.len() < listed.len();
    let (phrase, is_found) = match (phrase.strip_prefix('*'), phrase.strip_prefix('^')) {
        (Some(phrase), _) => (phrase, message.contains(phrase)),
        (None, Some(phrase)) => (phrase, message.starts_with(phrase)),
        (None, None) => (phrase, has_phrase(message, phrase)),
    };
    let is_at_end = || message.trim_end_matches(|c: char| !c.is_alphanumeric()).ends_with(phrase);
    (is_found && (!is_last || is_at_end())).then_some(phrase)
}

fn asks_for_main_points(message: &str, index: &SearchIndex) -> bool {
    if has_unspaced_words(message) {
        let find = |phrases: &'static str| phrases.split('|').find(|phrase| message.contains(phrase));
        let mut pairs = MAIN_POINTS.iter().map(|(main, points)| Some((find(main)?, find(points)?)));
        let pair = pairs.find_map(|pair| pair).or_else(|| find(MAIN_POINT_PHRASES).map(|one| (one, one)));
        return pair.is_some_and(|(main, point)| {
            let rest = message.replace(main, " ").replace(point, " ");
            let words = query_words(&rest, index.common_words(message));
            let others: Vec<_> = words.iter().filter(|word| !index.is_generic(word)).collect();
            let is_spoken = |word: &QueryWord| word.folded.chars().count() > 1 && index.exact(word).is_some();
            others.len() <= MAIN_POINT_NGRAMS_MAX && !others.into_iter().any(is_spoken)
        });
    }
    MAIN_POINTS.iter().any(|(main, points)| {
        let is_one = |phrases: &str, word: &str| {
            let word = trimmed(word);
            phrases.split('|').any(|phrase| match phrase.strip_suffix('*') {
                Some(beginning) => word.starts_with(beginning),
                None => word == phrase,
            })
        };
        let has_one = |phrases: &str| message.split_whitespace().any(|word| is_one(phrases, word));
        let is_either = |word: &str| is_one(main, word) || is_one(points, word);
        let is_other = |word: &QueryWord| !index.is_generic(word);
        has_one(main) && has_one(points) && !other_words(message, index, is_either).iter().any(is_other)
    })
}

/// Whether a request is in a script without spaces between words, or in Korean, whose words have endings.
pub(super) fn has_unspaced_words(message: &str) -> bool {
    message.chars().any(|c| is_unspaced(c) || char_script(c) == Script::Hangul)
}

/// The words of a request that are neither part of its phrase nor about the form of the answer.
pub(super) fn other_words(
    message: &str,
    index: &SearchIndex,
    is_part: impl Fn(&str) -> bool,
) -> Vec<QueryWord> {
    let common = index.common_words(message);
    let words = message.split_whitespace().filter(|word| !is_part(word) && !describes_form(word));
    words.flat_map(|word| query_words(word, common)).filter(|word| !word.is_common).collect()
}

/// A word of a phrase with at most this many letters is no part of another word.
const SHORT_LETTERS_MAX: usize = 3;
/// Most informative n-grams in an unspaced request that counts as one about the whole video.
const NGRAMS_MAX: usize = 10;
/// The same of a request for the main points.
const MAIN_POINT_NGRAMS_MAX: usize = 6;

/// A word without the punctuation around it.
fn trimmed(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

/// Whether a word only describes the form of the answer, or requests it.
fn describes_form(word: &str) -> bool {
    const FORM_WORDS: &str = "short brief briefly shortly quick quickly one two three four five ten sentence \
        sentences paragraph paragraphs word words bullet bullets list whole entire full lecture episode \
        recording meeting talk conversation interview podcast discussion presentation speech session webinar film \
        main key point points gespräch vortrag sitzung video videos réunion conférence conversación reunión conferencia kurz \
        zusammen ganze satz sätzen punkten phrases frases frasi court breve vidéo vídeo charla sesión рассказ лекция \
        лекции видео фильм предложениях пунктах الفيديو المحاضرة جمل \
        whats want need möchte brauche will gib mir bitte rede veux voudrais donne donne-moi donnez-moi fais fais-moi \
        discours entretien quiero quisiera necesito dame deme haz hazme entrevista discurso quero queria preciso \
        palestra conversa voglio vorrei dammi fammi conferenza discorso intervista wil geef maak gesprek lezing \
        хочу дай дайте сделай нужно разговор лекцию беседу chcę daj proszę istiyorum ver أريد اريد أعطني اعطني \
        أعطيني اعطيني أرجو الحديث الكلام المقطع المقابلة वीडियो बताओ बताइए";
    has_word(FORM_WORDS, trimmed(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{chat::passages, transcript::Segment};

    fn check(spoken: &str, message: &str, expect: bool) {
        let index = SearchIndex::new(&passages(&[Segment::new(spoken, 0, 1)]));
        assert_eq!(is_whole(&message.to_lowercase(), &index), expect, "{message}");
    }

    #[test]
    fn whole_video_main_points_are_requested_in_many_words() {
        let english = "the volcanoes were the first thing that they saw, and in the end all of them left";
        for (spoken, message, expect) in [
            (english, "What are the most important points?", true),
            (english, "Give me the highlights", true),
            (english, "What are the key points about volcanoes?", false),
            (english, "What are the main arguments against nuclear power?", false),
            (english, "What’s the main argument against nuclear power?", false),
            (
                "wir haben die Vulkane gesehen und sind dann weiter",
                "Was sind die wichtigsten Aussagen?",
                true,
            ),
            ("nous avons vu les volcans et puis on est partis", "Quels sont les points importants ?", true),
            ("nous avons vu les volcans et puis on est partis", "Quels volcans sont importants ?", false),
            (
                "vimos los volcanes y luego nos fuimos de la isla",
                "¿Cuáles son los puntos más importantes?",
                true,
            ),
            ("мы видели вулканы и потом ушли с острова", "Какие основные мысли?", true),
            ("мы видели вулканы и потом ушли с острова", "Какие основные вулканы?", false),
            ("رأينا البراكين ثم ذهبنا من الجزيرة إلى البيت", "ما هي أهم النقاط؟", true),
            ("我们看到了火山，然后离开了", "要点是什么？", true),
            ("我们看到了火山，然后离开了", "火山的要点是什么？", false),
            ("火山を見て、それから帰りました", "要点を教えて", true),
        ] {
            check(spoken, message, expect);
        }
    }

    #[test]
    fn whole_video_summary_is_requested_in_any_words() {
        let english =
            "they want to talk about the volcanoes with Dale, and he gives them the words that they need";
        let spanish = "quiero que la charla de hoy sea sobre los volcanes y no sobre el resto de la isla";
        let arabic = "أريد أن أعطيكم في هذا الحديث كل ما رأينا من البراكين ثم ذهبنا إلى البيت";
        for (spoken, message, expect) in [
            (english, "what is the talk about", true),
            (english, "whats this talk about", true),
            (english, "I need a summary", true),
            (english, "what did they talk about with Dale", false),
            (english, "what is the talk about volcanoes", false),
            (spanish, "de que va el video", true),
            (spanish, "de que va la charla", true),
            (spanish, "quiero un resumen", true),
            (spanish, "quiero un resumen de los volcanes", false),
            (arabic, "لخصي الحديث", true),
            (arabic, "أعطني ملخصا", true),
            (arabic, "أريد ملخصا", true),
            (arabic, "أريد ملخصا عن البراكين", false),
        ] {
            check(spoken, message, expect);
        }
    }

    #[test]
    fn whole_video_topic_of_something_else_is_ordinary() {
        let english = "in the second chapter of her book she writes about the volcanoes that they saw there";
        let spanish = "quiero que la charla de hoy sea sobre los volcanes";
        let japanese = "契約の内容を教えてもらって、それから帰りました";
        for (spoken, message, expect) in [
            (english, "What is the topic?", true),
            (english, "Whats the topic", true),
            (english, "What is the topic of this talk?", true),
            (english, "Can you sum this up for me?", true),
            (english, "What is the topic of the second chapter of her book?", false),
            (english, "Who was the subject of her book?", false),
            (english, "Sum up the second chapter", false),
            (japanese, "契約の内容を教えて", false),
            (japanese, "内容を教えて", true),
            (spanish, "¿De qué se trata?", true),
            (spanish, "¿Es el tema de los volcanes?", false),
        ] {
            check(spoken, message, expect);
        }
    }

    #[test]
    fn whole_video_question_about_other_video_is_ordinary() {
        let english = "the volcanoes were the first thing that they saw, and in the end all of them left";
        let german = "wir haben die Vulkane gesehen und sind dann weiter";
        for (spoken, message, expect) in [
            (english, "What is the next video about?", false),
            (english, "What are the main points of the previous episode?", false),
            (english, "What is the video about?", true),
            (german, "Worum geht es in der nächsten Folge?", false),
            (german, "Worum geht es in der Folge?", true),
            ("我们看到了火山，然后离开了", "下一个视频讲了什么？", false),
        ] {
            check(spoken, message, expect);
        }
    }

    #[test]
    fn whole_video_summary_of_part_is_not_one_of_video() {
        for (message, expect) in [
            ("Gib mir eine Zusammenfassung", true),
            ("请用三句话总结一下", true),
            ("Fasse den Abschnitt über Vulkane zusammen", false),
            ("Who was in summer school?", false),
            ("When did the talks resume after the war?", false),
            ("Wie viel Liter hat ein Fass Bier?", false),
            ("ما هو الخصم على التذاكر؟", false),
            ("ما هي الخصائص؟", false),
            ("What is on the register?", false),
            ("أعطني الملخص", true),
        ] {
            assert_eq!(asks_for_summary(message), expect, "{message}");
        }
    }
}
