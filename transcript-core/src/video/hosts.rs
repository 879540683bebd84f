//! Which host belongs to which platform: the only place where host names are compared.
//!
//! Hosts are compared whole, never by what they contain or end in, so that neither `evilyoutube.com` nor
//! `youtube.com.evil.example` passes. Only subdomains that are known to show videos are listed.

use super::Platform;

/// What is found at a host, and so which grammar its links follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Site {
    /// YouTube's pages and players.
    YouTube,
    /// YouTube's short domain, where the path is the id.
    YouTubeShort,
    /// YouTube's thumbnails, whose path names the video.
    YouTubeImage,
    /// Google's pages on the way to a video (consent, sign-in, search results), with its link inside.
    GooglePassage,
    /// TikTok's pages and players.
    TikTok,
    /// TikTok's hosts for short links; the canonical name of the host.
    TikTokShort(&'static str),
    /// Instagram's pages.
    Instagram,
    /// Instagram's passage to other sites, with the link inside.
    InstagramPassage,
    /// X's pages.
    X,
    /// X's embedding service, where a parameter names the post or its link.
    XEmbed,
    /// X's short domain.
    XShort,
}

/// The site at a host that is given in lower case, if it is one of the platforms' own.
pub(super) fn site_of(host: &str) -> Option<Site> {
    let site = match host {
        // gaming and studio show the same videos under the same ids; youtubeeducation is the player for schools.
        "youtube.com" | "www.youtube.com" | "m.youtube.com" | "music.youtube.com" | "gaming.youtube.com"
        | "studio.youtube.com" => Site::YouTube,
        "youtube-nocookie.com" | "www.youtube-nocookie.com" => Site::YouTube,
        "youtubekids.com" | "www.youtubekids.com" | "m.youtubekids.com" => Site::YouTube,
        "youtubeeducation.com" | "www.youtubeeducation.com" | "youtube.googleapis.com" => Site::YouTube,
        "youtu.be" | "www.youtu.be" | "y2u.be" | "www.y2u.be" => Site::YouTubeShort,
        "ytimg.com" | "i.ytimg.com" | "i1.ytimg.com" | "i2.ytimg.com" | "i3.ytimg.com" | "i4.ytimg.com"
        | "img.youtube.com" => Site::YouTubeImage,
        "consent.youtube.com" | "accounts.youtube.com" | "consent.google.com" | "accounts.google.com" => {
            Site::GooglePassage
        }
        // lite and t are the hosts that TikTok's lighter apps share from; tiktokv is in its data exports.
        "tiktok.com" | "www.tiktok.com" | "m.tiktok.com" | "t.tiktok.com" | "lite.tiktok.com" => Site::TikTok,
        "tiktokv.com" | "www.tiktokv.com" | "m.tiktokv.com" | "tiktokv.us" | "www.tiktokv.us" => Site::TikTok,
        "vm.tiktok.com" => Site::TikTokShort("vm.tiktok.com"),
        "vt.tiktok.com" => Site::TikTokShort("vt.tiktok.com"),
        "instagram.com" | "www.instagram.com" | "m.instagram.com" | "instagr.am" | "www.instagr.am" => {
            Site::Instagram
        }
        "l.instagram.com" => Site::InstagramPassage,
        "x.com" | "www.x.com" | "m.x.com" | "mobile.x.com" => Site::X,
        "twitter.com" | "www.twitter.com" | "m.twitter.com" | "mobile.twitter.com" => Site::X,
        "platform.twitter.com" | "platform.x.com" | "publish.twitter.com" | "publish.x.com" => Site::XEmbed,
        // A picture's displayed address has the same code as its t.co link.
        "t.co" | "www.t.co" | "pic.twitter.com" | "pic.x.com" => Site::XShort,
        _ if is_country_host(host) => Site::YouTube,
        _ if is_google(host) => Site::GooglePassage,
        _ => return None,
    };
    Some(site)
}

