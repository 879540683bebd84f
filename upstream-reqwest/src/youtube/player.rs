//! From the bytes of a player answer to what they mean. Pure and total: any bytes have a meaning.

use std::borrow::Cow;

use serde_json::Value;
use transcript_core::video::VideoId;

use super::{
    parts::Data,
    refusal::Refusal,
    signals::{self, Signals},
    tracks::TrackList,
};

/// How much of a title, a name and a visitor's mark is taken, in characters.
const TITLE_MAX: usize = 500;
const AUTHOR_MAX: usize = 200;
const VISITOR_MAX: usize = 1_024;
/// Longer than any video, in seconds: a year of live stream.
const LENGTH_MAX_S: u64 = 366 * 86_400;

/// What the player data says of the video itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Details {
    /// The identifier, where the answer names one.
    pub(super) video: Option<String>,
    pub(super) title: Option<String>,
    pub(super) author: Option<String>,
    pub(super) duration_ms: Option<u64>,
    is_live: bool,
    is_upcoming: bool,
    /// A live stream that is over and still being turned into a video.
    is_ended: bool,
}

/// What a player answer means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The video plays and has caption tracks.
    Tracks {
        /// The video's title, author and length.
        details: Details,
        /// At least one track.
        tracks: TrackList,
    },
    /// It has none for us, for this reason.
    Refused(Refusal),
}

/// A player answer, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) verdict: Verdict,
    /// The mark by which YouTube knows who asked, to be shown with the next question.
    pub(super) visitor: Option<String>,
}

/// What an answer to the question about the video `requested` means.
pub(super) fn interpret(body: &[u8], requested: &VideoId) -> Told {
    // Nearly every body is UTF-8 throughout, and to see that takes far less than to replace what is not.
    let text = std::str::from_utf8(body).map_or_else(|_| String::from_utf8_lossy(body), Cow::Borrowed);
    let refused = |refusal| Told { verdict: Verdict::Refused(refusal), visitor: None };
    let Some(data) = Data::read(&text) else {
        return refused(signals::page(body).unwrap_or(Refusal::NotPlayerData));
    };
    if data.playability_status.is_null() && text.trim() == "{}" {
        // What some endpoints say of an identifier that no video has.
        return refused(Refusal::Unavailable);
    }
    let visitor = self::text(field(&data.response_context, "visitorData"), VISITOR_MAX + 1);
    let visitor = visitor.filter(|visitor| visitor.chars().count() <= VISITOR_MAX);
    Told { verdict: verdict(&data, requested), visitor }
}

fn verdict(data: &Data, requested: &VideoId) -> Verdict {
    let refused = Verdict::Refused;
    let details = match playable(data, requested) {
        Ok(details) => details,
        Err(refusal) => return refused(refusal),
    };
    let Some(captions) = &data.captions else { return refused(Refusal::NotPlayerData) };
    let tracks = TrackList::read(captions);
    match (tracks.is_empty(), details.is_ended) {
        (false, _) => Verdict::Tracks { details, tracks },
        (true, true) => refused(Refusal::JustEnded),
        (true, false) => refused(Refusal::NoCaptions),
    }
}

/// What is said of a video that plays, whatever captions it has.
pub(super) fn playable(data: &Data, requested: &VideoId) -> Result<Details, Refusal> {
    if data.playability_status.is_null() {
        return Err(error(&data.error));
    }
    let details = Details::read(&data.video_details);
    let signals = Signals::new(&data.playability_status, &details);
    if let Some(distrust) = signals.distrust() {
        return Err(distrust);
    }
    if details.video.as_deref().is_some_and(|video| !is_same(video, requested.id())) {
        return Err(Refusal::OtherVideo);
    }
    if !signals.is_ok() {
        return Err(signals.refusal());
    }
    if details.video.is_none() {
        // It may be about anything.
        return Err(Refusal::NotPlayerData);
    }
    if details.is_upcoming {
        return Err(signals.upcoming());
    }
    if details.is_live {
        // Even where there are captions already, most of them are still to come.
        return Err(Refusal::Live);
    }
    Ok(details)
}

/// The meaning of an error object, which comes in place of player data.
fn error(error: &Value) -> Refusal {
    let code = field(error, "code").as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(0);
    match (field(error, "status").as_str(), code) {
        (Some("FAILED_PRECONDITION"), _) => Refusal::TooOld,
        (Some("RESOURCE_EXHAUSTED"), _) => Refusal::SessionLimit,
        (Some("PERMISSION_DENIED"), _) | (_, 403) => Refusal::Forbidden,
        (Some(_), code) if error.is_object() => Refusal::BadRequest(code),
        (None, code) if code > 0 => Refusal::BadRequest(code),
        _ => Refusal::NotPlayerData,
    }
}

