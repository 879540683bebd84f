//! Parses a player response. No I/O, and total: every byte sequence has a result.

use std::borrow::Cow;

use serde_json::Value;
use transcript_core::{transcript::LiveStatus, video::VideoId};

use super::{
    classify::{self, Playability},
    details::YouTubeDetails,
    failure::YouTubeFailure,
    id_spelling::is_same,
    player_data::StreamingData,
    tracks::{YouTubeTrackList, unknown_format},
};
use crate::json::{field, items};

/// Maximum length of a visitor id in characters.
const VISITOR_MAX: usize = 1_024;

/// The outcome of a player response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PlayerOutcome {
    /// The video plays and has caption tracks.
    Tracks {
        /// The video's title, author and length.
        details: Box<YouTubeDetails>,
        /// At least one track.
        tracks: YouTubeTrackList,
    },
    /// No usable tracks, for this reason.
    Failed(YouTubeFailure),
}

/// A parsed player response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlayerResponse {
    pub(super) outcome: PlayerOutcome,
    /// The visitor id that YouTube assigned, to be sent with the next request.
    pub(super) visitor: Option<String>,
}

/// Parses the response to a request for the video `requested`.
pub(super) fn interpret(body: &[u8], requested: &VideoId) -> PlayerResponse {
    // Nearly every body is valid UTF-8, and checking that is much cheaper than a lossy conversion.
    let text = std::str::from_utf8(body).map_or_else(|_| String::from_utf8_lossy(body), Cow::Borrowed);
    let failed = |failure| PlayerResponse { outcome: PlayerOutcome::Failed(failure), visitor: None };
    let Some(data) = StreamingData::read(&text) else {
        return failed(classify::page(body).unwrap_or(YouTubeFailure::NotPlayerData));
    };
    if data.playability_status.is_null() && text.trim() == "{}" {
        // The response of some endpoints to an id that does not exist.
        return failed(YouTubeFailure::Unavailable);
    }
    let visitor = self::text(field(&data.response_context, "visitorData"), VISITOR_MAX + 1);
    let visitor = visitor.filter(|visitor| visitor.chars().count() <= VISITOR_MAX);
    PlayerResponse { outcome: outcome(&data, requested), visitor }
}

fn outcome(data: &StreamingData, requested: &VideoId) -> PlayerOutcome {
    let failed = PlayerOutcome::Failed;
    let details = match playable(data, requested) {
        Ok(details) => details,
        Err(failure) => return failed(failure),
    };
    let Some(captions) = &data.captions else { return failed(YouTubeFailure::NotPlayerData) };
    let tracks = YouTubeTrackList::read(captions);
    if !tracks.is_empty() {
        return PlayerOutcome::Tracks { details: Box::new(details), tracks };
    }
    failed(if details.is_ended {
        YouTubeFailure::JustEnded
    } else if YouTubeTrackList::is_absent(captions) {
        YouTubeFailure::NoCaptions
    } else {
        unknown_format()
    })
}

/// The metadata of a playable video, whether or not it has captions.
pub(super) fn playable(data: &StreamingData, requested: &VideoId) -> Result<YouTubeDetails, YouTubeFailure> {
    if data.playability_status.is_null() {
        return Err(error(&data.error));
    }
    let details = YouTubeDetails::read(&data.video_details, &data.microformat);
    let signals = Playability::new(&data.playability_status, &details);
    if let Some(block) = signals.block() {
        return Err(block);
    }
    if details.video.as_deref().is_some_and(|video| !is_same(video, requested.id())) {
        return Err(YouTubeFailure::OtherVideo);
    }
    if !signals.is_ok() {
        return Err(signals.failure());
    }
    if details.video.is_none() {
        // Without an id the response may concern any video.
        return Err(YouTubeFailure::NotPlayerData);
    }
    match details.metadata.live {
        Some(LiveStatus::Upcoming) => Err(signals.upcoming()),
        // A live stream may have some captions already, but most are still to come.
        Some(LiveStatus::Live) => Err(YouTubeFailure::Live),
        _ => Ok(details),
    }
}

/// Classifies an error object, which some responses contain instead of player data.
fn error(error: &Value) -> YouTubeFailure {
    let code = field(error, "code").as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(0);
    match (field(error, "status").as_str(), code) {
        (Some("FAILED_PRECONDITION"), _) => YouTubeFailure::TooOld,
        (Some("RESOURCE_EXHAUSTED"), _) => YouTubeFailure::SessionLimit,
        (Some("PERMISSION_DENIED"), _) | (_, 403) => YouTubeFailure::Forbidden,
        (Some(_), code) if error.is_object() => YouTubeFailure::BadRequest(code),
        (None, code) if code > 0 => YouTubeFailure::BadRequest(code),
        _ => YouTubeFailure::NotPlayerData,
    }
}

