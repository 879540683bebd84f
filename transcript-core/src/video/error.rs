//! What can be wrong with a link.

use std::fmt;

use super::Platform;

/// What was wrong with a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LinkProblem {
    /// Nothing was given, or only white space.
    Empty,
    /// Longer than [`super::VideoLink::LENGTH_MAX`] bytes.
    TooLong,
    /// Not a link at all.
    NotALink,
    /// A link to a host that is none of the platforms' own.
    UnknownHost,
    /// A link with a user name, a password or a port of its own.
    UnsafeAuthority,
    /// A platform's link that names no video: a channel, a playlist, a profile.
    NotAVideo,
    /// An identifier that does not have the platform's form.
    MalformedId,
}

/// Why a text names no video; its message says what was wrong and what to give instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkError {
    problem: LinkProblem,
    message: String,
}

impl LinkError {
    /// An error with this problem and message.
    pub fn new(problem: LinkProblem, message: impl Into<String>) -> Self {
        Self { problem, message: message.into() }
    }

    /// An identifier that does not have the platform's form.
    pub(super) fn malformed_id(platform: Platform, id: &str) -> Self {
        let form = match platform {
            Platform::VideoSite => "11 characters of A-Z, a-z, 0-9, - and _",
            Platform::ShortVideo => "1 to 21 digits",
            Platform::Reels => "1 to 39 characters of A-Z, a-z, 0-9, - and _",
            Platform::Microblog => "1 to 20 digits",
        };
        let length = id.chars().count();
        Self::new(
            LinkProblem::MalformedId,
            format!(
                "this {} id has {length} characters or others than allowed: it must be {form}",
                platform.name()
            ),
        )
    }

    /// What was wrong.
    pub fn problem(&self) -> LinkProblem {
        self.problem
    }

    /// The sentence, as [`fmt::Display`] prints it.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for LinkError {}
