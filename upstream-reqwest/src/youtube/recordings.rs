//! Player answers that others recorded, where they are at hand: the folder that `VERBATIM_RECORDINGS`
//! names. Each must mean what is known of its video.

use std::{ffi::OsStr, fs, path::PathBuf};

use serde_json::Value;
use transcript_core::{
    archive::Wish,
    time::Timestamp,
    transcript::{TrackKind, best_track},
    video::{Platform, VideoId},
};

use super::{
    player::{Verdict, interpret},
    refusal::Refusal,
};

/// What a recording must mean.
enum Expect {
    /// This many tracks; the default one in this language and of this kind.
    Tracks(usize, &'static str, TrackKind),
    Refused(Refusal),
}

/// The folder of recordings; none, with a word about it, when it is not at hand.
fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("VERBATIM_RECORDINGS").map(|folder| PathBuf::from(folder).join("youtube"));
    if folder.is_none() {
        // What a test writes to standard error is shown with its name when it is asked for.
        std::io::Write::write_all(
            &mut std::io::stderr(),
            b"VERBATIM_RECORDINGS is not set: no recordings are read\n",
        )
        .unwrap();
    }
    folder
}

/// The player data of a recording, however it is wrapped: bare, in a watch page, or in a list of parts.
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

fn check(file: &str, id: &str, expect: &Expect, content: &str) {
    let video = VideoId::new(Platform::VideoSite, id).unwrap();
    let told = interpret(player_data(file, content).as_bytes(), &video);
    match (told.verdict, expect) {
        (Verdict::Refused(refusal), Expect::Refused(expect)) => assert_eq!(refusal, *expect, "{file}"),
        (Verdict::Tracks { details, tracks }, Expect::Tracks(count, language, kind)) => {
            let infos = tracks.infos();
            let default = &infos[best_track(&infos, &Wish::Default).unwrap()];
            assert_eq!(infos.len(), *count, "{file}");
            assert_eq!((default.language.as_str(), default.kind), (*language, *kind), "{file}");
            assert!(details.title.is_some() && details.author.is_some(), "{file}");
            assert!(details.duration_ms.is_some_and(|length| length >= 11_000), "{file}");
        }
        (verdict, _) => panic!("{file}: {verdict:?}"),
    }
}

