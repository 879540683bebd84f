//! Body of every error of the v1 API.

use serde::{Deserialize, Serialize};

use crate::{
    accounts::V1Error,
    transcript::TrackInfo,
    wire::details::{self, LanguageObject},
};

/// Body of every error of the v1 API (specification 7.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(schemars::JsonSchema),
    schemars(description = "What is wrong, and what to do.")
)]
pub struct ErrorBody {
    /// The message for people.
    pub error: String,
    /// The HTTP status.
    pub code: u16,
    /// Extension: the languages of a video without a transcript in the requested one, as far as known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub languages: Vec<LanguageObject>,
}

impl ErrorBody {
    /// An error without languages.
    pub fn new(error: impl Into<String>, code: u16) -> Self {
        Self { error: error.into(), code, languages: Vec::new() }
    }

    /// The tracks of the languages, within the limits of metadata.
    pub fn tracks(&self) -> Vec<TrackInfo> {
        details::to_tracks(&self.languages)
    }
}

impl From<&V1Error> for ErrorBody {
    fn from(error: &V1Error) -> Self {
        Self {
            languages: error.languages().iter().map(LanguageObject::from).collect(),
            ..Self::new(error.message(), error.code())
        }
    }
}
