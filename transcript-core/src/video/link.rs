//! From a text to the video that it names.

use super::{
    LinkError, Platform, ShortLink, VideoId,
    address::{Address, Finding},
    hosts::Site,
    instagram,
    text::{self, Candidate, Scheme},
    tiktok, x, youtube,
};

/// How many links inside links are unwrapped: consent pages wrap search results that wrap shared links.
const UNWRAPPED_MAX: usize = 4;

/// What a link leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VideoLink {
    /// A video.
    Video(VideoId),
    /// A short link: which video it means, only its platform knows.
    Short(ShortLink),
}

impl VideoLink {
    /// The longest text that is looked at, in bytes.
    pub const LENGTH_MAX: usize = 4_096;

    /// The video or short link that a text names.
    ///
    /// The text may be a link in any of the platforms' forms, a bare identifier of the long-form site, or a
    /// sentence or markup with a link inside; of several links the first that names a video counts.
    ///
    /// ```
    /// use transcript_core::video::{LinkProblem, VideoLink};
    ///
    /// let VideoLink::Video(video) = VideoLink::parse("See (https://youtu.be/dQw4w9WgXcQ?t=43).")? else {
    ///     panic!("this is no short link");
    /// };
    /// assert_eq!(video.to_string(), "video_site/dQw4w9WgXcQ");
    ///
    /// let error = VideoLink::parse("https://youtube.com.evil.example/watch?v=dQw4w9WgXcQ").unwrap_err();
    /// assert_eq!(error.problem(), LinkProblem::UnknownHost);
    /// # Ok::<(), transcript_core::video::LinkError>(())
    /// ```
    ///
    /// # Errors
    /// The text names none; the error says what was wrong and what to give instead.
    pub fn parse(text: &str) -> Result<Self, LinkError> {
        if text.len() > Self::LENGTH_MAX {
            return Err(LinkError::too_long(text.len(), Self::LENGTH_MAX));
        }
        let text = text::trimmed(text);
        if text.is_empty() {
            return Err(LinkError::empty());
        }
        if let Ok(video) = VideoId::new(Platform::VideoSite, text::bare_word(text)) {
            return Ok(Self::Video(video));
        }
        let text = text::decoded(text);
        let mut nearest: Option<LinkError> = None;
        for candidate in text::links(&text) {
            match follow(&candidate) {
                Ok(link) => return Ok(link),
                Err(error) if nearest.as_ref().is_none_or(|known| known.nearness() < error.nearness()) => {
                    nearest = Some(error);
                }
                Err(_) => {}
            }
        }
        Err(nearest.unwrap_or_else(|| without_link(&text)))
    }
}

/// What to say of a text in which there is no link at all.
fn without_link(text: &str) -> LinkError {
    let word = text::bare_word(text);
    match word.len() {
        length @ (10 | 12) if word.bytes().all(text::is_id_byte) => LinkError::near_id(length),
        _ => LinkError::not_a_link(),
    }
}

/// Reads a link, and the links inside it, down to the video.
fn follow(candidate: &Candidate<'_>) -> Result<VideoLink, LinkError> {
    let mut finding = read(candidate)?;
    for _ in 0..UNWRAPPED_MAX {
        match finding {
            Finding::Link(link) => return Ok(link),
            Finding::Wrapped(inner) => {
                let candidate = Candidate::beginning(&inner).ok_or_else(LinkError::not_a_link)?;
                finding = read(&candidate)?;
            }
        }
    }
    match finding {
        Finding::Link(link) => Ok(link),
        Finding::Wrapped(_) => Err(LinkError::nested_too_deep()),
    }
}

fn read(candidate: &Candidate<'_>) -> Result<Finding, LinkError> {
    match candidate.scheme {
        Scheme::YouTubeApp => Ok(youtube::read_app(&candidate.rest)),
        Scheme::TikTokApp => tiktok::read_app(&candidate.rest),
        Scheme::InstagramApp => instagram::read_app(&candidate.rest),
        Scheme::XApp => x::read_app(&candidate.rest),
        Scheme::Other => Err(LinkError::unknown_scheme()),
        Scheme::Http | Scheme::Https => {
            let address = Address::parse(candidate)?;
            match address.site() {
                Site::YouTube => youtube::read_page(&address),
                Site::YouTubeShort => youtube::read_short(&address),
                Site::YouTubeImage => youtube::read_image(&address),
                Site::GooglePassage => youtube::read_passage(&address),
                Site::TikTok => tiktok::read_page(&address),
                Site::TikTokShort(host) => tiktok::read_short(&address, host),
                Site::Instagram => instagram::read_page(&address),
                Site::InstagramPassage => instagram::read_passage(&address),
                Site::X => x::read_page(&address),
                Site::XEmbed => x::read_embed(&address),
                Site::XShort => x::read_short(&address),
            }
        }
    }
}
