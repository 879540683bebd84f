//! Hosts of the platforms: the only place where host names are compared.
//!
//! Hosts are compared as a whole, never by substring or suffix, so that neither `evilyoutube.com` nor
//! `youtube.com.evil.example` passes. Only subdomains that are known to show videos are listed.

use super::Platform;

/// Kind of a host, which defines the grammar of its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostKind {
    /// YouTube's pages and players.
    YouTube,
    /// YouTube's short domain; the path is the id.
    YouTubeShort,
    /// YouTube's thumbnails; the path names the video.
    YouTubeImage,
    /// Google's pages that lead to a video (consent, sign-in, search results), with its link inside.
    GoogleRedirect,
    /// TikTok's pages and players.
    TikTok,
    /// TikTok's short-link hosts, with the canonical name of the host.
    TikTokShort(&'static str),
    /// Instagram's pages.
    Instagram,
    /// Instagram's redirect to other sites, with the link inside.
    InstagramRedirect,
    /// X's pages.
    X,
    /// X's embedding service; a parameter names the post or its link.
    XEmbed,
    /// X's short domain.
    XShort,
}

/// Returns the kind of a host given in lower case; `None` if it belongs to no platform.
pub(super) fn host_kind(host: &str) -> Option<HostKind> {
    let kind = match host {
        // gaming and studio show the same videos under the same ids; youtubeeducation is the player for schools.
        "youtube.com" | "www.youtube.com" | "m.youtube.com" | "music.youtube.com" | "gaming.youtube.com"
        | "studio.youtube.com" => HostKind::YouTube,
        "youtube-nocookie.com" | "www.youtube-nocookie.com" => HostKind::YouTube,
        "youtubekids.com" | "www.youtubekids.com" | "m.youtubekids.com" => HostKind::YouTube,
        "youtubeeducation.com" | "www.youtubeeducation.com" | "youtube.googleapis.com" => HostKind::YouTube,
        "youtu.be" | "www.youtu.be" | "y2u.be" | "www.y2u.be" => HostKind::YouTubeShort,
        "ytimg.com" | "i.ytimg.com" | "i1.ytimg.com" | "i2.ytimg.com" | "i3.ytimg.com" | "i4.ytimg.com"
        | "img.youtube.com" => HostKind::YouTubeImage,
        "consent.youtube.com" | "accounts.youtube.com" | "consent.google.com" | "accounts.google.com" => {
            HostKind::GoogleRedirect
        }
        // lite and t are the share hosts of TikTok's lighter apps; tiktokv occurs in its data exports.
        "tiktok.com" | "www.tiktok.com" | "m.tiktok.com" | "t.tiktok.com" | "lite.tiktok.com" => {
            HostKind::TikTok
        }
        "tiktokv.com" | "www.tiktokv.com" | "m.tiktokv.com" | "tiktokv.us" | "www.tiktokv.us" => {
            HostKind::TikTok
        }
        "vm.tiktok.com" => HostKind::TikTokShort("vm.tiktok.com"),
        "vt.tiktok.com" => HostKind::TikTokShort("vt.tiktok.com"),
        "instagram.com" | "www.instagram.com" | "m.instagram.com" | "instagr.am" | "www.instagr.am" => {
            HostKind::Instagram
        }
        "l.instagram.com" => HostKind::InstagramRedirect,
        "x.com" | "www.x.com" | "m.x.com" | "mobile.x.com" => HostKind::X,
        "twitter.com" | "www.twitter.com" | "m.twitter.com" | "mobile.twitter.com" => HostKind::X,
        "platform.twitter.com" | "platform.x.com" | "publish.twitter.com" | "publish.x.com" => {
            HostKind::XEmbed
        }
        // The displayed address of an image has the same code as its t.co link.
        "t.co" | "www.t.co" | "pic.twitter.com" | "pic.x.com" => HostKind::XShort,
        _ if is_x_mirror(host) => HostKind::X,
        _ if is_country_host(host) => HostKind::YouTube,
        _ if is_google(host) => HostKind::GoogleRedirect,
        _ => return None,
    };
    Some(kind)
}

/// Whether this is a country host such as `uk.youtube.com`.
///
/// YouTube used them until 2010 and still redirects from them. YouTube TV is another service with its own
/// listings.
fn is_country_host(host: &str) -> bool {
    host.strip_suffix(".youtube.com").is_some_and(|label| is_country(label) && label != "tv")
}

