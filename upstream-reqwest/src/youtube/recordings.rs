//! Recorded player responses in the folder that `VERBATIM_RECORDINGS` names, if it is set.
//!
//! Each must be parsed to the known properties of its video.

use std::{ffi::OsStr, fs, path::PathBuf};

use serde_json::Value;
use transcript_core::{
    archive::TrackSelector,
    time::Timestamp,
    transcript::{LiveStatus, TrackKind, best_track},
    video::{Platform, VideoId},
};

use super::{
    details::YouTubeDetails,
    failure::YouTubeFailure,
    player::{PlayerOutcome, interpret},
};

/// Expected result of a recording.
enum ExpectedPlayer {
    /// This many tracks; the default track has this language and kind.
    Tracks(usize, &'static str, TrackKind),
    Failed(YouTubeFailure),
}

/// The folder of recordings; `None`, with a note on standard error, if it is not set.
fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("VERBATIM_RECORDINGS").map(|folder| PathBuf::from(folder).join("youtube"));
    if folder.is_none() {
        // Test output on standard error is shown with the test's name on request.
        std::io::Write::write_all(
            &mut std::io::stderr(),
            b"VERBATIM_RECORDINGS is not set: recordings are skipped\n",
        )
        .unwrap();
    }
    folder
}

/// The player data of a recording: bare, in a watch page, or in a list of parts.
fn player_data(file: &str, content: &str) -> String {
    let extension = PathBuf::from(file).extension().and_then(OsStr::to_str).map(str::to_owned);
    if extension.as_deref() == Some("html") {
        let Some(at) = content.find("ytInitialPlayerResponse = {") else { return content.to_owned() };
        let rest = &content[at + "ytInitialPlayerResponse = ".len()..];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        return values.next().unwrap().unwrap().to_string();
    }
    match serde_json::from_str(content) {
        Ok(Value::Array(parts)) => {
            parts.into_iter().find(|part| part["playerResponse"].is_object()).unwrap().to_string()
        }
        _ => content.to_owned(),
    }
}

/// The number of chapters in the description of a recorded video.
fn chapter_count(file: &str) -> usize {
    if file == "newpipe/player_visionos_ok_named_track.json" { 7 } else { 0 }
}

fn check(file: &str, id: &str, expect: &ExpectedPlayer, content: &str) {
    let video = VideoId::new(Platform::YouTube, id).unwrap();
    let response = interpret(player_data(file, content).as_bytes(), &video);
    match (response.outcome, expect) {
        (PlayerOutcome::Failed(failure), ExpectedPlayer::Failed(expect)) => {
            assert_eq!(failure, *expect, "{file}")
        }
        (PlayerOutcome::Tracks { details, tracks }, ExpectedPlayer::Tracks(count, language, kind)) => {
            let infos = tracks.infos();
            let default = &infos[best_track(&infos, &TrackSelector::Default).unwrap()];
            assert_eq!(infos.len(), *count, "{file}");
            assert_eq!((default.language.as_str(), default.kind), (*language, *kind), "{file}");
            assert!(details.title.is_some() && details.author.is_some(), "{file}");
            assert!(details.duration_ms.is_some_and(|length| length >= 11_000), "{file}");
            let metadata = details.metadata;
            assert!(metadata.author_id.is_some_and(|id| id.starts_with("UC")), "{file}");
            assert!(metadata.author_url.is_some() && metadata.thumbnail_url.is_some(), "{file}");
            assert_eq!(metadata.live, Some(LiveStatus::NotLive), "{file}");
            assert_eq!(metadata.chapters.len(), chapter_count(file), "{file}");
        }
        (outcome, _) => panic!("{file}: {outcome:?}"),
    }
}