impl Details {
    fn read(value: &Value) -> Self {
        let flag = |name| field(value, name).as_bool().unwrap_or(false);
        let length = field(value, "lengthSeconds");
        let length = length.as_u64().or_else(|| length.as_str()?.parse().ok());
        let length = length.filter(|length| (1..=LENGTH_MAX_S).contains(length));
        Self {
            video: field(value, "videoId").as_str().map(str::to_owned),
            title: text(field(value, "title"), TITLE_MAX),
            author: text(field(value, "author"), AUTHOR_MAX),
            duration_ms: length.map(|seconds| seconds * 1_000),
            is_live: flag("isLive"),
            is_upcoming: flag("isUpcoming"),
            is_ended: flag("isPostLiveDvr"),
        }
    }
}

/// Whether two identifiers name the same video.
///
/// An identifier is 64 bits in 11 characters of base64, so of the last one only four bits count: YouTube
/// takes all four spellings, and answers with its own.
fn is_same(told: &str, requested: &str) -> bool {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'-' => Some(62),
        b'_' => Some(63),
        _ => None,
    };
    match (told.as_bytes().split_last(), requested.as_bytes().split_last()) {
        (Some((a, told)), Some((b, requested))) => {
            told == requested
                && (a == b || matches!((value(*a), value(*b)), (Some(a), Some(b)) if a >> 2 == b >> 2))
        }
        _ => false,
    }
}

/// A field of an object; null where there is none, or no object.
pub(super) fn field<'a>(value: &'a Value, name: &str) -> &'a Value {
    value.get(name).unwrap_or(&Value::Null)
}

/// The items of an array field; none where there is none.
pub(super) fn items<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    field(value, name).as_array().into_iter().flatten()
}

