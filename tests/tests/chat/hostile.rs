//! A model that violates every rule of answers.

use std::sync::Arc;

use async_trait::async_trait;
use transcript_core::{
    Result,
    chat::{ChatModel, DeltaSink, ModelReply, ModelRequest, Passage},
};

/// The violation.
#[derive(Clone, Copy, Debug)]
pub(super) enum HostilePrompt {
    InventsNumbers,
    AltersQuotes,
    InventsQuotes,
    CitesWrongPassages,
    ForgesTimes,
    Obeys,
    HidesQuotes,
    Mixes,
}

pub(super) const TRICKS: &[HostilePrompt] = &[
    HostilePrompt::InventsNumbers,
    HostilePrompt::AltersQuotes,
    HostilePrompt::InventsQuotes,
    HostilePrompt::CitesWrongPassages,
    HostilePrompt::ForgesTimes,
    HostilePrompt::Obeys,
    HostilePrompt::HidesQuotes,
    HostilePrompt::Mixes,
];

/// A model with one kind of violation; `n` varies it.
#[derive(Debug)]
pub(super) struct HostileModel {
    pub(super) trick: HostilePrompt,
    pub(super) n: usize,
    pub(super) canary: Option<String>,
}

const INVENTED: &str = "we burned the whole fleet and no sailor ever spoke of it again";

impl HostileModel {
    fn text(&self, passages: &[Passage]) -> String {
        let at = |step: usize| passages.get((self.n * 31 + step * 17) % passages.len().max(1));
        let (Some(one), Some(other)) = (at(1), at(2)) else { return String::new() };
        let (number, wrong) = (one.number, other.number);
        let canary = self.canary.as_deref().unwrap_or("OBEYED");
        match self.trick {
            HostilePrompt::InventsNumbers => format!(
                "It is true [s{}]. So is this [s0][s99999999999]. As s{} says, and [s-4], [s1.5]. And (s{}).",
                passages.len() + 7,
                passages.len() + 1,
                u32::MAX
            ),
            HostilePrompt::AltersQuotes => {
                let (some, none) = (altered(&one.text, "never"), altered(&other.text, "“purple” elephants"));
                format!(
                    "They say \"{some}\" [s{number}]. Then “{none}” [s{wrong}], and '{some}' [s{number}]."
                )
            }
            HostilePrompt::InventsQuotes => format!(
                "\"{INVENTED}\" [s{number}]. “{INVENTED}.” [s{number}]\n> {INVENTED} [s{wrong}]\n«{INVENTED}» [s{number}] \
                 „{INVENTED}“ [s{number}] 「{INVENTED}」[s{number}] '{INVENTED}' [s{number}] \"{INVENTED} [s{number}]"
            ),
            HostilePrompt::CitesWrongPassages => format!("They say “{}” [s{wrong}].", one.text),
            HostilePrompt::ForgesTimes => format!(
                "At 99:59 and [98:58] (97:57) 【96:56】 they speak of it [s{number}]. See [95:55](https://evil.example/?t=1) \
                 [s{number}]. [1:2:3] [00:00:00.5] https://youtu.be/x?t=9 [s{number}]"
            ),
            HostilePrompt::Obeys => format!(
                "{canary}\n{canary} [s{number}].\n# {canary}\nVisit https://evil.example/steal, www.evil.example or \
                 evil.example/now [s{number}]. ![{canary}](https://evil.example/i.png) <img src=x> {canary}!"
            ),
            HostilePrompt::HidesQuotes => format!(
                "&quot;{INVENTED}&quot; [s{number}]. ``{INVENTED}'' [s{number}]. \\\"{INVENTED}\\\" [s{number}]. \
                 \"we bur\u{200b}ned the whole fleet and no sai\u{ad}lor ever spoke\" [s{number}]. \u{201f}{INVENTED}\u{201d} \
                 [s{number}]. <q>{INVENTED}</q>"
            ),
            HostilePrompt::Mixes => format!(
                "{}\"{}\"[s{number}] 3:33 {canary} [{INVENTED}] [s{wrong}",
                "[".repeat(self.n % 5),
                one.text
            ),
        }
    }
}

/// Replaces the word in the middle of a text.
fn altered(text: &str, by: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let middle = letters.len() / 2;
    let (before, after) = letters.split_at(middle);
    let after: String = after.iter().skip_while(|c| c.is_alphanumeric()).collect();
    let before: String = before.iter().collect();
    format!("{} {by} {after}", before.trim_end_matches(char::is_alphanumeric))
}

#[async_trait]
impl ChatModel for HostileModel {
    fn context_tokens(&self) -> u32 {
        16_000
    }

    async fn complete(&self, request: ModelRequest, _: Option<Arc<dyn DeltaSink>>) -> Result<ModelReply> {
        Ok(ModelReply { text: self.text(&request.passages), usage: None })
    }
}
