//! A question and the conversation before it.

use std::fmt;

use crate::{debug_fields, names::names};

/// Maximum of Unicode scalar values in a message (specification 8).
pub const MESSAGE_CHARS_MAX: usize = 2_000;
/// Maximum of items in a conversation's history (specification 8).
pub const HISTORY_ITEMS_MAX: usize = 20;
/// Maximum of bytes in one history item; larger than the largest request body.
const CONTENT_BYTES_MAX: usize = 1024 * 1024;

/// Author of a turn in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChatRole {
    /// The user.
    User,
    /// The assistant.
    Assistant,
}

names!(ChatRole, from_name {
    User = "user",
    Assistant = "assistant",
});

/// One turn of a conversation.
#[derive(Clone, PartialEq, Eq)]
pub struct ChatTurn {
    /// Author of the turn.
    pub role: ChatRole,
    /// Text of the turn.
    pub content: String,
}

// User text stays out of logs.
debug_fields!(ChatTurn { role });

/// A question about a video: a message and the turns before it.
#[derive(Clone, PartialEq, Eq)]
pub struct Question {
    message: String,
    history: Vec<ChatTurn>,
}

crate::debug_fields!(Question |this| { turns: this.history.len() });

/// Reason why a question is invalid. The message names the request field (specification 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionError {
    /// The message is empty.
    Empty,
    /// The message has more than [`MESSAGE_CHARS_MAX`] characters.
    TooLong,
    /// The history has more than [`HISTORY_ITEMS_MAX`] items.
    TooManyTurns,
    /// A history item is larger than any request.
    TurnTooLong,
}

impl fmt::Display for QuestionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("message: it is empty"),
            Self::TooLong => write!(f, "message: it has more than {MESSAGE_CHARS_MAX} characters"),
            Self::TooManyTurns => {
                write!(f, "conversation_history: it has more than {HISTORY_ITEMS_MAX} items")
            }
            Self::TurnTooLong => f.write_str("conversation_history: an item is longer than a request may be"),
        }
    }
}

impl std::error::Error for QuestionError {}

impl Question {
    /// Creates a question.
    ///
    /// Control characters become spaces, and invisible characters are dropped: both carry no meaning and can hide
    /// text from people.
    ///
    /// # Errors
    /// The message is empty or has more than 2,000 Unicode scalar values, or the history has more than 20 items.
    ///
    /// ```
    /// use transcript_core::chat::{Question, QuestionError};
    ///
    /// assert!(Question::new("What is it about?", Vec::new()).is_ok());
    /// assert_eq!(Question::new(" \u{7}\n", Vec::new()), Err(QuestionError::Empty));
    /// assert_eq!(Question::new(&"ä".repeat(2_001), Vec::new()), Err(QuestionError::TooLong));
    /// ```
    pub fn new(message: &str, history: Vec<ChatTurn>) -> Result<Self, QuestionError> {
        if message.chars().count() > MESSAGE_CHARS_MAX {
            return Err(QuestionError::TooLong);
        }
        if history.len() > HISTORY_ITEMS_MAX {
            return Err(QuestionError::TooManyTurns);
        }
        if history.iter().any(|turn| turn.content.len() > CONTENT_BYTES_MAX) {
            return Err(QuestionError::TurnTooLong);
        }
        let message = strip_invisible(message);
        if message.trim().is_empty() {
            return Err(QuestionError::Empty);
        }
        let history =
            history.into_iter().map(|turn| ChatTurn { content: strip_invisible(&turn.content), ..turn });
        Ok(Self { message: message.trim().to_owned(), history: history.collect() })
    }

    /// The message of the question.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Earlier turns, oldest first.
    pub fn history(&self) -> &[ChatTurn] {
        &self.history
    }
}

/// Replaces control characters, except line breaks, by spaces and drops invisible characters.
pub(super) fn strip_invisible(text: &str) -> String {
    text.chars()
        .filter(|c| !is_invisible(*c))
        .map(|c| if c.is_control() && c != '\n' { ' ' } else { c })
        .collect()
}

/// Whether a character is invisible and changes how others are shown or read.
///
/// The joiners of Persian and of the scripts of India are not included.
pub(super) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{34F}' | '\u{115F}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{FFA0}' | '\u{1D173}'..='\u{1D17A}'
        | '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}')
}

/// Whether a character is a question mark of any script, except the semicolon that is one in Greek.
pub(super) fn is_question_mark(c: char) -> bool {
    matches!(c, '?' | '？' | '؟' | '\u{37E}' | '՞' | '፧' | '‽' | '⁇' | '⁈' | '⁉')
}

/// Whether most letters of a text are Greek, so that a semicolon asks.
pub(super) fn is_greek(text: &str) -> bool {
    let letters = text.chars().filter(|c| c.is_alphabetic());
    let greek = letters.clone().filter(|c| matches!(c, '\u{370}'..='\u{3FF}' | '\u{1F00}'..='\u{1FFF}'));
    greek.count() * 2 > letters.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_limits_count_characters_and_items() {
        assert!(Question::new(&"語".repeat(2_000), Vec::new()).is_ok());
        let turn = |role| ChatTurn { role, content: String::new() };
        assert!(Question::new("a", vec![turn(ChatRole::User); 20]).is_ok());
        assert_eq!(Question::new("a", vec![turn(ChatRole::Assistant); 21]), Err(QuestionError::TooManyTurns));
        assert_eq!(Question::new("", Vec::new()), Err(QuestionError::Empty));
        assert_eq!(Question::new("\u{200B}\u{202E}\0", Vec::new()), Err(QuestionError::Empty));
    }

    #[test]
    fn question_invisible_characters_are_removed() {
        let question = Question::new("a\u{1b}[31mb\u{202e}c\r\nd\u{200d}e", Vec::new()).unwrap();
        assert_eq!(question.message(), "a [31mbc \nd\u{200d}e");
        assert!(ChatRole::from_name("system").is_none() && ChatRole::from_name("User").is_none());
    }
}
