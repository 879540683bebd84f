//! A question, and the conversation that it goes on with.

use std::fmt;

/// The most Unicode scalar values of a message (specification 8).
pub const MESSAGE_CHARS_MAX: usize = 2_000;
/// The most items of a conversation's history (specification 8).
pub const HISTORY_ITEMS_MAX: usize = 20;
/// The most bytes of one item of the history: more than the body of a request may have.
const CONTENT_BYTES_MAX: usize = 1024 * 1024;

/// Who said something in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The person who asks.
    User,
    /// Whoever answers.
    Assistant,
}

impl Role {
    /// The role's name (specification 4, `conversation_history`).
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }

    /// The role with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::User, Self::Assistant].into_iter().find(|role| role.as_str() == name)
    }
}

/// One turn of a conversation.
#[derive(Clone, PartialEq, Eq)]
pub struct Turn {
    /// Who said it.
    pub role: Role,
    /// What was said.
    pub content: String,
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What people say stays out of logs.
        f.debug_struct("Turn").field("role", &self.role).finish_non_exhaustive()
    }
}

/// A question about a video: a message, and what was said before it.
#[derive(Clone, PartialEq, Eq)]
pub struct Question {
    message: String,
    history: Vec<Turn>,
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question").field("turns", &self.history.len()).finish_non_exhaustive()
    }
}

/// Why a question is none. The sentence names the field of specification 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoQuestion {
    /// The message says nothing.
    Empty,
    /// The message is longer than [`MESSAGE_CHARS_MAX`].
    TooLong,
    /// The history has more than [`HISTORY_ITEMS_MAX`] items.
    TooManyTurns,
    /// An item of the history is larger than any request.
    TurnTooLong,
}

impl fmt::Display for NoQuestion {
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

impl std::error::Error for NoQuestion {}

impl Question {
    /// A question.
    ///
    /// Control characters become spaces, and characters that nobody sees are left out: neither says anything, and
    /// both are ways to hide text from people.
    ///
    /// # Errors
    /// The message is empty or has more than 2,000 Unicode scalar values, or the history more than 20 items.
    ///
    /// ```
    /// use transcript_core::chat::{NoQuestion, Question};
    ///
    /// assert!(Question::new("What is it about?", Vec::new()).is_ok());
    /// assert_eq!(Question::new(" \u{7}\n", Vec::new()), Err(NoQuestion::Empty));
    /// assert_eq!(Question::new(&"ä".repeat(2_001), Vec::new()), Err(NoQuestion::TooLong));
    /// ```
    pub fn new(message: &str, history: Vec<Turn>) -> Result<Self, NoQuestion> {
        if message.chars().count() > MESSAGE_CHARS_MAX {
            return Err(NoQuestion::TooLong);
        }
        if history.len() > HISTORY_ITEMS_MAX {
            return Err(NoQuestion::TooManyTurns);
        }
        if history.iter().any(|turn| turn.content.len() > CONTENT_BYTES_MAX) {
            return Err(NoQuestion::TurnTooLong);
        }
        let message = visible(message);
        if message.trim().is_empty() {
            return Err(NoQuestion::Empty);
        }
        let history = history.into_iter().map(|turn| Turn { content: visible(&turn.content), ..turn });
        Ok(Self { message: message.trim().to_owned(), history: history.collect() })
    }

    /// What is asked.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What was said before, oldest first.
    pub fn history(&self) -> &[Turn] {
        &self.history
    }
}

/// A text without characters that control or hide: the former become spaces, but for line ends.
pub(super) fn visible(text: &str) -> String {
    text.chars()
        .filter(|c| !is_unseen(*c))
        .map(|c| if c.is_control() && c != '\n' { ' ' } else { c })
        .collect()
}

/// Characters that nobody sees and that change how others are shown or read; not the joiners that Persian and
/// the scripts of India are written with.
pub(super) fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{34F}' | '\u{115F}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{FFA0}' | '\u{1D173}'..='\u{1D17A}'
        | '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_counted_in_characters_and_items() {
        assert!(Question::new(&"語".repeat(2_000), Vec::new()).is_ok());
        let turn = |role| Turn { role, content: String::new() };
        assert!(Question::new("a", vec![turn(Role::User); 20]).is_ok());
        assert_eq!(Question::new("a", vec![turn(Role::Assistant); 21]), Err(NoQuestion::TooManyTurns));
        assert_eq!(Question::new("", Vec::new()), Err(NoQuestion::Empty));
        assert_eq!(Question::new("\u{200B}\u{202E}\0", Vec::new()), Err(NoQuestion::Empty));
    }

    #[test]
    fn what_hides_is_taken_out() {
        let question = Question::new("a\u{1b}[31mb\u{202e}c\r\nd\u{200d}e", Vec::new()).unwrap();
        assert_eq!(question.message(), "a [31mbc \nd\u{200d}e");
        assert!(Role::from_name("system").is_none() && Role::from_name("User").is_none());
    }
}
