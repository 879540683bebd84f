//! Recorded responses outside the checkout, with the expected outcome of each.
//!
//! The folder is named by `VERBATIM_RECORDINGS`. The recordings are the platform's originals and not part of this
//! repository; the `INDEX.md` next to them describes each. A file without a row fails the test, and so does a row
//! without a file.

use std::{collections::BTreeSet, path::Path};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use transcript_core::transcript::LiveStatus;
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script};

use super::{CAPTIONS, HOST, PLATFORM, PLAYER, behind, make};
use crate::social::{
    recordings::folder,
    supplier_calls::{CallOutcome, check_failure, fetch, replay},
};

/// The requested video for a file that names none.
const ANY_VIDEO: &str = "vb-any-vid0";

/// Kind of a file and its expected outcome.
#[derive(Clone, Copy, Debug)]
enum Case {
    /// A player response with language and kind of its default transcript, and its number of tracks.
    ///
    /// The response is bare, in an envelope or in a page.
    Plays(&'static str, &'static str, usize),
    /// Like `Plays`, but the best track needs a token that the client does not have.
    ///
    /// The result is the next best track, after requests to all clients.
    PlaysGated(&'static str, &'static str, usize),
    /// A player response, bare, in an envelope or in a page, with this failure.
    Fails(&'static str),
    /// Another body in place of a player response, with this failure.
    InPlace(&'static str),
    /// A caption body with this number of segments and this beginning of the first one.
    Words(usize, &'static str),
    /// A caption body with this failure.
    NoWords(&'static str),
}

use Case::{Fails, InPlace, NoWords, Plays, PlaysGated, Words};

const ROWS: &[(&str, Case)] = &[
    ("iv-mocks/no_captions.player.json", Fails("no_captions")),
    ("iv-mocks/scheduled_live.player.json", Fails("upcoming")),
    ("jta/consent_page.html", InPlace("unreadable")),
    ("jta/consent_page_no_v.html", InPlace("unreadable")),
    ("jta/player_age_restricted.json", Fails("age")),
    ("jta/player_android_ok.json", Plays("en", "human", 9)),
    ("jta/player_android_ok_altered_ua.json", Plays("en", "human", 9)),
    ("jta/player_android_ok_en_only.json", Plays("en", "human", 2)),
    ("jta/player_bot_check.json", Fails("bot_check")),
    ("jta/player_no_captions.json", Fails("no_captions")),
    ("jta/player_no_captions_was_live.json", Fails("no_captions")),
    // The English captions made by people are gated; the generated ones are not.
    ("jta/player_po_token_required.json", PlaysGated("en", "generated", 9)),
    ("jta/player_unavailable.json", Fails("removed")),
    // An unknown status is a fault of the platform and never stored as an absence of the video.
    ("jta/player_unplayable_custom.json", Fails("platform_fault")),
    ("jta/recaptcha_page.html", InPlace("bot_check")),
    ("jta/timedtext_classic.xml", Words(3, "Hey, this is just a test")),
    // A page of the site instead of data.
    ("jta/watch_ok.html", InPlace("unreadable")),
    ("newpipe/player_visionos_live_now.json", Fails("live")),
    ("newpipe/player_visionos_ok_cc.json", Plays("en", "human", 2)),
    ("newpipe/player_visionos_ok_en_asr.json", Plays("en", "generated", 1)),
    ("newpipe/player_visionos_ok_fr_asr.json", Plays("fr", "generated", 1)),
    ("newpipe/player_visionos_ok_named_track.json", Plays("de", "human", 1)),
    ("newpipe/player_visionos_ok_unlisted.json", Plays("en", "generated", 1)),
    // Every client gets it; `youtube_unplayable_client_is_followed_by_next` sends it to one client only.
    ("newpipe/player_visionos_unplayable_kids.json", Fails("platform_fault")),
    ("newpipe/player_web_metadata.json", InPlace("unreadable")),
    ("newpipe/reel_geo_blocked.json", Fails("region")),
    ("newpipe/reel_invalid_id.json", InPlace("removed")),
    ("newpipe/reel_live_now.json", Fails("live")),
    ("newpipe/reel_members_only.json", Fails("members")),
    ("newpipe/reel_music_premium.json", Fails("members")),
    ("newpipe/reel_nonexistent.json", InPlace("removed")),
    ("newpipe/reel_ok_cc.json", Plays("en", "human", 2)),
    ("newpipe/reel_ok_fr_asr.json", Plays("fr", "generated", 1)),
    ("newpipe/reel_ok_kids.json", Plays("en", "generated", 1)),
    ("newpipe/reel_private.json", Fails("private")),
    ("newpipe/visitor_id.json", InPlace("unreadable")),
    ("pytube/age_restricted.watch.html", Fails("age")),
    ("pytube/live_recording_unavailable.watch.html", Fails("removed")),
    ("pytube/ok_40_tracks.watch.html", Plays("en", "human", 40)),
    ("pytube/private.watch.html", Fails("private")),
    ("timedtext/asr_2026_punctuated.json3", Words(3, "So, this is Blender. It can do 3D")),
    ("timedtext/asr_50min_acAsrConf.json3", Words(1_053, "in the comments all right oh good I")),
    ("timedtext/asr_fr_pens.srv3.xml", Words(3, "non mais je n'ai pas là")),
    ("timedtext/asr_music_only.srv3.xml", Words(5, "[Music]")),
    ("timedtext/asr_rolling.vtt", Words(3, "yeah")),
    ("timedtext/empty_200.body", NoWords("unreadable")),
    ("timedtext/empty_transcript.xml", NoWords("no_captions")),
    ("timedtext/html_instead_of_captions.body", NoWords("unreadable")),
    ("timedtext/manual_en.srv3.xml", Words(8, "K-pop!")),
    ("timedtext/manual_zh_hant_classic.xml", Words(2, "[Herb, Software Engineer]\n本影片")),
    ("timedtext/ytt_BoldItalicUnderline.srv3.xml", Words(1, "Default \\\\b ( 1 )")),
    ("timedtext/ytt_Colors.srv3.xml", Words(24, "Karaoke")),
    ("timedtext/ytt_Fade.srv3.xml", Words(4, "Simple fade")),
    ("timedtext/ytt_FaultTolerance.srv3.xml", Words(3, "Text")),
    ("timedtext/ytt_Ruby.srv3.xml", Words(5, "No [ru/ル][by/ビ]")),
    ("timedtext/ytt_TextDirection.srv3.xml", Words(14, "\\ytve")),
    ("timedtext/ytt_reference.srv3.xml", Words(53, "Bold")),
    // The reason is in Vietnamese.
    ("ytdl-core/age-restricted-vi-VN.watch.html", Fails("age")),
    ("ytdl-core/live-future.watch.json", Fails("upcoming")),
    ("ytdl-core/live-with-cc.watch.html", Fails("live")),
    ("ytdl-core/non-existent.watch.json", Fails("removed")),
    ("ytdl-core/private.watch.json", Fails("private")),
    ("ytdl-core/rental.watch.html", Fails("payment")),
];

/// The names of the recordings, without the files that describe them.
fn files(folder: &Path) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for part in std::fs::read_dir(folder).with_context(|| format!("{}", folder.display()))? {
        let part = part?;
        if !part.file_type()?.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(part.path())? {
            let name = file?.file_name();
            let name = format!("{}/{}", part.file_name().to_string_lossy(), name.to_string_lossy());
            if !name.ends_with(".meta.json") {
                names.insert(name);
            }
        }
    }
    Ok(names)
}

#[test]
fn youtube_external_recordings_have_rows() -> Result<()> {
    let Some(folder) = folder(PLATFORM) else { return Ok(()) };
    let rows: BTreeSet<_> = ROWS.iter().map(|(name, _)| (*name).to_owned()).collect();
    ensure!(rows.len() == ROWS.len(), "a file has two rows");
    let files = files(&folder)?;
    let (without_row, without_file): (Vec<_>, Vec<_>) =
        (files.difference(&rows).collect(), rows.difference(&files).collect());
    ensure!(without_row.is_empty(), "files without a row: {without_row:?}");
    ensure!(without_file.is_empty(), "rows without a file: {without_file:?}");
    Ok(())
}

#[tokio::test]
async fn youtube_external_recordings_have_expected_outcomes() -> Result<()> {
    let Some(folder) = folder(PLATFORM) else { return Ok(()) };
    let mut mismatches = Vec::new();
    for (name, row) in ROWS {
        let bytes = std::fs::read(folder.join(name)).with_context(|| (*name).to_owned())?;
        if let Err(error) = check(bytes, *row).await {
            mismatches.push(format!("{name}, {row:?}: {error:#}"));
        }
    }
    ensure!(mismatches.is_empty(), "{} of {}:\n{}", mismatches.len(), ROWS.len(), mismatches.join("\n"));
    Ok(())
}

async fn check(bytes: Vec<u8>, row: Case) -> Result<()> {
    match row {
        // Without faults, a call takes two requests.
        Plays(language, kind, tracks) => plays(&player_data(&bytes)?, language, kind, tracks, 2).await,
        PlaysGated(language, kind, tracks) => plays(&player_data(&bytes)?, language, kind, tracks, 4).await,
        Fails(reason) => {
            let player = player_data(&bytes)?;
            let (outcome, proxy) =
                replay_script(ReplayResponse::json(&player), None, &video_id(&player)).await?;
            ensure!(proxy.requests().len() <= 3, "{} requests", proxy.requests().len());
            check_failure(&outcome, reason)
        }
        InPlace(reason) => {
            let (outcome, _) =
                replay_script(ReplayResponse::bytes("text/html", bytes), None, ANY_VIDEO).await?;
            check_failure(&outcome, reason)
        }
        Words(segments, first) => words(bytes, segments, first).await,
        NoWords(reason) => {
            let body = ReplayResponse::bytes("text/html", bytes);
            check_failure(&replay_script(small_player(), Some(body), ANY_VIDEO).await?.0, reason)
        }
    }
}

async fn plays(
    player: &Value,
    language: &str,
    kind: &str,
    tracks: usize,
    request_count: usize,
) -> Result<()> {
    let body = ReplayResponse::text(
        r#"{"wireMagic":"pb3","events":[{"tStartMs":40,"dDurationMs":960,"segs":[{"utf8":"words"}]}]}"#,
    );
    let (outcome, proxy) = replay_script(ReplayResponse::json(player), Some(body), &video_id(player)).await?;
    let supplied = outcome.map_err(|error| anyhow::anyhow!("{error:?}"))?;
    let transcript = supplied.transcripts.first().context("no transcript")?;
    let track = (transcript.track.language.as_str(), transcript.track.kind.as_str());
    ensure!(track == (language, kind), "the track is {track:?}");
    ensure!(supplied.known_tracks.len() == tracks, "{} tracks", supplied.known_tracks.len());
    let details = |name| player.pointer(&format!("/videoDetails/{name}")).and_then(Value::as_str);
    ensure!(transcript.title.as_deref() == details("title"), "the title is {:?}", transcript.title);
    ensure!(transcript.author.as_deref() == details("author"), "the author is {:?}", transcript.author);
    let length_s = details("lengthSeconds").and_then(|seconds| seconds.parse::<u64>().ok());
    ensure!(
        transcript.duration_ms == length_s.map(|seconds| seconds * 1_000),
        "{:?}",
        transcript.duration_ms
    );

    let metadata = &supplied.metadata;
    metadata.check()?;
    ensure!(metadata.author_id.as_deref() == details("channelId"), "the channel is {:?}", metadata.author_id);
    ensure!(metadata.thumbnail_url.is_some() && metadata.live == Some(LiveStatus::NotLive), "{metadata:?}");

    // The last request is for the returned track.
    let requests = proxy.requests();
    ensure!(requests.len() == request_count, "{} requests", requests.len());
    let captions = requests.last().context("no request for captions")?;
    ensure!(captions.parameter("lang") == Some(language), "requested: {:?}", captions.query);
    ensure!(
        (captions.parameter("kind") == Some("asr")) == (kind == "generated"),
        "requested: {:?}",
        captions.query
    );
    ensure!(captions.parameter("fmt") == Some("json3"), "requested: {:?}", captions.query);
    ensure!(captions.parameter("v") == Some(&video_id(player)), "requested: {:?}", captions.query);
    Ok(())
}

async fn words(bytes: Vec<u8>, segments: usize, first: &str) -> Result<()> {
    // The content type is wrong on purpose: the platform has sent wrong ones, too.
    let body = ReplayResponse::bytes("text/html; charset=UTF-8", bytes);
    let outcome = replay_script(small_player(), Some(body), ANY_VIDEO).await?.0;
    let supplied = outcome.map_err(|error| anyhow::anyhow!("{error:?}"))?;
    let transcript = supplied.transcripts.first().context("no transcript")?;
    let found = &transcript.segments;
    ensure!(found.len() == segments, "{} segments", found.len());
    // Styling tools put zero-width marks around their texts.
    let text = found.first().map(|segment| segment.text.replace('\u{200b}', "")).unwrap_or_default();
    ensure!(text.trim_start().starts_with(first), "the first segment is {text:?}");
    ensure!(found.iter().all(|segment| !segment.text.trim().is_empty()), "a segment without words");
    ensure!(found.is_sorted_by_key(|segment| segment.start_ms), "out of order");
    Ok(())
}

/// Requests a video with these player and caption responses.
async fn replay_script(
    player: ReplayResponse,
    captions: Option<ReplayResponse>,
    video: &str,
) -> Result<(CallOutcome, ReplayProxy)> {
    let mut script = Script::new().rule(Rule::post(HOST, PLAYER).respond(player));
    if let Some(captions) = captions {
        script = script.rule(Rule::get(HOST, CAPTIONS).respond(captions));
    }
    replay(make, script, video).await
}

/// A video with one English track.
fn small_player() -> ReplayResponse {
    let address = format!("https://www.youtube.com/api/timedtext?v={ANY_VIDEO}&lang=en");
    ReplayResponse::json(&json!({
        "playabilityStatus": { "status": "OK" },
        "captions": { "playerCaptionsTracklistRenderer": { "captionTracks": [
            { "baseUrl": address, "languageCode": "en", "name": { "runs": [{ "text": "English" }] } },
        ] } },
        "videoDetails": { "videoId": ANY_VIDEO, "title": "Any video", "lengthSeconds": "60" },
    }))
}

/// The video of player data.
fn video_id(player: &Value) -> String {
    player.pointer("/videoDetails/videoId").and_then(Value::as_str).unwrap_or(ANY_VIDEO).to_owned()
}

/// The player data in a recording: bare, in an envelope, in a list of parts of a page, or in a page.
fn player_data(bytes: &[u8]) -> Result<Value> {
    let text = std::str::from_utf8(bytes)?;
    let Ok(whole) = serde_json::from_str::<Value>(text) else {
        return page_player_data(text).context("the page holds no player data");
    };
    let enveloped = |value: &Value| value.get("playerResponse").cloned();
    match &whole {
        Value::Array(parts) => parts.iter().find_map(enveloped).context("no part is player data"),
        other => Ok(enveloped(other).unwrap_or(whole)),
    }
}

/// The object that a page assigns to `ytInitialPlayerResponse`.
fn page_player_data(page: &str) -> Option<Value> {
    const NAME: &str = "ytInitialPlayerResponse";
    page.match_indices(NAME).find_map(|(start, _)| {
        let rest = page.get(start + NAME.len()..)?.trim_start_matches("\"]").trim_start();
        let object = rest.strip_prefix('=')?.trim_start();
        let value = serde_json::Deserializer::from_str(object).into_iter::<Value>().next()?.ok()?;
        value.is_object().then_some(value)
    })
}

#[tokio::test]
async fn youtube_unplayable_client_is_followed_by_next() -> Result<()> {
    let Some(folder) = folder(PLATFORM) else { return Ok(()) };
    let read = |name: &str| player_data(&std::fs::read(folder.join(name))?);
    let refused = read("newpipe/player_visionos_unplayable_kids.json")?;
    let playable = read("newpipe/reel_ok_kids.json")?;
    let client = |name: &str| Rule::post(HOST, PLAYER).json("/context/client/clientName", name);
    let body = ReplayResponse::text("<transcript><text start=\"1\" dur=\"2\">ducks</text></transcript>");
    let script = Script::new()
        .rule(client("VISIONOS").respond(ReplayResponse::json(&refused)))
        .rule(client("ANDROID").respond(ReplayResponse::json(&playable)))
        .rule(Rule::get(HOST, CAPTIONS).respond(body));
    let proxy = ReplayProxy::start(script)?;
    let outcome = fetch(&behind(&proxy)?, &video_id(&playable), None).await?;
    ensure!(outcome.is_ok(), "{outcome:?}");
    ensure!(proxy.requests().len() == 3, "{:?}", proxy.requests());
    Ok(())
}

#[test]
fn youtube_player_data_is_found_in_every_envelope() -> Result<()> {
    let data = json!({ "playabilityStatus": { "status": "OK" } });
    for text in [
        data.to_string(),
        json!({ "playerResponse": data }).to_string(),
        json!([{ "page": "watch" }, { "playerResponse": data }]).to_string(),
        format!("<script>var ytInitialPlayerResponse = {data};var other = 1;</script>"),
        format!("if (ytInitialPlayerResponse) {{}} window[\"ytInitialPlayerResponse\"] = {data};"),
    ] {
        assert_eq!(player_data(text.as_bytes())?, data, "{text}");
    }
    assert!(player_data(b"<html></html>").is_err());
    Ok(())
}