#[test]
fn recorded_response_matches_its_video() {
    use ExpectedPlayer::{Failed, Tracks};
    use TrackKind::{Generated, Human};
    let Some(folder) = folder() else { return };
    let starts =
        |seconds: i64| Failed(YouTubeFailure::Upcoming(Some(Timestamp::from_millis(seconds * 1_000))));
    let any = "vb-anyone-0";
    for (file, id, expect) in [
        ("jta/player_android_ok.json", "GJLlxj_dtq8", Tracks(9, "en", Human)),
        ("jta/player_android_ok_altered_ua.json", "GJLlxj_dtq8", Tracks(9, "en", Human)),
        ("jta/player_android_ok_en_only.json", "F1xioXWb8CY", Tracks(2, "en", Human)),
        ("jta/player_po_token_required.json", "GJLlxj_dtq8", Tracks(9, "en", Human)),
        ("jta/player_age_restricted.json", "Njp5uhTorCo", Failed(YouTubeFailure::Age)),
        ("jta/player_bot_check.json", any, Failed(YouTubeFailure::BotCheck)),
        ("jta/player_no_captions.json", "dsMFmonKDD4", Failed(YouTubeFailure::NoCaptions)),
        ("jta/player_no_captions_was_live.json", "Fjg5lYqvzUs", Failed(YouTubeFailure::NoCaptions)),
        ("jta/player_unplayable_custom.json", any, Failed(YouTubeFailure::Other("Custom Reason".to_owned()))),
        ("jta/player_unavailable.json", any, Failed(YouTubeFailure::Unavailable)),
        ("jta/consent_page.html", any, Failed(YouTubeFailure::Consent)),
        ("jta/consent_page_no_v.html", any, Failed(YouTubeFailure::Consent)),
        ("jta/recaptcha_page.html", any, Failed(YouTubeFailure::Captcha)),
        ("newpipe/reel_invalid_id.json", any, Failed(YouTubeFailure::Unavailable)),
        ("newpipe/reel_nonexistent.json", any, Failed(YouTubeFailure::Unavailable)),
        ("newpipe/reel_private.json", any, Failed(YouTubeFailure::Private)),
        ("newpipe/reel_members_only.json", "ayI2iBwGdxw", Failed(YouTubeFailure::Members)),
        ("newpipe/reel_music_premium.json", "sMJ8bRN2dak", Failed(YouTubeFailure::MusicPremium)),
        ("newpipe/reel_geo_blocked.json", "_PL2HJKxnOM", Failed(YouTubeFailure::Region)),
        ("newpipe/reel_ok_kids.json", "it3OtbTxQk0", Tracks(1, "en", Generated)),
        ("newpipe/player_visionos_unplayable_kids.json", "it3OtbTxQk0", Failed(YouTubeFailure::WrongClient)),
        ("newpipe/reel_live_now.json", "X4VbdwhkE10", Failed(YouTubeFailure::Live)),
        ("newpipe/player_visionos_live_now.json", "X4VbdwhkE10", Failed(YouTubeFailure::Live)),
        ("newpipe/reel_ok_cc.json", "M4gD1WSo5mA", Tracks(2, "en", Human)),
        ("newpipe/player_visionos_ok_cc.json", "M4gD1WSo5mA", Tracks(2, "en", Human)),
        ("newpipe/player_web_metadata.json", "M4gD1WSo5mA", Failed(YouTubeFailure::NotPlayerData)),
        ("newpipe/visitor_id.json", any, Failed(YouTubeFailure::NotPlayerData)),
        ("newpipe/reel_ok_fr_asr.json", "cJ9to6EmElQ", Tracks(1, "fr", Generated)),
        ("newpipe/player_visionos_ok_fr_asr.json", "cJ9to6EmElQ", Tracks(1, "fr", Generated)),
        ("newpipe/player_visionos_ok_named_track.json", "ud9d5cMDP_0", Tracks(1, "de", Human)),
        ("newpipe/player_visionos_ok_unlisted.json", "tjz2u2DiveM", Tracks(1, "en", Generated)),
        ("newpipe/player_visionos_ok_en_asr.json", "cV5TjZCJkuA", Tracks(1, "en", Generated)),
        ("ytdl-core/private.watch.json", any, Failed(YouTubeFailure::Private)),
        ("ytdl-core/non-existent.watch.json", any, Failed(YouTubeFailure::Unavailable)),
        ("ytdl-core/live-future.watch.json", "VIBFo3Ti5vQ", starts(1_604_678_400)),
        ("ytdl-core/rental.watch.html", "SyKPsFRP_Oc", Failed(YouTubeFailure::Payment)),
        ("ytdl-core/age-restricted-vi-VN.watch.html", "CsrfovOPcjk", Failed(YouTubeFailure::Age)),
        ("ytdl-core/live-with-cc.watch.html", "21X5lGlDOfg", Failed(YouTubeFailure::Live)),
        (
            "pytube/live_recording_unavailable.watch.html",
            "5YceQ8YqYMc",
            Failed(YouTubeFailure::RecordingRemoved),
        ),
        ("pytube/age_restricted.watch.html", "irauhITDrsE", Failed(YouTubeFailure::Age)),
        ("pytube/private.watch.html", any, Failed(YouTubeFailure::Private)),
        ("pytube/ok_40_tracks.watch.html", "2lAe1cqCOXo", Tracks(40, "en", Human)),
        ("iv-mocks/scheduled_live.player.json", "N-yVic7BbY0", starts(1_677_592_800)),
        ("iv-mocks/no_captions.player.json", "iuevw6218F0", Failed(YouTubeFailure::NoCaptions)),
        // The same responses to a request for another video.
        ("jta/player_android_ok.json", any, Failed(YouTubeFailure::OtherVideo)),
        ("newpipe/reel_members_only.json", any, Failed(YouTubeFailure::OtherVideo)),
    ] {
        let content = fs::read(folder.join(file)).unwrap();
        check(file, id, &expect, &String::from_utf8_lossy(&content));
    }
}

