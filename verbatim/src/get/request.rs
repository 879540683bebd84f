//! Request for a transcript.

use std::time::Duration;

use transcript_core::{
    Error, Result, archive::TrackSelector, supplier::ListedVideo, transcript::LanguageTag, video::VideoId,
};

/// Request for a transcript. A link alone is one too: [`crate::Verbatim::get`] takes `"https://youtu.be/dQw4w9WgXcQ"`.
///
/// ```
/// use std::time::Duration;
///
/// use verbatim::GetRequest;
///
/// let request = GetRequest::new("https://youtu.be/dQw4w9WgXcQ")
///     .with_language("de")
///     .with_other_languages(["en", "fr"])
///     .with_timeout(Duration::from_secs(10));
/// assert_eq!(request.other_languages, ["en", "fr"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct GetRequest {
    /// Link to the video in any common form, or a YouTube id.
    pub link: String,
    /// Language as a BCP 47 tag; `None`: English if there is English, else the spoken language.
    pub language: Option<String>,
    /// Languages to try, in this order, if the video has no transcript in `language`.
    pub other_languages: Vec<String>,
    /// Whether a machine translation into a language is returned if the video has no other transcript in it.
    pub translated: bool,
    /// Whether only the archive is read: no supplier is called, and no unknown short link is resolved.
    pub archived_only: bool,
    /// Timeout of the request; `None`: [`crate::Options::wait`].
    pub timeout: Option<Duration>,
}

/// Maximum number of languages of a request.
pub const LANGUAGES_MAX: usize = 16;

impl GetRequest {
    /// The default track of this link.
    pub fn new(link: impl Into<String>) -> Self {
        Self { link: link.into(), ..Self::default() }
    }

    /// Sets the language, as a BCP 47 tag.
    #[must_use]
    pub fn with_language(self, tag: impl Into<String>) -> Self {
        Self { language: Some(tag.into()), ..self }
    }

    /// Sets the languages to try, in this order, if the video has no transcript in the first one.
    #[must_use]
    pub fn with_other_languages(self, tags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { other_languages: tags.into_iter().map(Into::into).collect(), ..self }
    }

    /// Sets whether only the archive is read.
    #[must_use]
    pub fn with_archived_only(self, archived_only: bool) -> Self {
        Self { archived_only, ..self }
    }

    /// Sets the timeout of the request.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// Track selectors of the request, in order: the languages, or the default track.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] if a language is not a valid tag, or if there are more than
    /// [`LANGUAGES_MAX`].
    pub(crate) fn selectors(&self) -> Result<Vec<TrackSelector>> {
        if self.other_languages.len() >= LANGUAGES_MAX {
            return Err(Error::invalid(format!("a request has at most {LANGUAGES_MAX} languages")));
        }
        let tags = self.language.iter().chain(&self.other_languages);
        let languages = tags
            .map(|tag| LanguageTag::parse(tag).map(|tag| TrackSelector::in_language(tag, self.translated)));
        let selectors: Vec<_> = languages.collect::<Result<_>>()?;
        Ok(if selectors.is_empty() { vec![TrackSelector::Default] } else { selectors })
    }

    /// The first track selector: a language, or the default track.
    ///
    /// # Errors
    /// As [`GetRequest::selectors`].
    pub(crate) fn selector(&self) -> Result<TrackSelector> {
        Ok(self.selectors()?.swap_remove(0))
    }
}

impl From<&str> for GetRequest {
    fn from(link: &str) -> Self {
        Self::new(link)
    }
}

impl From<&&str> for GetRequest {
    fn from(link: &&str) -> Self {
        Self::new(*link)
    }
}

impl From<String> for GetRequest {
    fn from(link: String) -> Self {
        Self::new(link)
    }
}

impl From<&String> for GetRequest {
    fn from(link: &String) -> Self {
        Self::new(link)
    }
}

impl From<&GetRequest> for GetRequest {
    fn from(request: &GetRequest) -> Self {
        request.clone()
    }
}

impl From<VideoId> for GetRequest {
    fn from(video: VideoId) -> Self {
        Self::from(&video)
    }
}

impl From<&VideoId> for GetRequest {
    fn from(video: &VideoId) -> Self {
        Self::new(video.address())
    }
}

impl From<ListedVideo> for GetRequest {
    fn from(listed: ListedVideo) -> Self {
        Self::from(&listed.video)
    }
}

#[cfg(test)]
mod tests {
    use transcript_core::video::{Platform, VideoLink};

    use super::*;

    #[test]
    fn request_of_video_names_it() {
        for (platform, id) in [
            (Platform::YouTube, "dQw4w9WgXcQ"),
            (Platform::TikTok, "7301234567890123456"),
            (Platform::Instagram, "Cabc123"),
            (Platform::X, "1234567890123456789"),
        ] {
            let video = VideoId::new(platform, id).unwrap();
            let request = GetRequest::from(&video);
            assert_eq!(VideoLink::parse(&request.link).unwrap(), VideoLink::Video(video.clone()));
            assert_eq!(GetRequest::from(video), request);
        }
        assert_eq!(GetRequest::from(&"dQw4w9WgXcQ"), GetRequest::from("dQw4w9WgXcQ"));
    }
}
