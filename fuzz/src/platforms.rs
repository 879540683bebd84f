//! Responses of the platforms, and the output of yt-dlp.

use transcript_core::{
    Timestamp,
    transcript::{LanguageTag, TrackSelector},
    video::{Platform, VideoId},
};
use upstream_reqwest::fuzzing;

use crate::seeds;

/// The player data of a YouTube video, and the pages that arrive in its place.
pub(crate) fn youtube(input: &[u8]) {
    let video = named_video(input, Platform::YouTube, &["\"videoId\":\"", "\"videoId\": \""]);
    let selectors = [None, LanguageTag::parse("en").ok(), LanguageTag::parse("de").ok()];
    for selector in selectors.map(|tag| tag.map_or(TrackSelector::Default, TrackSelector::Language)) {
        fuzzing::youtube::player_response(input, &video, &selector);
    }
    fuzzing::youtube::redirect(&String::from_utf8_lossy(input));
}

pub(crate) fn youtube_seeds() -> Vec<Vec<u8>> {
    let mut seeds = seeds::texts(&[
        r#"{"playabilityStatus":{"status":"OK"},"videoDetails":{"videoId":"dQw4w9WgXcQ","title":"A","author":"B",
            "lengthSeconds":"60","channelId":"UC","shortDescription":"0:00 a\n0:10 b\n0:20 - c","isLiveContent":true,
            "thumbnail":{"thumbnails":[{"url":"https://i.ytimg.com/a.jpg","width":9}]}},"microformat":{
            "playerMicroformatRenderer":{"ownerProfileUrl":"http://www.youtube.com/@b","publishDate":"2015-01-27"}},
            "responseContext":{"visitorData":"Cg"},
            "captions":{"playerCaptionsTracklistRenderer":{
            "captionTracks":[{"baseUrl":"https://www.youtube.com/api/timedtext?v=x","languageCode":"en","kind":"asr",
            "isTranslatable":true},{"baseUrl":"/api/timedtext?v=x&exp=xpe","languageCode":"fr","vssId":".fr",
            "name":{"simpleText":"F"}}],"audioTracks":[{"captionTrackIndices":[0],"defaultCaptionTrackIndex":0,
            "audioTrackId":"es.10"},{"audioTrackId":"en.4"}],
            "defaultAudioTrackIndex":0,"translationLanguages":[{"languageCode":"de"}]}},"streamingData":{
            "adaptiveFormats":[{"mimeType":"audio/mp4","bitrate":1,"contentLength":"9","audioTrack":{"audioIsDefault":
            true},"url":"https://r1.googlevideo.com/videoplayback?expire=1"}]}}"#,
        r#"{"playerResponse":{"playabilityStatus":{"status":"LOGIN_REQUIRED",
            "reason":"Sign in to confirm your age"}}}"#,
        r#"{"playabilityStatus":{"status":"LIVE_STREAM_OFFLINE","liveStreamability":{"liveStreamabilityRenderer":
            {"offlineSlate":{"liveStreamOfflineSlateRenderer":{"scheduledStartTime":"1"}}}}}}"#,
        r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}"#,
        "<html><script src=\"recaptcha/api.js\">",
        "https://consent.youtube.com/m",
        "https://www.google.com/sorry/index",
    ]);
    seeds.extend(seeds::recordings("youtube", &["json", "html"]));
    seeds
}

/// A page of a playlist or channel of YouTube.
pub(crate) fn youtube_lists(input: &[u8]) {
    fuzzing::youtube::list_response(input, Timestamp::from_millis(1_795_132_800_000));
}