#[test]
fn recorded_answers_mean_what_their_videos_are() {
    use Expect::{Refused, Tracks};
    use TrackKind::{Generated, Human};
    let Some(folder) = folder() else { return };
    let starts = |seconds: i64| Refused(Refusal::Upcoming(Some(Timestamp::from_millis(seconds * 1_000))));
    let any = "vb-anyone-0";
    for (file, id, expect) in [
        ("jta/player_android_ok.json", "GJLlxj_dtq8", Tracks(9, "en", Human)),
        ("jta/player_android_ok_altered_ua.json", "GJLlxj_dtq8", Tracks(9, "en", Human)),
        ("jta/player_android_ok_en_only.json", "F1xioXWb8CY", Tracks(2, "en", Human)),
        ("jta/player_po_token_required.json", "GJLlxj_dtq8", Tracks(9, "en", Human)),
        ("jta/player_age_restricted.json", "Njp5uhTorCo", Refused(Refusal::Age)),
        ("jta/player_bot_check.json", any, Refused(Refusal::BotCheck)),
        ("jta/player_no_captions.json", "dsMFmonKDD4", Refused(Refusal::NoCaptions)),
        ("jta/player_no_captions_was_live.json", "Fjg5lYqvzUs", Refused(Refusal::NoCaptions)),
        ("jta/player_unplayable_custom.json", any, Refused(Refusal::Other("Custom Reason".to_owned()))),
        ("jta/player_unavailable.json", any, Refused(Refusal::Unavailable)),
        ("jta/consent_page.html", any, Refused(Refusal::Consent)),
        ("jta/consent_page_no_v.html", any, Refused(Refusal::Consent)),
        ("jta/recaptcha_page.html", any, Refused(Refusal::Captcha)),
        ("newpipe/reel_invalid_id.json", any, Refused(Refusal::Unavailable)),
        ("newpipe/reel_nonexistent.json", any, Refused(Refusal::Unavailable)),
        ("newpipe/reel_private.json", any, Refused(Refusal::Private)),
        ("newpipe/reel_members_only.json", "ayI2iBwGdxw", Refused(Refusal::Members)),
        ("newpipe/reel_music_premium.json", "sMJ8bRN2dak", Refused(Refusal::MusicPremium)),
        ("newpipe/reel_geo_blocked.json", "_PL2HJKxnOM", Refused(Refusal::Region)),
        ("newpipe/reel_ok_kids.json", "it3OtbTxQk0", Tracks(1, "en", Generated)),
        ("newpipe/player_visionos_unplayable_kids.json", "it3OtbTxQk0", Refused(Refusal::WrongClient)),
        ("newpipe/reel_live_now.json", "X4VbdwhkE10", Refused(Refusal::Live)),
        ("newpipe/player_visionos_live_now.json", "X4VbdwhkE10", Refused(Refusal::Live)),
        ("newpipe/reel_ok_cc.json", "M4gD1WSo5mA", Tracks(2, "en", Human)),
        ("newpipe/player_visionos_ok_cc.json", "M4gD1WSo5mA", Tracks(2, "en", Human)),
        ("newpipe/player_web_metadata.json", "M4gD1WSo5mA", Refused(Refusal::NotPlayerData)),
        ("newpipe/visitor_id.json", any, Refused(Refusal::NotPlayerData)),
        ("newpipe/reel_ok_fr_asr.json", "cJ9to6EmElQ", Tracks(1, "fr", Generated)),
        ("newpipe/player_visionos_ok_fr_asr.json", "cJ9to6EmElQ", Tracks(1, "fr", Generated)),
        ("newpipe/player_visionos_ok_named_track.json", "ud9d5cMDP_0", Tracks(1, "de", Human)),
        ("newpipe/player_visionos_ok_unlisted.json", "tjz2u2DiveM", Tracks(1, "en", Generated)),
        ("newpipe/player_visionos_ok_en_asr.json", "cV5TjZCJkuA", Tracks(1, "en", Generated)),
        ("ytdl-core/private.watch.json", any, Refused(Refusal::Private)),
        ("ytdl-core/non-existent.watch.json", any, Refused(Refusal::Unavailable)),
        ("ytdl-core/live-future.watch.json", "VIBFo3Ti5vQ", starts(1_604_678_400)),
        ("ytdl-core/rental.watch.html", "SyKPsFRP_Oc", Refused(Refusal::Payment)),
        ("ytdl-core/age-restricted-vi-VN.watch.html", "CsrfovOPcjk", Refused(Refusal::Age)),
        ("ytdl-core/live-with-cc.watch.html", "21X5lGlDOfg", Refused(Refusal::Live)),
        ("pytube/live_recording_unavailable.watch.html", "5YceQ8YqYMc", Refused(Refusal::RecordingGone)),
        ("pytube/age_restricted.watch.html", "irauhITDrsE", Refused(Refusal::Age)),
        ("pytube/private.watch.html", any, Refused(Refusal::Private)),
        ("pytube/ok_40_tracks.watch.html", "2lAe1cqCOXo", Tracks(40, "en", Human)),
        ("iv-mocks/scheduled_live.player.json", "N-yVic7BbY0", starts(1_677_592_800)),
        ("iv-mocks/no_captions.player.json", "iuevw6218F0", Refused(Refusal::NoCaptions)),
        // The same answers to a question about another video.
        ("jta/player_android_ok.json", any, Refused(Refusal::OtherVideo)),
        ("newpipe/reel_members_only.json", any, Refused(Refusal::OtherVideo)),
    ] {
        let content = fs::read(folder.join(file)).unwrap();
        check(file, id, &expect, &String::from_utf8_lossy(&content));
    }
}

#[test]
fn recorded_tracks_are_gated_where_they_say_so() {
    let Some(folder) = folder() else { return };
    for (file, id, best_is_gated, open) in [
        ("jta/player_po_token_required.json", "GJLlxj_dtq8", true, Some(TrackKind::Generated)),
        ("jta/player_android_ok.json", "GJLlxj_dtq8", false, Some(TrackKind::Human)),
        ("jta/watch_ok.html", "GJLlxj_dtq8", true, None),
    ] {
        let content = fs::read(folder.join(file)).unwrap();
        let content = player_data(file, &String::from_utf8_lossy(&content));
        let video = VideoId::new(Platform::VideoSite, id).unwrap();
        let Verdict::Tracks { tracks, .. } = interpret(content.as_bytes(), &video).verdict else {
            panic!("{file}: no tracks")
        };
        assert_eq!(tracks.choose(&Wish::Default).unwrap().gated, best_is_gated, "{file}");
        let chosen = tracks.choose_instead(&Wish::Default, |track| !track.gated);
        assert_eq!(chosen.map(|choice| choice.info.kind), open, "{file}");
    }
}