/// Mirrors of X: the same path on X is the post. A subdomain selects how the mirror shows it.
const X_MIRRORS: [&str; 4] = ["fxtwitter.com", "vxtwitter.com", "fixupx.com", "fixvx.com"];

fn is_x_mirror(host: &str) -> bool {
    X_MIRRORS.iter().any(|mirror| is_under(host, mirror))
}

/// Whether the host is the domain or one of its subdomains.
fn is_under(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|sub| sub.is_empty() || sub.ends_with('.'))
}

/// Whether this is Google's search on a country's domain: `google.de`, `google.co.uk`, `google.com.br`.
fn is_google(host: &str) -> bool {
    let host = host.strip_prefix("www.").unwrap_or(host);
    let Some(domain) = host.strip_prefix("google.") else { return false };
    let national = domain.strip_prefix("co.").or_else(|| domain.strip_prefix("com.")).unwrap_or(domain);
    domain == "com" || is_country(national)
}

fn is_country(label: &str) -> bool {
    label.len() == 2 && label.bytes().all(|c| c.is_ascii_lowercase())
}

/// Third-party front ends whose links people share; used only for a helpful error message.
const FRONT_ENDS: [(&str, Platform); 16] = [
    ("twittpr.com", Platform::X),
    ("xcancel.com", Platform::X),
    ("nitter.net", Platform::X),
    ("ddinstagram.com", Platform::Instagram),
    ("kkinstagram.com", Platform::Instagram),
    ("vxinstagram.com", Platform::Instagram),
    ("instagramez.com", Platform::Instagram),
    ("vxtiktok.com", Platform::TikTok),
    ("tnktok.com", Platform::TikTok),
    ("tiktxk.com", Platform::TikTok),
    ("hooktube.com", Platform::YouTube),
    ("invidio.us", Platform::YouTube),
    ("yewtu.be", Platform::YouTube),
    ("piped.video", Platform::YouTube),
    ("yourepeat.com", Platform::YouTube),
    ("koutube.com", Platform::YouTube),
];

/// Names of front-end programs; each instance has the name as a label of its host.
const FRONT_END_LABELS: [(&str, Platform); 4] = [
    ("invidious", Platform::YouTube),
    ("piped", Platform::YouTube),
    ("nitter", Platform::X),
    ("proxitok", Platform::TikTok),
];

/// Platform that a third-party host shows, if known.
pub(super) fn front_end_of(host: &str) -> Option<Platform> {
    let by_name = FRONT_ENDS.iter().find(|(domain, _)| is_under(host, domain));
    let by_label = || FRONT_END_LABELS.iter().find(|(name, _)| host.split('.').any(|label| label == *name));
    by_name.or_else(by_label).map(|&(_, platform)| platform)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(host: &str, expect: Option<HostKind>) {
        assert_eq!(host_kind(host), expect, "{host}");
    }

    #[test]
    fn host_kind_own_hosts_are_recognized() {
        check("www.youtube.com", Some(HostKind::YouTube));
        check("uk.youtube.com", Some(HostKind::YouTube));
        check("i.ytimg.com", Some(HostKind::YouTubeImage));
        check("www.google.co.uk", Some(HostKind::GoogleRedirect));
        check("google.com.br", Some(HostKind::GoogleRedirect));
        check("vt.tiktok.com", Some(HostKind::TikTokShort("vt.tiktok.com")));
        check("instagr.am", Some(HostKind::Instagram));
        check("mobile.x.com", Some(HostKind::X));
        check("pic.twitter.com", Some(HostKind::XShort));
        check("fixvx.com", Some(HostKind::X));
        check("d.fxtwitter.com", Some(HostKind::X));
    }

    #[test]
    fn host_kind_other_hosts_return_none() {
        for host in [
            "",
            "com",
            ".youtube.com",
            "tv.youtube.com",
            "evil.youtube.com",
            "www.www.youtube.com",
            "u1.youtube.com",
            "YOUTUBE.COM",
            "google.evil",
            "google.com.evil",
            "googlexcom",
            "netflix.com",
            "nottwitter.com",
            "notfxtwitter.com",
            "fxtwitter.com.evil",
            "x.com.",
        ] {
            check(host, None);
        }
    }

    #[test]
    fn front_end_matches_whole_labels_only() {
        assert_eq!(front_end_of("www.xcancel.com"), Some(Platform::X));
        assert_eq!(front_end_of("invidious.example.org"), Some(Platform::YouTube));
        assert_eq!(front_end_of("notxcancel.com"), None);
        assert_eq!(front_end_of("example.org"), None);
    }
}