#[test]
fn recorded_track_with_experiment_is_gated() {
    let Some(folder) = folder() else { return };
    for (file, id, best_is_gated, open) in [
        ("jta/player_po_token_required.json", "GJLlxj_dtq8", true, Some(TrackKind::Generated)),
        ("jta/player_android_ok.json", "GJLlxj_dtq8", false, Some(TrackKind::Human)),
        ("jta/watch_ok.html", "GJLlxj_dtq8", true, None),
    ] {
        let content = fs::read(folder.join(file)).unwrap();
        let content = player_data(file, &String::from_utf8_lossy(&content));
        let video = VideoId::new(Platform::YouTube, id).unwrap();
        let PlayerOutcome::Tracks { tracks, .. } = interpret(content.as_bytes(), &video).outcome else {
            panic!("{file}: no tracks")
        };
        assert_eq!(tracks.choose(&TrackSelector::Default).unwrap().gated, best_is_gated, "{file}");
        let chosen = tracks.choose_instead(&TrackSelector::Default, |track| !track.gated);
        assert_eq!(chosen.map(|choice| choice.info.kind), open, "{file}");
    }
}

#[test]
fn recorded_metadata_is_read() {
    let Some(folder) = folder() else { return };
    let read = |file: &str| {
        let json: Value = serde_json::from_slice(&fs::read(folder.join(file)).unwrap()).unwrap();
        YouTubeDetails::read(&json["videoDetails"], &json["microformat"]).metadata
    };
    let chapters = read("newpipe/player_visionos_ok_named_track.json").chapters;
    let chapters: Vec<_> =
        chapters.iter().map(|chapter| (chapter.start_ms, chapter.title.as_str())).collect();
    assert_eq!(chapters[..2], [(0, "Ein erstaunlich kontroverses Thema"), (164_000, "Was ist Vitamin D?")]);
    assert_eq!(chapters[6], (981_000, "Keksempfehlungen"));
    // Only web clients receive the date.
    let web = read("newpipe/player_web_metadata.json");
    assert_eq!(web.published_at, Timestamp::parse("2015-01-28T05:14:36Z"));
    assert_eq!(web.author_url.as_deref(), Some("https://www.youtube.com/@BKCHarvard"));
    assert!(web.thumbnail_url.is_some_and(|url| url.contains("/maxresdefault.jpg")));
    assert_eq!(read("jta/player_no_captions_was_live.json").live, Some(LiveStatus::WasLive));
    assert_eq!(read("iv-mocks/scheduled_live.player.json").live, Some(LiveStatus::Upcoming));
}

#[test]
fn recorded_dubbed_video_has_original_language() {
    let Some(folder) = folder() else { return };
    let content = fs::read(folder.join("newpipe/player_visionos_ok_en_asr.json")).unwrap();
    let video = VideoId::new(Platform::YouTube, "cV5TjZCJkuA").unwrap();
    let tracks_of = |content: &[u8]| match interpret(content, &video).outcome {
        PlayerOutcome::Tracks { tracks, .. } => tracks.infos(),
        outcome => panic!("{outcome:?}"),
    };
    assert!(tracks_of(&content).iter().all(|track| track.original && track.language.as_str() == "en"));
    // The same video with captions of a dubbed version only.
    let mut json: Value = serde_json::from_slice(&content).unwrap();
    let track = &mut json["captions"]["playerCaptionsTracklistRenderer"]["captionTracks"][0];
    (track["languageCode"], track["vssId"]) = ("it".into(), "a.it".into());
    assert!(tracks_of(json.to_string().as_bytes()).iter().all(|track| !track.original));
}
