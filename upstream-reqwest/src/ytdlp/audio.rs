//! Selects audio URLs in the metadata of yt-dlp. No I/O.
//!
//! Only formats with a plain https URL on the platform's hosts are used.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde_json::Value;
use transcript_core::{transcript::LanguageTag, video::Platform};
use url::Url;

use crate::{
    http::is_allowed,
    json::{field, number},
    social::MediaAddress,
};

/// Maximum number of formats read and of URLs kept.
const FORMS_MAX: usize = 500;
const ADDRESSES_MAX: usize = 6;
/// Maximum length of a URL, header or cookie list, in bytes.
const TEXT_MAX: usize = 8_192;

/// yt-dlp's preference for formats that only the platform's own player can read.
const UNPLAYABLE: i64 = -100;

/// yt-dlp's preference for formats with the original audio.
const ORIGINAL: i64 = 10;

/// Part of the URL of audio that a machine dubbed.
const MACHINE_DUB: &str = "acont%3Ddubbed-auto";

/// Headers that are copied: those of a browser, and none that identify or authorize.
const HEADERS: [&str; 6] = ["accept", "accept-language", "origin", "referer", "sec-fetch-mode", "user-agent"];

/// URLs of formats with audio, the smallest first; formats with video come last.
pub(super) fn addresses(platform: Platform, formats: &Value, hosts: &[&str]) -> Vec<MediaAddress> {
    let forms = formats.as_array().into_iter().flatten().take(FORMS_MAX);
    let mut found: Vec<_> =
        forms.filter_map(|form| Some((AudioRank::new(form)?, address(form, hosts)?))).collect();
    // On TikTok an audio-only format is the added song, which contains no speech.
    found.retain(|(rank, _)| rank.has_picture || platform != Platform::TikTok);
    // Of a dubbed video all audio tracks but one are in other languages than the original.
    let original = found.iter().map(|(rank, _)| rank.language).max();
    found.retain(|(rank, _)| Some(rank.language) == original);
    found.sort_by_key(|(rank, _)| (rank.has_picture, rank.size));
    let mut addresses: Vec<MediaAddress> = Vec::new();
    for (_, address) in found {
        if !addresses.iter().any(|known| known.url == address.url) {
            addresses.push(address);
        }
    }
    addresses.truncate(ADDRESSES_MAX);
    addresses
}

/// The language of the formats that yt-dlp knows to have the original audio; only dubbed videos have such.
pub(super) fn original_language(formats: &Value) -> Option<LanguageTag> {
    let mut forms = formats.as_array().into_iter().flatten().take(FORMS_MAX);
    let original = forms.find(|form| field(form, "language_preference").as_i64() == Some(ORIGINAL))?;
    LanguageTag::parse(field(original, "language").as_str()?).ok()
}

/// The languages of the audio that a machine dubbed: YouTube's URLs of such audio say so.
pub(super) fn machine_dubs(formats: &Value) -> Vec<LanguageTag> {
    let forms = formats.as_array().into_iter().flatten().take(FORMS_MAX);
    let dubs = forms.filter(|form| field(form, "url").as_str().is_some_and(|url| url.contains(MACHINE_DUB)));
    dubs.filter_map(|form| LanguageTag::parse(field(form, "language").as_str()?).ok()).collect()
}

/// Sort key of a format.
struct AudioRank {
    /// yt-dlp's confidence that the format has the original language; larger is better.
    language: i64,
    has_picture: bool,
    /// Bits per second, or the maximum if unknown.
    size: u64,
}

impl AudioRank {
    /// `None` for a format without audio, with several files, or encrypted.
    fn new(form: &Value) -> Option<Self> {
        let codec = |name: &str| field(form, name).as_str();
        let is_plain = field(form, "protocol").as_str() == Some("https")
            && codec("acodec") != Some("none")
            && field(form, "has_drm").as_bool() != Some(true)
            && field(form, "preference").as_i64().is_none_or(|preference| preference > UNPLAYABLE);
        // An unknown video codec means audio and video: files of the other platforms.
        let has_picture = codec("vcodec") != Some("none");
        is_plain.then(|| Self {
            language: field(form, "language_preference").as_i64().unwrap_or(-1),
            has_picture,
            size: bitrate(form).unwrap_or(u64::MAX),
        })
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is within 0 and 1e12 bits"
)]
fn bitrate(form: &Value) -> Option<u64> {
    let kilobits = field(form, "tbr").as_f64().or_else(|| field(form, "abr").as_f64())?;
    (0.0..=1e9).contains(&kilobits).then_some((kilobits * 1_000.0) as u64)
}