/// Whether this is one of the country hosts, such as `uk.youtube.com`, that YouTube used until 2010 and still
/// redirects from. YouTube TV is another service, with listings of its own.
fn is_country_host(host: &str) -> bool {
    host.strip_suffix(".youtube.com").is_some_and(|label| is_country(label) && label != "tv")
}

/// Whether this is Google's search under a country's domain: `google.de`, `google.co.uk`, `google.com.br`.
fn is_google(host: &str) -> bool {
    let host = host.strip_prefix("www.").unwrap_or(host);
    let Some(domain) = host.strip_prefix("google.") else { return false };
    let national = domain.strip_prefix("co.").or_else(|| domain.strip_prefix("com.")).unwrap_or(domain);
    domain == "com" || is_country(national)
}

fn is_country(label: &str) -> bool {
    label.len() == 2 && label.bytes().all(|c| c.is_ascii_lowercase())
}

/// Third-party front ends that people share links of; only for an error that helps.
const FRONT_ENDS: [(&str, Platform); 20] = [
    ("fxtwitter.com", Platform::Microblog),
    ("vxtwitter.com", Platform::Microblog),
    ("fixupx.com", Platform::Microblog),
    ("fixvx.com", Platform::Microblog),
    ("twittpr.com", Platform::Microblog),
    ("xcancel.com", Platform::Microblog),
    ("nitter.net", Platform::Microblog),
    ("ddinstagram.com", Platform::Reels),
    ("kkinstagram.com", Platform::Reels),
    ("vxinstagram.com", Platform::Reels),
    ("instagramez.com", Platform::Reels),
    ("vxtiktok.com", Platform::ShortVideo),
    ("tnktok.com", Platform::ShortVideo),
    ("tiktxk.com", Platform::ShortVideo),
    ("hooktube.com", Platform::VideoSite),
    ("invidio.us", Platform::VideoSite),
    ("yewtu.be", Platform::VideoSite),
    ("piped.video", Platform::VideoSite),
    ("yourepeat.com", Platform::VideoSite),
    ("koutube.com", Platform::VideoSite),
];

/// The programs behind such front ends; their instances carry the name as a label.
const FRONT_END_LABELS: [(&str, Platform); 4] = [
    ("invidious", Platform::VideoSite),
    ("piped", Platform::VideoSite),
    ("nitter", Platform::Microblog),
    ("proxitok", Platform::ShortVideo),
];

/// The platform that a third-party host shows, where it is known to do so.
pub(super) fn front_end_of(host: &str) -> Option<Platform> {
    let is_under =
        |domain: &str| host.strip_suffix(domain).is_some_and(|sub| sub.is_empty() || sub.ends_with('.'));
    let by_name = FRONT_ENDS.iter().find(|(domain, _)| is_under(domain));
    let by_label = || FRONT_END_LABELS.iter().find(|(name, _)| host.split('.').any(|label| label == *name));
    by_name.or_else(by_label).map(|&(_, platform)| platform)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(host: &str, expect: Option<Site>) {
        assert_eq!(site_of(host), expect, "{host}");
    }

    #[test]
    fn own_hosts_are_known() {
        check("www.youtube.com", Some(Site::YouTube));
        check("uk.youtube.com", Some(Site::YouTube));
        check("i.ytimg.com", Some(Site::YouTubeImage));
        check("www.google.co.uk", Some(Site::GooglePassage));
        check("google.com.br", Some(Site::GooglePassage));
        check("vt.tiktok.com", Some(Site::TikTokShort("vt.tiktok.com")));
        check("instagr.am", Some(Site::Instagram));
        check("mobile.x.com", Some(Site::X));
        check("pic.twitter.com", Some(Site::XShort));
    }

    #[test]
    fn everything_else_is_foreign() {
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
            "x.com.",
        ] {
            check(host, None);
        }
    }

    #[test]
    fn front_ends_are_recognised_whole() {
        assert_eq!(front_end_of("d.fxtwitter.com"), Some(Platform::Microblog));
        assert_eq!(front_end_of("invidious.example.org"), Some(Platform::VideoSite));
        assert_eq!(front_end_of("notfxtwitter.com"), None);
        assert_eq!(front_end_of("example.org"), None);
    }
}