pub(crate) fn youtube_list_seeds() -> Vec<Vec<u8>> {
    let mut seeds = seeds::texts(&[
        r#"{"responseContext":{"visitorData":"v"},"sidebar":{"playlistSidebarRenderer":{"items":[
            {"playlistSidebarPrimaryInfoRenderer":{"stats":[{"simpleText":"1,200 videos"}]}}]}},"contents":
            {"twoColumnBrowseResultsRenderer":{"tabs":[{"tabRenderer":{"selected":true,"title":"Videos","content":
            {"sectionListRenderer":{"contents":[{"itemSectionRenderer":{"contents":[{"lockupViewModel":{"contentId":
            "dQw4w9WgXcQ","contentType":"LOCKUP_CONTENT_TYPE_VIDEO","contentImage":{"thumbnailViewModel":{"overlays":
            [{"thumbnailBottomOverlayViewModel":{"badges":[{"thumbnailBadgeViewModel":{"text":"3:32"}}]}}]}},
            "metadata":{"lockupMetadataViewModel":{"title":{"content":"A"},"metadata":{"contentMetadataViewModel":
            {"metadataRows":[{"metadataParts":[{"text":{"content":"2 weeks ago"}}]}]}}}}}},
            {"continuationItemViewModel":{"continuationCommand":{"innertubeCommand":{"continuationCommand":
            {"token":"T"}}}}}]}}]}}}}]}}}"#,
        r#"{"onResponseReceivedActions":[{"appendContinuationItemsAction":{"continuationItems":[
            {"playlistVideoRenderer":{"videoId":"dQw4w9WgXcQ","title":{"runs":[{"text":"A"}]},"lengthSeconds":"9",
            "videoInfo":{"runs":[{"text":"1 year ago"}]},"isPlayable":false}},{"reelItemRenderer":{"videoId":
            "dQw4w9WgXcQ","headline":{"simpleText":"B"}}},{"shortsLockupViewModel":{"entityId":
            "shorts-item-dQw4w9WgXcQ"}},{"continuationItemRenderer":{"continuationEndpoint":
            {"commandExecutorCommand":{"commands":[{"continuationCommand":{"token":"T"}}]}}}}]}}]}"#,
        r#"{"alerts":[{"alertRenderer":{"type":"ERROR","text":{"simpleText":"This playlist is private."}}}]}"#,
    ]);
    seeds.extend(seeds::recordings("youtube-lists", &["json"]));
    seeds
}

/// The page of a TikTok post.
pub(crate) fn tiktok(input: &[u8]) {
    fuzzing::tiktok::page(input);
}

pub(crate) fn tiktok_seeds() -> Vec<Vec<u8>> {
    seeds::recordings("tiktok", &["html"])
}

/// The page of an Instagram post.
pub(crate) fn instagram(input: &[u8]) {
    let video = named_video(input, Platform::Instagram, &["\"code\":\"", "\"shortcode\":\""]);
    fuzzing::instagram::page(input, video.id());
}

pub(crate) fn instagram_seeds() -> Vec<Vec<u8>> {
    seeds::recordings("instagram", &["html"])
}

/// A post on X, in the formats of both services.
pub(crate) fn x(input: &[u8]) {
    let video = named_video(
        input,
        Platform::X,
        &["\"rest_id\":\"", "\"rest_id\": \"", "\"id_str\":\"", "\"id_str\": \""],
    );
    fuzzing::x::post(input, &video);
    let text = String::from_utf8_lossy(input);
    let decoded = fuzzing::x::decode_entities(&text);
    assert!(decoded.len() <= text.len(), "decoding never adds text");
}

pub(crate) fn x_seeds() -> Vec<Vec<u8>> {
    seeds::recordings("x", &["json"])
}

/// HLS playlists.
pub(crate) fn playlists(input: &[u8]) {
    fuzzing::x::playlist(&String::from_utf8_lossy(input));
}

pub(crate) fn playlist_seeds() -> Vec<Vec<u8>> {
    let mut seeds = seeds::texts(&[
        "#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"audio-32000\",NAME=\"a\",URI=\"/a/32.m3u8\"\n\
         #EXT-X-STREAM-INF:BANDWIDTH=256000,CODECS=\"avc1,mp4a\",AUDIO=\"audio-32000\"\n/v/1.m3u8\n",
        "#EXTM3U\n#EXT-X-MAP:URI=\"init.mp4\"\n#EXTINF:3.0,\n1.m4s\n#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI=\"init.mp4\"\n\
         2.m4s\n#EXT-X-ENDLIST\n",
        "\u{FEFF}#EXTM3U\r\n#EXT-X-KEY:METHOD=NONE\r\n#EXT-X-BYTERANGE:1@2\r\n",
    ]);
    seeds.extend(seeds::recordings("x", &["m3u8"]));
    seeds
}

