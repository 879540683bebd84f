//! "Ask this video" on the page of a transcript: the form, and an answer without scripts.

use maud::{Markup, html};
use transcript_core::{
    archive::StoredTranscript,
    chat::{MESSAGE_CHARS_MAX, VerifiedAnswer},
};

use super::{
    PageContext,
    assets::{QUESTION_SCRIPT, WIDGET, WORKER},
    moment::parse_moment,
    transcript::paragraph_at,
};

const SCRIPT_MESSAGES: [(&str, &str); 6] = [
    ("solving", "script.solving"),
    ("thinking", "ask.thinking"),
    ("unsolved", "script.unsolved"),
    ("lost", "ask.lost"),
    ("notCovered", "ask.not_covered"),
    ("watch", "ask.watch"),
];

/// A question that was sent without scripts, and its answer.
#[derive(Clone, Debug)]
pub(crate) struct PageAnswer {
    pub(crate) question: String,
    /// The answer, or why there is none.
    pub(crate) outcome: Result<VerifiedAnswer, String>,
}

/// The form, and the answer if there is one. `name` is the relative address of the page, and `query` its parameters.
pub(super) fn section(
    context: &PageContext,
    stored: &StoredTranscript,
    (name, query): (&str, &str),
    page_answer: Option<&PageAnswer>,
) -> Markup {
    let per_day = context.site().questions_per_day;
    let limit = [("limit", context.number(per_day.into()))];
    let limit = limit.each_ref().map(|(name, value)| (*name, value.as_str()));
    let asset = |name: &str| format!("{}assets/{name}", context.root());
    html! {
        @if per_day > 0 {
            details.questions #questions open[page_answer.is_some()] {
                summary { (context.text("ask.title")) }
                form.find method="post" action={ (name) "/ask" (query) }
                    data-script=(asset(&QUESTION_SCRIPT.name))
                    data-challenge={ (name) "/challenge" } data-widget=(asset(&WIDGET.name))
                    data-worker=(asset(&WORKER.name)) data-texts=(context.json(&SCRIPT_MESSAGES))
                    data-address=(stored.transcript.video.address()) {
                    label for="question" { (context.text("ask.label")) }
                    div.row {
                        input #question name="question" type="text" autocomplete="off" required dir="auto"
                            maxlength=(MESSAGE_CHARS_MAX) value=[page_answer.map(|page_answer| page_answer.question.as_str())]
                            aria-describedby="question-hint";
                        button type="submit" { (context.text("ask.submit")) }
                    }
                    p.hint #question-hint { (context.fill("ask.hint", &limit)) }
                }
                div.answer #answer aria-live="polite" {
                    @if let Some(page_answer) = page_answer { (answer(context, stored, page_answer)) }
                }
            }
        }
    }
}

fn answer(context: &PageContext, stored: &StoredTranscript, page_answer: &PageAnswer) -> Markup {
    let watch = html! {
        a href=(stored.transcript.video.address()) rel="noreferrer" { (context.text("ask.watch")) }
    };
    html! {
        @match &page_answer.outcome {
            Ok(answer) if answer.is_covered => p dir="auto" { (with_moments(stored, &answer.response)) },
            Ok(_) => p { (context.text("ask.not_covered")) " " (watch) },
            Err(why) => p.error role="alert" { (why) },
        }
    }
}

/// An answer whose markers are links to their paragraphs.
fn with_moments(stored: &StoredTranscript, text: &str) -> Markup {
    let mut parts = text.split('[');
    let first = parts.next().unwrap_or_default();
    html! {
        (first)
        @for part in parts {
            @match marker(stored, part) {
                Some((time, id, rest)) => {
                    "[" a href={ "#" (id) } { (time) } "]" (rest)
                }
                None => { "[" (part) }
            }
        }
    }
}

/// The time of a marker, the id of its paragraph, and the text after it. `part` is the text after `[`.
fn marker<'a>(stored: &StoredTranscript, part: &'a str) -> Option<(&'a str, String, &'a str)> {
    let (time, rest) = part.split_once(']')?;
    let moment_ms = time.contains(':').then(|| parse_moment(time))??;
    Some((time, paragraph_at(stored, moment_ms)?, rest))
}

#[cfg(test)]
mod tests {
    use transcript_core::{
        transcript::VideoDetails,
        video::{Platform, VideoId},
    };

    use super::*;

    #[test]
    fn answer_markers_link_to_paragraphs_and_text_is_escaped() {
        let video = VideoId::new(Platform::YouTube, "dQw4w9WgXcQ").unwrap();
        let stored = crate::testing::stored(crate::testing::transcript(&video), VideoDetails::default());
        let html = with_moments(&stored, "“<b>It</b> is so” [0:01] [x] [9:99:99:9] [").into_string();
        assert_eq!(html, "“&lt;b&gt;It&lt;/b&gt; is so” [<a href=\"#t1\">0:01</a>] [x] [9:99:99:9] [");
    }
}
