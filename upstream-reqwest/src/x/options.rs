//! Options of X: settings `x.*`. They exist because X changes its API every few months.

use transcript_core::{Error, Result};

/// Id of the query for one post, as X's own pages used it in autumn 2026.
const QUERY_ID: &str = "2ICDjqPd81tulZcYrtpTuQ";
/// Feature flags that this query requires, set to true or false.
const FEATURES: [&str; 19] = [
    "creator_subscriptions_tweet_preview_api_enabled",
    "tweetypie_unmention_optimization_enabled",
    "responsive_web_edit_tweet_api_enabled",
    "graphql_is_translatable_rweb_tweet_is_translatable_enabled",
    "view_counts_everywhere_api_enabled",
    "longform_notetweets_consumption_enabled",
    "responsive_web_twitter_article_tweet_consumption_enabled=false",
    "tweet_awards_web_tipping_enabled=false",
    "freedom_of_speech_not_reach_fetch_enabled",
    "standardized_nudges_misinfo",
    "tweet_with_visibility_results_prefer_gql_limited_actions_policy_enabled",
    "longform_notetweets_rich_text_read_enabled",
    "longform_notetweets_inline_media_enabled",
    "responsive_web_graphql_exclude_directive_enabled",
    "verified_phone_label_enabled=false",
    "responsive_web_media_download_video_enabled=false",
    "responsive_web_graphql_skip_user_profile_image_extensions_enabled=false",
    "responsive_web_graphql_timeline_navigation_enabled",
    "responsive_web_enhance_cards_enabled=false",
];

/// Maximum number of feature flags, and maximum length of a flag's name or query id in bytes.
const FEATURES_MAX: usize = 200;
const NAME_MAX: usize = 100;

/// Options of the supplier `x-captions`.
///
/// ```
/// use upstream_reqwest::XOptions;
///
/// let options = XOptions::new(None, Some(&["interactive_text_enabled", "vibe_api_enabled=false"]))?;
/// assert_eq!(options, XOptions { query_id: XOptions::default().query_id, ..options.clone() });
/// assert!(XOptions::new::<&str>(Some("not/an/id"), None).is_err());
/// # Ok::<(), transcript_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, smart_default::SmartDefault)]
pub struct XOptions {
    /// Id of the query for one post. By default that of X's own pages in autumn 2026.
    #[default(QUERY_ID.to_owned())]
    pub query_id: String,
    /// Feature flags of the query, with their values. By default those of X's own pages in autumn 2026.
    #[default(FEATURES.iter().filter_map(|text| feature(text).ok()).collect())]
    pub features: Vec<(String, bool)>,
}

impl XOptions {
    /// Options with this query and these feature flags; `None` selects the built-in value.
    ///
    /// A flag is a name, or a name with `=true` or `=false`.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`], naming the setting: an id or a name with other characters than letters,
    /// digits, `-` and `_`; another value; more than 200 flags.
    pub fn new<T: AsRef<str>>(query_id: Option<&str>, features: Option<&[T]>) -> Result<Self> {
        let built_in = Self::default();
        let query_id = query_id.map_or(built_in.query_id, str::to_owned);
        if !is_name(&query_id) {
            return Err(Error::invalid(
                "x.query_id must be the id of a query, such as 2ICDjqPd81tulZcYrtpTuQ",
            ));
        }
        let features = match features {
            None => built_in.features,
            Some(list) if list.len() > FEATURES_MAX => {
                return Err(Error::invalid(format!("x.features takes at most {FEATURES_MAX} names")));
            }
            Some(list) => list.iter().map(|text| feature(text.as_ref())).collect::<Result<_>>()?,
        };
        Ok(Self { query_id, features })
    }
}

fn feature(text: &str) -> Result<(String, bool)> {
    let (name, value) = text.trim().split_once('=').unwrap_or((text.trim(), "true"));
    match value {
        "true" | "false" if is_name(name) => Ok((name.to_owned(), value == "true")),
        _ => Err(Error::invalid("x.features takes names such as vibe_api_enabled or vibe_api_enabled=false")),
    }
}

fn is_name(text: &str) -> bool {
    let is_plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_');
    !text.is_empty() && text.len() <= NAME_MAX && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feature_flag_invalid_is_named() {
        let built_in = XOptions::default();
        assert_eq!(built_in.features.len(), FEATURES.len());
        assert_eq!(built_in.features.iter().filter(|(_, on)| !on).count(), 6);
        let given = XOptions::new(Some("abc-_1"), Some(&["a_b", " c=false "])).unwrap();
        assert_eq!(given.features, [("a_b".to_owned(), true), ("c".to_owned(), false)]);
        for wrong in ["", "a b", "a=maybe", "a=", "=true", "\"a\""] {
            let error = XOptions::new(None, Some(&[wrong])).unwrap_err();
            assert!(error.message().starts_with("x.features"), "{wrong}");
        }
        for wrong in ["", "a/b", "a?b", &"a".repeat(101)] {
            let error = XOptions::new::<&str>(Some(wrong), None).unwrap_err();
            assert!(error.message().starts_with("x.query_id"), "{wrong}");
        }
        assert!(XOptions::new(None, Some(&["a"; 201])).is_err());
    }
}