/// The first byte selects the platform, and errors (a to d), or metadata and entries of a list (A to D).
pub(crate) fn ytdlp(input: &[u8]) {
    let Some((&selector, rest)) = input.split_first() else { return };
    let platforms = [Platform::YouTube, Platform::TikTok, Platform::Instagram, Platform::X];
    let index = usize::from(selector.to_ascii_lowercase().wrapping_sub(b'a'));
    let Some(&platform) = platforms.get(index) else { return };
    let video = named_video(rest, platform, &["\"id\":\"", "\"id\": \"", "\"display_id\": \""]);
    if selector.is_ascii_uppercase() {
        fuzzing::ytdlp::info(rest, &video);
        fuzzing::ytdlp::list(rest, &video);
    } else {
        let errors = String::from_utf8_lossy(rest);
        for status in [None, Some(0), Some(1), Some(2)] {
            fuzzing::ytdlp::errors(status, &errors, &video);
        }
    }
}

pub(crate) fn ytdlp_seeds() -> Vec<Vec<u8>> {
    seeds::texts(&[
        r#"A{"id":"dQw4w9WgXcQ","fulltitle":"A","channel":"B","duration":60.5,"language":"en",
            "live_status":"not_live",
            "subtitles":{"de-CcQ45jRV4-E":[{"ext":"vtt","url":
            "https://www.youtube.com/api/timedtext?v=x&name=a&lang=de"}]},"automatic_captions":{
            "fr-orig":[{"url":"https://www.youtube.com/api/timedtext?v=x&kind=asr&lang=fr"}],
            "en":[{"url":"https://www.youtube.com/api/timedtext?v=x&kind=asr&lang=fr&tlang=en"}],
            "en-de-CcQ45jRV4-E":[{"url":
            "https://www.youtube.com/api/timedtext?v=x&name=a&lang=de&tlang=en-de-CcQ45jRV4-E"}]},
            "formats":[{"acodec":"mp4a","vcodec":"none","abr":48,
            "url":"https://r1.googlevideo.com/videoplayback","protocol":"https","filesize":9,"language_preference":1,
            "http_headers":{"User-Agent":"x"}}],"http_headers":{}}"#,
        r#"D{"_type":"playlist","id":"20","entries":[{"id":"21","display_id":"20","title":"a &amp; b","uploader":"C",
            "subtitles":{"en":[{"url":"https://video.twimg.com/a.m3u8"}]},
            "formats":[{"format_id":"hls-audio-32000-Audio",
            "url":"https://video.twimg.com/a.mp4","vcodec":"none","tbr":32.0}]}]}"#,
        r#"B{"id":"7123456789012345678","subtitles":{"eng-US":[{"url":"https://v16.tiktokcdn.com/a"}]},
            "live_status":"is_upcoming","release_timestamp":1,"formats":[]}"#,
        "aERROR: [youtube] dQw4w9WgXcQ: Sign in to confirm you're not a bot. Use --cookies-from-browser\n",
        "aWARNING: [youtube] x\nERROR: [youtube] dQw4w9WgXcQ: Video unavailable. This video is private\n",
        "bERROR: [TikTok] 7: Unable to download webpage: HTTP Error 403: Forbidden (caused by <HTTPError 403>)\n",
        "dERROR: [twitter] 20: Unable to download JSON metadata: HTTP Error 404: Not Found\n",
        "cERROR: [Instagram] x: rate-limit reached or login required\n",
        "B{\"id\":\"7123456789012345678\",\"title\":\"a\",\"duration\":31,\"timestamp\":1790000000,\"channel\":\"b\",\
         \"playlist_title\":\"c\",\"playlist_count\":2}\n{\"id\":\"7123456789012345679\",\"uploader\":\"d\"}\n",
        "bERROR: [tiktok:user] c: This user's account is private. Log into an account that has access\n",
        "aERROR: [youtube:tab] PL1: YouTube said: The playlist does not exist.\n",
        "aNo module named 'yt_dlp'",
    ])
}

/// The video whose id follows one of these marks in the input, so that the parsers read all of it; else a fixed one.
fn named_video(input: &[u8], platform: Platform, marks: &[&str]) -> VideoId {
    let text = String::from_utf8_lossy(input);
    let named = marks.iter().find_map(|mark| {
        let (_, rest) = text.split_once(mark)?;
        VideoId::new(platform, rest.split('"').next()?).ok()
    });
    let fallback = match platform {
        Platform::YouTube => "dQw4w9WgXcQ",
        Platform::TikTok => "7123456789012345678",
        Platform::Instagram => "DaB3-_xYz01",
        Platform::X => "20",
    };
    named.unwrap_or_else(|| VideoId::new(platform, fallback).expect("a valid id"))
}