/// A text in one of the forms that YouTube has for texts, at most `max` characters of it; none when it is
/// empty.
pub(super) fn text(value: &Value, max: usize) -> Option<String> {
    let whole = match value {
        Value::String(text) => text.clone(),
        Value::Object(_) => match field(value, "simpleText").as_str() {
            Some(text) => text.to_owned(),
            None => items(value, "runs").filter_map(|run| field(run, "text").as_str()).collect(),
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
        super::parts::{CAPTIONS_MAX, PART_MAX},
        *,
    };

    const ID: &str = "vb-player-0";

    fn video(id: &str) -> VideoId {
        VideoId::new(Platform::VideoSite, id).unwrap()
    }

    fn verdict(body: &str) -> Verdict {
        interpret(body.as_bytes(), &video(ID)).verdict
    }

    fn check(body: &Value, expect: Refusal) {
        assert_eq!(verdict(&body.to_string()), Verdict::Refused(expect), "{body}");
    }

    fn details(more: Value) -> Value {
        let mut details =
            json!({"videoId": ID, "title": "A mill", "author": "Miller", "lengthSeconds": "90"});
        details.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        details
    }

    fn ok(more: Value, captions: Value) -> Value {
        json!({"playabilityStatus": {"status": "OK"}, "videoDetails": details(more), "captions": captions})
    }

    fn captions() -> Value {
        json!({"playerCaptionsTracklistRenderer": {"captionTracks": [
            {"baseUrl": "https://www.youtube.com/api/timedtext?v=x", "languageCode": "en"},
        ]}})
    }

    #[test]
    fn tracks_come_with_the_details() {
        let Verdict::Tracks { details, tracks } = verdict(&ok(json!({}), captions()).to_string()) else {
            panic!("no tracks")
        };
        assert_eq!((details.title.as_deref(), details.author.as_deref()), (Some("A mill"), Some("Miller")));
        assert_eq!(details.duration_ms, Some(90_000));
        assert_eq!(tracks.infos().len(), 1);
        // In the wrapper of some endpoints it means the same, and a wrong type spoils only itself.
        let wrapped = json!({"playerResponse": ok(json!({"title": 5, "lengthSeconds": "0"}), captions())});
        let Verdict::Tracks { details, .. } = verdict(&wrapped.to_string()) else { panic!("no tracks") };
        assert_eq!((details.title, details.duration_ms), (None, None));
    }

    #[test]
    fn the_visitor_is_learnt() {
        let mut body = ok(json!({}), captions());
        for (mark, expect) in
            [(json!("Cgs3"), Some("Cgs3")), (json!("x".repeat(2_000)), None), (json!(3), None)]
        {
            body["responseContext"] = json!({"visitorData": mark});
            let told = interpret(body.to_string().as_bytes(), &video(ID));
            assert_eq!(told.visitor.as_deref(), expect);
        }
    }

    #[test]
    fn reasons_are_told_by_their_sentences() {
        use Refusal::{
            Age, BotCheck, Gone, JustEnded, Members, MusicPremium, Payment, Private, RecordingGone, Region,
            SessionLimit, TooOld, Unavailable, WrongClient,
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
            ("UNPLAYABLE", "This live stream recording is not available.", RecordingGone),
            ("LIVE_STREAM_OFFLINE", "This live event has ended.", JustEnded),
            ("ERROR", "This video has been removed by the uploader", Gone),
            ("ERROR", "No longer available: the account has been terminated.", Gone),
            ("ERROR", "This video is not available due to a copyright claim", Gone),
            ("UNPLAYABLE", "Watch on the latest version of YouTube.", TooOld),
            ("UNPLAYABLE", "YouTube is no longer supported in this application or device", TooOld),
            ("ERROR", "This video is unavailable", Unavailable),
            ("ERROR", "Video unavailable", Unavailable),
            ("ERROR", "", Unavailable),
            ("UNPLAYABLE", "This video is not available", WrongClient),
            ("UNPLAYABLE", "Video unavailable", WrongClient),
            ("UNPLAYABLE", "", WrongClient),
            ("LOGIN_REQUIRED", "Please sign in", Refusal::Login),
            ("CONTENT_CHECK_REQUIRED", "The following content may upset", Refusal::Login),
            ("UNPLAYABLE", "Some new reason.", Refusal::Other("Some new reason".to_owned())),
            ("CUSTOM", "Line\none \"two\"", Refusal::Other("Line one  two".to_owned())),
            ("CUSTOM", "", Refusal::Other("CUSTOM".to_owned())),
        ] {
            let body = |playability: Value| json!({"playabilityStatus": playability});
            check(&body(json!({"status": status, "reason": reason})), expect.clone());
            if matches!(expect, Refusal::Other(_)) || status == "UNPLAYABLE" {
                continue;
            }
            // The same sentence in the other places, and in the other forms of text.
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
            check(&screen("confirmDialogRenderer", json!({"dialogMessages": [runs]})), expect);
        }
    }

    #[test]
    fn reasons_are_told_by_structure_in_any_language() {
        let body = |playability: Value| json!({"playabilityStatus": playability});
        let sign_in = "Đăng nhập để xác nhận";
        let help = json!({"runs": [{"text": "?", "navigationEndpoint": {"urlEndpoint": {
            "url": "https://support.google.com/youtube/answer/3037019#zippy=x"}}}]});
        check(
            &body(json!({"status": "LOGIN_REQUIRED", "reason": sign_in, "desktopLegacyAgeGateReason": 1})),
            Refusal::Age,
        );
        let mut gated = body(json!({"status": "LOGIN_REQUIRED", "reason": sign_in}));
        check(&gated, Refusal::Login);
        gated["videoDetails"] = details(json!({}));
        check(&gated, Refusal::Age);
        check(
            &body(json!({"status": "LOGIN_REQUIRED", "reason": sign_in,
                "errorScreen": {"playerErrorMessageRenderer": {"subreason": help}}})),
            Refusal::BotCheck,
        );
        check(
            &body(json!({"status": "LOGIN_REQUIRED", "errorScreen": {"playerCaptchaViewModel": {}}})),
            Refusal::Captcha,
        );
        check(
            &body(json!({"status": "UNPLAYABLE", "reason": "?",
                "errorScreen": {"playerLegacyDesktopYpcOfferRenderer": {"offerId": "1"}}})),
            Refusal::Payment,
        );
    }

    #[test]
    fn what_starts_later_or_is_live_is_told() {
        let slate = |start: Value| {
            json!({"playabilityStatus": {"status": "LIVE_STREAM_OFFLINE", "reason": "Soon.",
                "liveStreamability": {"liveStreamabilityRenderer": {"offlineSlate": {
                    "liveStreamOfflineSlateRenderer": {"scheduledStartTime": start}}}}}})
        };
        let start = Some(Timestamp::from_millis(1_677_592_800_000));
        check(&slate(json!("1677592800")), Refusal::Upcoming(start));
        check(&slate(json!(1_677_592_800)), Refusal::Upcoming(start));
        check(&slate(json!("soon")), Refusal::Upcoming(None));
        check(&slate(json!(-5)), Refusal::Upcoming(None));
        check(&ok(json!({"isUpcoming": true}), json!(null)), Refusal::Upcoming(None));
        check(&ok(json!({"isLive": true, "lengthSeconds": "0"}), json!(null)), Refusal::Live);
        check(&ok(json!({"isLive": true}), captions()), Refusal::Live);
        check(&ok(json!({"isPostLiveDvr": true}), json!(null)), Refusal::JustEnded);
        check(&ok(json!({"isLiveContent": true}), json!(null)), Refusal::NoCaptions);
    }

    #[test]
    fn an_answer_about_another_video_counts_for_nothing() {
        let other = json!({"videoId": "vb-others-0"});
        check(&ok(other.clone(), captions()), Refusal::OtherVideo);
        check(
            &json!({"playabilityStatus": {"status": "ERROR", "reason": "Private video"}, "videoDetails": other}),
            Refusal::OtherVideo,
        );
        check(&ok(json!({"videoId": null}), captions()), Refusal::NotPlayerData);
        for (told, requested, expect) in [
            ("DJztXj2GPfk", "DJztXj2GPfk", true),
            // Of the last character only four bits count.
            ("DJztXj2GPfk", "DJztXj2GPfl", true),
            ("DJztXj2GPfk", "DJztXj2GPfn", true),
            ("DJztXj2GPfk", "DJztXj2GPfo", false),
            ("DJztXj2GPfk", "EJztXj2GPfk", false),
            ("DJztXj2GPf", "DJztXj2GPfk", false),
            ("", "DJztXj2GPfk", false),
            ("DJztXj2GPfé", "DJztXj2GPfk", false),
        ] {
            assert_eq!(is_same(told, requested), expect, "{told} {requested}");
        }
    }

    #[test]
    fn whatever_else_comes_has_a_meaning() {
        let error = |error: Value| json!({"error": error}).to_string();
        for (body, expect) in [
            (error(json!({"code": 400, "status": "FAILED_PRECONDITION"})), Refusal::TooOld),
            (error(json!({"code": 429, "status": "RESOURCE_EXHAUSTED"})), Refusal::SessionLimit),
            (error(json!({"code": 403, "status": "PERMISSION_DENIED"})), Refusal::Forbidden),
            (error(json!({"code": 400, "status": "INVALID_ARGUMENT"})), Refusal::BadRequest(400)),
            (error(json!({"code": 404})), Refusal::BadRequest(404)),
            (error(json!("?")), Refusal::NotPlayerData),
            ("{}".to_owned(), Refusal::Unavailable),
            (" {} \n".to_owned(), Refusal::Unavailable),
            (r#"{"responseContext":{}}"#.to_owned(), Refusal::NotPlayerData),
            (r#"{"playerResponse":{}}"#.to_owned(), Refusal::NotPlayerData),
            (r#"{"playabilityStatus":"OK"}"#.to_owned(), Refusal::Other(String::new())),
            (String::new(), Refusal::NotPlayerData),
            ("[]".to_owned(), Refusal::NotPlayerData),
            ("<html><b>hello".to_owned(), Refusal::NotPlayerData),
            (r#" <div class="g-recaptcha">"#.to_owned(), Refusal::Captcha),
            (r#"<form action="https://consent.youtube.com/s">"#.to_owned(), Refusal::Consent),
            ("[".repeat(100_000), Refusal::NotPlayerData),
            (format!("{{\"captions\":{}", "[".repeat(100_000)), Refusal::NotPlayerData),
        ] {
            assert_eq!(verdict(&body), Verdict::Refused(expect), "{}", &body[..body.len().min(80)]);
        }
        check(&ok(json!({}), json!(null)), Refusal::NoCaptions);
        check(&ok(json!({}), json!({"playerCaptionsTracklistRenderer": {}})), Refusal::NoCaptions);
    }

    #[test]
    fn what_would_fill_the_memory_is_not_read() {
        let filling = |length: usize| json!(vec![json!({}); length / 3]);
        check(&ok(json!({}), filling(CAPTIONS_MAX + 100)), Refusal::NotPlayerData);
        check(&ok(json!({}), filling(CAPTIONS_MAX - 100)), Refusal::NoCaptions);
        check(&ok(json!({"keywords": filling(PART_MAX)}), captions()), Refusal::NotPlayerData);
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let body = ok(json!({}), json!("DEEP")).to_string().replace("\"DEEP\"", &deep);
        assert_eq!(verdict(&body), Verdict::Refused(Refusal::NotPlayerData));
        // What is not read at all may be of any size.
        let mut body = ok(json!({}), captions());
        body["streamingData"] = filling(4 * CAPTIONS_MAX);
        assert!(matches!(verdict(&body.to_string()), Verdict::Tracks { .. }));
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
        fn no_bytes_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
            interpret(&body, &video(ID));
        }

        #[test]
        fn no_json_panics(body in any_json()) {
            let told = interpret(body.to_string().as_bytes(), &video(ID));
            if let Verdict::Refused(refusal) = told.verdict {
                prop_assert!(!refusal.error().message().is_empty());
            }
        }
    }
}