/// The text in one of YouTube's text formats, at most `max` characters of it; `None` if empty.
pub(super) fn text(value: &Value, max: usize) -> Option<String> {
    let whole = match value {
        Value::String(text) => text.clone(),
        Value::Object(_) => match field(value, "simpleText").as_str() {
            Some(text) => text.to_owned(),
            None => items(value, "runs", max).filter_map(|run| field(run, "text").as_str()).collect(),
        },
        _ => return None,
    };
    let text: String = whole.trim().chars().take(max).collect();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use transcript_core::{time::Timestamp, video::Platform};

    use super::{
        super::player_data::{CAPTIONS_MAX, PART_MAX},
        *,
    };

    const ID: &str = "vb-player-0";

    fn video(id: &str) -> VideoId {
        VideoId::new(Platform::YouTube, id).unwrap()
    }

    fn outcome(body: &str) -> PlayerOutcome {
        interpret(body.as_bytes(), &video(ID)).outcome
    }

    fn check(body: &Value, expect: YouTubeFailure) {
        assert_eq!(outcome(&body.to_string()), PlayerOutcome::Failed(expect), "{body}");
    }

    fn details(more: Value) -> Value {
        let mut details =
            json!({"videoId": ID, "title": "A mill", "author": "Miller", "lengthSeconds": "90"});
        details.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        details
    }

    #[test]
    fn player_microformat_has_date() {
        let mut body = playable_response(json!({}), captions());
        body["microformat"] = json!({"playerMicroformatRenderer": {"publishDate": "2015-01-27"}});
        let PlayerOutcome::Tracks { details, .. } = outcome(&body.to_string()) else { panic!("no tracks") };
        assert_eq!(details.metadata.published_at, Timestamp::parse("2015-01-27T00:00:00Z"));
    }

    fn playable_response(more: Value, captions: Value) -> Value {
        json!({"playabilityStatus": {"status": "OK"}, "videoDetails": details(more), "captions": captions})
    }

    fn captions() -> Value {
        json!({"playerCaptionsTracklistRenderer": {"captionTracks": [
            {"baseUrl": "https://www.youtube.com/api/timedtext?v=x", "languageCode": "en"},
        ]}})
    }

    #[test]
    fn player_tracks_have_details() {
        let PlayerOutcome::Tracks { details, tracks } =
            outcome(&playable_response(json!({}), captions()).to_string())
        else {
            panic!("no tracks")
        };
        assert_eq!((details.title.as_deref(), details.author.as_deref()), (Some("A mill"), Some("Miller")));
        assert_eq!(details.duration_ms, Some(90_000));
        assert_eq!(tracks.infos().len(), 1);
        // The wrapper of some endpoints changes nothing, and a wrong type affects only itself.
        let wrapped = json!({"playerResponse": playable_response(json!({"title": 5, "lengthSeconds": "0"}), captions())});
        let PlayerOutcome::Tracks { details, .. } = outcome(&wrapped.to_string()) else {
            panic!("no tracks")
        };
        assert_eq!((details.title, details.duration_ms), (None, None));
    }

    #[test]
    fn player_half_emoji_costs_one_character() {
        let body = playable_response(json!({"title": "A mill HALF"}), captions()).to_string();
        let PlayerOutcome::Tracks { details, .. } = outcome(&body.replace("HALF", "\\ud83d")) else {
            panic!("no tracks")
        };
        assert_eq!(details.title.as_deref(), Some("A mill \u{FFFD}"));
    }

    #[test]
    fn player_visitor_id_is_returned() {
        let mut body = playable_response(json!({}), captions());
        for (mark, expect) in
            [(json!("Cgs3"), Some("Cgs3")), (json!("x".repeat(2_000)), None), (json!(3), None)]
        {
            body["responseContext"] = json!({"visitorData": mark});
            let response = interpret(body.to_string().as_bytes(), &video(ID));
            assert_eq!(response.visitor.as_deref(), expect);
        }
    }

    #[test]
    fn failure_is_classified_by_sentence() {
        use YouTubeFailure::{
            Age, BotCheck, JustEnded, Members, MusicPremium, Payment, Private, RecordingRemoved, Region,
            Removed, SessionLimit, TooOld, Unavailable, WrongClient,
        };
        for (status, reason, expect) in [
            ("LOGIN_REQUIRED", "Sign in to confirm you\u{2019}re not a bot", BotCheck),
            ("LOGIN_REQUIRED", "SIGN IN TO CONFIRM YOU'RE NOT A BOT", BotCheck),
            ("UNPLAYABLE", "Sign in to confirm you're not a bot", BotCheck),
            ("UNPLAYABLE", "This content isn\u{2019}t available, try again later.", SessionLimit),
            ("ERROR", "This content isn't available, try again later", SessionLimit),
            ("LOGIN_REQUIRED", "Sign in to confirm your age", Age),
            ("LOGIN_REQUIRED", "This video may be inappropriate for some users.", Age),
            ("UNPLAYABLE", "This video is age-restricted and only available on YouTube.", Age),
            ("AGE_CHECK_REQUIRED", "", Age),
            ("AGE_VERIFICATION_REQUIRED", "Anything", Age),
            ("LOGIN_REQUIRED", "This video is private", Private),
            ("ERROR", "Private video", Private),
            ("UNPLAYABLE", "This video is only available to Music Premium members", MusicPremium),
            ("UNPLAYABLE", "This video is available to this channel's members on level: Gold", Members),
            ("UNPLAYABLE", "Join this channel to get access to members-only content", Members),
            ("UNPLAYABLE", "This video requires payment to watch.", Payment),
            ("UNPLAYABLE", "The uploader has not made this video available in your country", Region),
            ("UNPLAYABLE", "It contains content from X, who has blocked it in your country", Region),
            ("UNPLAYABLE", "This live stream recording is not available.", RecordingRemoved),
            ("LIVE_STREAM_OFFLINE", "This live event has ended.", JustEnded),
            ("ERROR", "This video has been removed by the uploader", Removed),
            ("ERROR", "No longer available: the account has been terminated.", Removed),
            ("ERROR", "This video is not available due to a copyright claim", Removed),
            ("UNPLAYABLE", "Watch on the latest version of YouTube.", TooOld),
            ("UNPLAYABLE", "YouTube is no longer supported in this application or device", TooOld),
            ("ERROR", "This video is unavailable", Unavailable),
            ("ERROR", "Video unavailable", Unavailable),
            ("ERROR", "", Unavailable),
            ("UNPLAYABLE", "This video is not available", WrongClient),
            ("UNPLAYABLE", "Video unavailable", WrongClient),
            ("UNPLAYABLE", "", WrongClient),
            ("LOGIN_REQUIRED", "Please sign in", YouTubeFailure::Login),
            ("CONTENT_CHECK_REQUIRED", "The following content may upset", YouTubeFailure::Login),
            ("UNPLAYABLE", "Some new reason.", YouTubeFailure::Other("Some new reason".to_owned())),
            ("CUSTOM", "Line\none \"two\"", YouTubeFailure::Other("Line one  two".to_owned())),
            ("CUSTOM", "", YouTubeFailure::Other("CUSTOM".to_owned())),
        ] {
            let body = |playability: Value| json!({"playabilityStatus": playability});
            check(&body(json!({"status": status, "reason": reason})), expect.clone());
            if matches!(expect, YouTubeFailure::Other(_)) || status == "UNPLAYABLE" {
                continue;
            }
            // The same sentence in the other fields and text formats.
            let screen =
                |name: &str, screen: Value| body(json!({"status": status, "errorScreen": {name: screen}}));
            let runs = json!({"runs": [{"text": reason}]});
            check(&body(json!({"status": status, "messages": [reason]})), expect.clone());
            check(
                &screen(
                    "playerErrorMessageRenderer",
                    json!({"reason": "Video unavailable", "subreason": runs}),
                ),
                expect.clone(),
            );
            check(
                &screen("playerErrorMessageRenderer", json!({"reason": {"simpleText": reason}})),
                expect.clone(),
            );
            let interstitial = json!({"title": {"content": "?"}, "description": {"content": reason}});
            let interstitial = json!({"content": {"interstitialViewModel": interstitial}});
            check(&screen("playerInterstitialRenderer", interstitial), expect.clone());
            check(&screen("confirmDialogRenderer", json!({"dialogMessages": [runs]})), expect);
        }
    }

    #[test]
    fn failure_is_classified_by_structure_in_any_language() {
        let body = |playability: Value| json!({"playabilityStatus": playability});
        let sign_in = "Đăng nhập để xác nhận";
        let help = json!({"runs": [{"text": "?", "navigationEndpoint": {"urlEndpoint": {
            "url": "https://support.google.com/youtube/answer/3037019#zippy=x"}}}]});
        check(
            &body(json!({"status": "LOGIN_REQUIRED", "reason": sign_in, "desktopLegacyAgeGateReason": 1})),
            YouTubeFailure::Age,
        );
        let mut gated = body(json!({"status": "LOGIN_REQUIRED", "reason": sign_in}));
        check(&gated, YouTubeFailure::Login);
        gated["videoDetails"] = details(json!({}));
        check(&gated, YouTubeFailure::Age);
        check(
            &body(json!({"status": "LOGIN_REQUIRED", "reason": sign_in,
                "errorScreen": {"playerErrorMessageRenderer": {"subreason": help}}})),
            YouTubeFailure::BotCheck,
        );
        check(
            &body(json!({"status": "LOGIN_REQUIRED", "errorScreen": {"playerCaptchaViewModel": {}}})),
            YouTubeFailure::Captcha,
        );
        check(
            &body(json!({"status": "UNPLAYABLE", "reason": "?",
                "errorScreen": {"playerLegacyDesktopYpcOfferRenderer": {"offerId": "1"}}})),
            YouTubeFailure::Payment,
        );
    }

    #[test]
    fn failure_upcoming_and_live_are_classified() {
        let slate = |start: Value| {
            json!({"playabilityStatus": {"status": "LIVE_STREAM_OFFLINE", "reason": "Soon.",
                "liveStreamability": {"liveStreamabilityRenderer": {"offlineSlate": {
                    "liveStreamOfflineSlateRenderer": {"scheduledStartTime": start}}}}}})
        };
        let start = Some(Timestamp::from_millis(1_677_592_800_000));
        check(&slate(json!("1677592800")), YouTubeFailure::Upcoming(start));
        check(&slate(json!(1_677_592_800)), YouTubeFailure::Upcoming(start));
        check(&slate(json!("soon")), YouTubeFailure::Upcoming(None));
        check(&slate(json!(-5)), YouTubeFailure::Upcoming(None));
        check(&playable_response(json!({"isUpcoming": true}), json!(null)), YouTubeFailure::Upcoming(None));
        check(
            &playable_response(json!({"isLive": true, "lengthSeconds": "0"}), json!(null)),
            YouTubeFailure::Live,
        );
        check(&playable_response(json!({"isLive": true}), captions()), YouTubeFailure::Live);
        let mut on_now = playable_response(json!({"isLiveContent": true}), captions());
        on_now["microformat"] =
            json!({"playerMicroformatRenderer": {"liveBroadcastDetails": {"isLiveNow": true}}});
        check(&on_now, YouTubeFailure::Live);
        check(&playable_response(json!({"isPostLiveDvr": true}), json!(null)), YouTubeFailure::JustEnded);
        let mut processed = slate(json!(1_677_592_800));
        processed["videoDetails"] = details(json!({"isPostLiveDvr": true}));
        check(&processed, YouTubeFailure::JustEnded);
        check(&playable_response(json!({"isLiveContent": true}), json!(null)), YouTubeFailure::NoCaptions);
    }

    #[test]
    fn player_other_video_is_rejected() {
        let other = json!({"videoId": "vb-others-0"});
        check(&playable_response(other.clone(), captions()), YouTubeFailure::OtherVideo);
        check(
            &json!({"playabilityStatus": {"status": "ERROR", "reason": "Private video"}, "videoDetails": other}),
            YouTubeFailure::OtherVideo,
        );
        check(&playable_response(json!({"videoId": null}), captions()), YouTubeFailure::NotPlayerData);
        // Of the last character only four bits count.
        let same = json!({"videoId": "vb-player-1"});
        assert!(matches!(
            outcome(&playable_response(same, captions()).to_string()),
            PlayerOutcome::Tracks { .. }
        ));
    }

    #[test]
    fn player_unknown_response_is_classified() {
        let error = |error: Value| json!({"error": error}).to_string();
        for (body, expect) in [
            (error(json!({"code": 400, "status": "FAILED_PRECONDITION"})), YouTubeFailure::TooOld),
            (error(json!({"code": 429, "status": "RESOURCE_EXHAUSTED"})), YouTubeFailure::SessionLimit),
            (error(json!({"code": 403, "status": "PERMISSION_DENIED"})), YouTubeFailure::Forbidden),
            (error(json!({"code": 400, "status": "INVALID_ARGUMENT"})), YouTubeFailure::BadRequest(400)),
            (error(json!({"code": 404})), YouTubeFailure::BadRequest(404)),
            (error(json!("?")), YouTubeFailure::NotPlayerData),
            ("{}".to_owned(), YouTubeFailure::Unavailable),
            (" {} \n".to_owned(), YouTubeFailure::Unavailable),
            (r#"{"responseContext":{}}"#.to_owned(), YouTubeFailure::NotPlayerData),
            (r#"{"playerResponse":{}}"#.to_owned(), YouTubeFailure::NotPlayerData),
            (r#"{"playabilityStatus":"OK"}"#.to_owned(), YouTubeFailure::Other(String::new())),
            (String::new(), YouTubeFailure::NotPlayerData),
            ("[]".to_owned(), YouTubeFailure::NotPlayerData),
            ("<html><b>hello".to_owned(), YouTubeFailure::NotPlayerData),
            (r#" <div class="g-recaptcha">"#.to_owned(), YouTubeFailure::Captcha),
            (r#"<form action="https://consent.youtube.com/s">"#.to_owned(), YouTubeFailure::Consent),
            ("[".repeat(100_000), YouTubeFailure::NotPlayerData),
            (format!("{{\"captions\":{}", "[".repeat(100_000)), YouTubeFailure::NotPlayerData),
        ] {
            assert_eq!(outcome(&body), PlayerOutcome::Failed(expect), "{}", &body[..body.len().min(80)]);
        }
        let list = |tracks: Value| json!({"playerCaptionsTracklistRenderer": {"captionTracks": tracks}});
        let bare = json!({"playerCaptionsTracklistRenderer": {"audioTracks": [{}]}});
        let old = json!({"playerCaptionsRenderer": {"baseUrl": "https://x/t", "visibility": "OFF"}});
        let is_ended = json!({"isPostLiveDvr": true});
        check(&playable_response(is_ended.clone(), old.clone()), YouTubeFailure::JustEnded);
        check(&playable_response(is_ended, json!("?")), YouTubeFailure::JustEnded);
        for none in [json!(null), json!({}), old, bare, list(json!(null)), list(json!([]))] {
            check(&playable_response(json!({}), none), YouTubeFailure::NoCaptions);
        }
        let renamed = json!({"captionsTracklistViewModel": captions()["playerCaptionsTracklistRenderer"]});
        let object = list(json!({"0": {"baseUrl": "x", "languageCode": "en"}}));
        for unknown in [list(json!([{"url": "x"}])), object, renamed, json!([]), json!("?")] {
            check(&playable_response(json!({}), unknown), unknown_format());
        }
    }

    #[test]
    fn player_oversized_part_is_not_read() {
        let filling = |length: usize| json!(vec![json!({}); length / 3]);
        check(&playable_response(json!({}), filling(CAPTIONS_MAX + 100)), YouTubeFailure::NotPlayerData);
        let fits = json!({"playerCaptionsTracklistRenderer": {"audioTracks": filling(CAPTIONS_MAX - 100)}});
        check(&playable_response(json!({}), fits), YouTubeFailure::NoCaptions);
        check(
            &playable_response(json!({"keywords": filling(PART_MAX)}), captions()),
            YouTubeFailure::NotPlayerData,
        );
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let body = playable_response(json!({}), json!("DEEP")).to_string().replace("\"DEEP\"", &deep);
        assert_eq!(outcome(&body), PlayerOutcome::Failed(YouTubeFailure::NotPlayerData));
        // Skipped parts may be of any size.
        let mut body = playable_response(json!({}), captions());
        body["streamingData"] = filling(4 * CAPTIONS_MAX);
        assert!(matches!(outcome(&body.to_string()), PlayerOutcome::Tracks { .. }));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[ -~é’]{0,12}".prop_map(Value::from),
            "OK|LOGIN_REQUIRED|UNPLAYABLE|asr|en|0".prop_map(Value::from),
        ];
        let names = "videoDetails|playabilityStatus|captions|playerResponse|error|status|reason|messages|videoId|\
                     errorScreen|playerCaptionsTracklistRenderer|captionTracks|audioTracks|baseUrl|languageCode|\
                     runs|text|simpleText|audioTrackId|lengthSeconds|isLive";
        leaf.prop_recursive(6, 64, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map(names, inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn player_any_bytes_do_not_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
            interpret(&body, &video(ID));
        }

        #[test]
        fn player_any_json_does_not_panic(body in any_json()) {
            let response = interpret(body.to_string().as_bytes(), &video(ID));
            if let PlayerOutcome::Failed(failure) = response.outcome {
                prop_assert!(!failure.error().message().is_empty());
            }
        }
    }
}