fn address(form: &Value, hosts: &[&str]) -> Option<MediaAddress> {
    let text = field(form, "url").as_str().filter(|text| text.len() <= TEXT_MAX)?;
    let url = Url::parse(text).ok().filter(|url| is_allowed(url, hosts))?;
    let mut headers = HeaderMap::new();
    for name in HEADERS {
        let value = field(form, "http_headers").as_object().into_iter().flatten();
        let value =
            value.filter(|(key, _)| key.eq_ignore_ascii_case(name)).find_map(|(_, value)| value.as_str());
        let value =
            value.filter(|value| value.len() <= TEXT_MAX).and_then(|value| HeaderValue::from_str(value).ok());
        if let Some(value) = value {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    if let Some(cookies) = field(form, "cookies").as_str().and_then(|list| cookies(list, &url)) {
        headers.insert(header::COOKIE, cookies);
    }
    let bytes = number(field(form, "filesize"));
    Some(MediaAddress { bytes, bitrate: bitrate(form), headers, ..MediaAddress::in_parts(url, Vec::new()) })
}

/// The cookies for a URL in a list such as `a="1"; Domain=.example.org; Path=/; b=2; Domain=…`.
fn cookies(list: &str, url: &Url) -> Option<HeaderValue> {
    const ATTRIBUTES: [&str; 7] = ["domain", "path", "expires", "version", "secure", "discard", "comment"];
    if list.len() > TEXT_MAX {
        return None;
    }
    let host = url.host_str()?;
    let belongs = |domain: &str| {
        let domain = domain.trim_start_matches('.');
        host.strip_suffix(domain)
            .is_some_and(|rest| !domain.is_empty() && (rest.is_empty() || rest.ends_with('.')))
    };
    let mut kept: Vec<(String, bool)> = Vec::new();
    for part in list.split("; ") {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let value = value.trim_matches('"');
        match name.to_ascii_lowercase().as_str() {
            "domain" => {
                if let Some((_, is_ours)) = kept.last_mut() {
                    *is_ours = belongs(value);
                }
            }
            attribute if ATTRIBUTES.contains(&attribute) || name.is_empty() => {}
            // Without a domain the scope of a cookie is unknown, so it is not sent.
            _ => kept.push((format!("{name}={value}"), false)),
        }
    }
    let ours: Vec<_> = kept.into_iter().filter(|(_, is_ours)| *is_ours).map(|(cookie, _)| cookie).collect();
    let mut value = HeaderValue::from_str(&ours.join("; ")).ok().filter(|_| !ours.is_empty())?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HOSTS: &[&str] = &[".googlevideo.com"];

    fn form(host: &str, more: Value) -> Value {
        let mut form = json!({"protocol": "https", "acodec": "opus", "vcodec": "none", "tbr": 64.5,
            "url": format!("https://{host}/a?id={}", more)});
        form.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        form
    }

    fn bitrates(forms: &[Value]) -> Vec<Option<u64>> {
        addresses(Platform::YouTube, &json!(forms), HOSTS).iter().map(|address| address.bitrate).collect()
    }

    #[test]
    fn audio_urls_smallest_original_on_known_host_comes_first() {
        let host = "rr1---sn.googlevideo.com";
        let forms = [
            form(host, json!({"tbr": 128})),
            form(host, json!({"tbr": 500, "vcodec": "avc1"})),
            form(host, json!({"tbr": 48.25})),
            form("evil.example", json!({"tbr": 1})),
            form("10.0.0.1", json!({"tbr": 1})),
            form(host, json!({"tbr": 2, "acodec": "none"})),
            form(host, json!({"tbr": 3, "protocol": "m3u8_native"})),
            form(host, json!({"tbr": 4, "has_drm": true})),
            form(host, json!({"tbr": 4, "vcodec": "bytevc2", "preference": -100})),
            form(host, json!({"tbr": 5, "url": format!("http://{host}/plain")})),
            form(host, json!({"tbr": 6, "url": "file:///etc/passwd"})),
            form(host, json!({"tbr": "x"})),
        ];
        assert_eq!(bitrates(&forms), [Some(48_250), Some(128_000), None, Some(500_000)]);
        let dubbed = [
            form(host, json!({"tbr": 32, "language_preference": -1, "language": "de"})),
            form(host, json!({"tbr": 64, "language_preference": 10, "language": "en"})),
        ];
        assert_eq!(bitrates(&dubbed), [Some(64_000)]);
        for nothing in [json!(null), json!({}), json!([]), json!([1, null, {}])] {
            assert!(addresses(Platform::YouTube, &nothing, HOSTS).is_empty());
        }
        let song = [form(host, json!({"tbr": 32})), form(host, json!({"tbr": 500, "vcodec": "h264"}))];
        let of_tiktok = addresses(Platform::TikTok, &json!(song), HOSTS);
        assert_eq!(of_tiktok.iter().map(|address| address.bitrate).collect::<Vec<_>>(), [Some(500_000)]);
        let many: Vec<_> = (0..50).map(|tbr| form(host, json!({"tbr": tbr}))).collect();
        assert_eq!(bitrates(&many).len(), ADDRESSES_MAX);
    }

    #[test]
    fn audio_url_only_browser_headers_are_copied() {
        let form = form(
            "a.googlevideo.com",
            json!({"http_headers": {"User-Agent": "Mozilla/5.0", "Referer": "https://www.youtube.com/",
                "Authorization": "Bearer x", "Host": "evil.example", "Accept": "a\nb", "Cookie": "z=1"}}),
        );
        let found = addresses(Platform::YouTube, &json!([form]), HOSTS);
        let names: Vec<_> = found[0].headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["referer", "user-agent"]);
    }

    #[test]
    fn cookie_list_only_matching_domain_is_sent() {
        let url = Url::parse("https://v16.tiktok.com/a").unwrap();
        let list = "a=\"1=2\"; Domain=.tiktok.com; Path=/; Secure; Expires=1795000000; b=3; Domain=v16.tiktok.com; \
                    Path=/; c=4; Domain=.example.org; Path=/; d=5; Domain=iktok.com; e=6; Path=/";
        assert_eq!(cookies(list, &url).unwrap(), "a=1=2; b=3");
        for none in ["", "a", "a=1", "a=1; Domain=", "a=1; Domain=.", "a=\n; Domain=.tiktok.com"] {
            assert_eq!(cookies(none, &url), None, "{none}");
        }
    }
}
