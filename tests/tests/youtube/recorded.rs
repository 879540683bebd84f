//! Recorded answers that lie beside the checkout, where `VERBATIM_RECORDINGS` says.
//!
//! They are the platform's own and no part of this repository; each is described in the `INDEX.md` beside
//! it. Here is what must come of each: a file without a row fails the test, and so does a row without a file.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use verbatim_tests::replay::{Answer, ReplayProxy, Rule, Script};

use super::asking::{Outcome, ask, behind, check_failure};

const HOST: &str = "www.youtube.com";
const PLAYER: &str = "/youtubei/v1/player";
const CAPTIONS: &str = "/api/timedtext";

/// The video that is asked for where a file names none.
const ANY_VIDEO: &str = "vb-any-vid0";

/// What a file is, and what must come of it.
#[derive(Clone, Copy, Debug)]
enum Row {
    /// A player answer, bare, in an envelope or in a page: its default transcript has this language and
    /// kind, and the video has so many tracks.
    Plays(&'static str, &'static str, usize),
    /// The same, but the best track needs a token that we do not have: the next best one comes, after all
    /// clients were asked.
    PlaysGated(&'static str, &'static str, usize),
    /// A player answer, bare, in an envelope or in a page, of which this failure comes.
    Fails(&'static str),
    /// Something else that came in place of a player answer, and the failure that comes of it.
    InPlace(&'static str),
    /// A caption body with so many segments, of which the first begins so.
    Words(usize, &'static str),
    /// A caption body of which this failure comes.
    NoWords(&'static str),
}

use Row::{Fails, InPlace, NoWords, Plays, PlaysGated, Words};

const ROWS: &[(&str, Row)] = &[
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
    // The human-made English track is gated; the generated one is not.
    ("jta/player_po_token_required.json", PlaysGated("en", "generated", 9)),
    ("jta/player_unavailable.json", Fails("removed")),
    // A status that nobody knows is the platform's fault, and never remembered as the video's.
    ("jta/player_unplayable_custom.json", Fails("platform_fault")),
    ("jta/recaptcha_page.html", InPlace("bot_check")),
    ("jta/timedtext_classic.xml", Words(3, "Hey, this is just a test")),
    // A page of the site where data was asked for.
    ("jta/watch_ok.html", InPlace("unreadable")),
    ("newpipe/player_visionos_live_now.json", Fails("live")),
    ("newpipe/player_visionos_ok_cc.json", Plays("en", "human", 2)),
    ("newpipe/player_visionos_ok_en_asr.json", Plays("en", "generated", 1)),
    ("newpipe/player_visionos_ok_fr_asr.json", Plays("fr", "generated", 1)),
    ("newpipe/player_visionos_ok_named_track.json", Plays("de", "human", 1)),
    ("newpipe/player_visionos_ok_unlisted.json", Plays("en", "generated", 1)),
    // From every client: `the_next_client_has_what_one_has_not` plays it from one.
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
    ("timedtext/ytt_Colors.srv3.xml", Words(32, "Karaoke")),
    ("timedtext/ytt_Fade.srv3.xml", Words(55, "Simple fade")),
    ("timedtext/ytt_FaultTolerance.srv3.xml", Words(3, "Text")),
    ("timedtext/ytt_Ruby.srv3.xml", Words(5, "No [ru/ル][by/ビ]")),
    ("timedtext/ytt_TextDirection.srv3.xml", Words(21, "\\ytve")),
    ("timedtext/ytt_reference.srv3.xml", Words(53, "Bold")),
    // The reason is in Vietnamese.
    ("ytdl-core/age-restricted-vi-VN.watch.html", Fails("age")),
    ("ytdl-core/live-future.watch.json", Fails("upcoming")),
    ("ytdl-core/live-with-cc.watch.html", Fails("live")),
    ("ytdl-core/non-existent.watch.json", Fails("removed")),
    ("ytdl-core/private.watch.json", Fails("private")),
    ("ytdl-core/rental.watch.html", Fails("payment")),
];

/// The folder of the recordings, where there is one.
fn folder() -> Option<PathBuf> {
    let named: Option<OsString> = std::env::var_os("VERBATIM_RECORDINGS");
    if named.is_none() {
        eprintln!("not checked: VERBATIM_RECORDINGS names no folder");
    }
    named.map(|folder| Path::new(&folder).join("youtube"))
}

/// The recordings' names; what describes them is none.
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
fn every_recording_has_a_row() -> Result<()> {
    let Some(folder) = folder() else { return Ok(()) };
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
async fn every_recording_comes_out_as_its_row_says() -> Result<()> {
    let Some(folder) = folder() else { return Ok(()) };
    let mut wrong = Vec::new();
    for (name, row) in ROWS {
        let bytes = std::fs::read(folder.join(name)).with_context(|| (*name).to_owned())?;
        if let Err(error) = check(bytes, *row).await {
            wrong.push(format!("{name}, {row:?}: {error:#}"));
        }
    }
    ensure!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), ROWS.len(), wrong.join("\n"));
    Ok(())
}

async fn check(bytes: Vec<u8>, row: Row) -> Result<()> {
    match row {
        // The good way takes two requests.
        Plays(language, kind, tracks) => plays(&player_data(&bytes)?, language, kind, tracks, 2).await,
        PlaysGated(language, kind, tracks) => plays(&player_data(&bytes)?, language, kind, tracks, 4).await,
        Fails(reason) => {
            let player = player_data(&bytes)?;
            let (outcome, proxy) = played(Answer::json(&player), None, &video_of(&player)).await?;
            ensure!(proxy.requests().len() <= 3, "{} requests", proxy.requests().len());
            check_failure(&outcome, reason)
        }
        InPlace(reason) => {
            let (outcome, _) = played(Answer::bytes("text/html", bytes), None, ANY_VIDEO).await?;
            check_failure(&outcome, reason)
        }
        Words(segments, first) => words(bytes, segments, first).await,
        NoWords(reason) => {
            let body = Answer::bytes("text/html", bytes);
            check_failure(&played(small_player(), Some(body), ANY_VIDEO).await?.0, reason)
        }
    }
}

async fn plays(player: &Value, language: &str, kind: &str, tracks: usize, made: usize) -> Result<()> {
    let body = Answer::text(
        r#"{"wireMagic":"pb3","events":[{"tStartMs":40,"dDurationMs":960,"segs":[{"utf8":"words"}]}]}"#,
    );
    let (outcome, proxy) = played(Answer::json(player), Some(body), &video_of(player)).await?;
    let supplied = outcome.map_err(|error| anyhow::anyhow!("{error:?}"))?;
    let transcript = supplied.tracks.first().context("no transcript")?;
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

    // The last request goes for the track that came.
    let requests = proxy.requests();
    ensure!(requests.len() == made, "{} requests", requests.len());
    let captions = requests.last().context("no request for captions")?;
    ensure!(captions.parameter("lang") == Some(language), "asked: {:?}", captions.query);
    ensure!(
        (captions.parameter("kind") == Some("asr")) == (kind == "generated"),
        "asked: {:?}",
        captions.query
    );
    ensure!(captions.parameter("fmt") == Some("json3"), "asked: {:?}", captions.query);
    ensure!(captions.parameter("v") == Some(&video_of(player)), "asked: {:?}", captions.query);
    Ok(())
}

async fn words(bytes: Vec<u8>, segments: usize, first: &str) -> Result<()> {
    // The type in the header is wrong on purpose: the platform's has been wrong, too.
    let body = Answer::bytes("text/html; charset=UTF-8", bytes);
    let outcome = played(small_player(), Some(body), ANY_VIDEO).await?.0;
    let supplied = outcome.map_err(|error| anyhow::anyhow!("{error:?}"))?;
    let transcript = supplied.tracks.first().context("no transcript")?;
    let found = &transcript.segments;
    ensure!(found.len() == segments, "{} segments", found.len());
    // Styling tools put marks without width around their texts.
    let text = found.first().map(|segment| segment.text.replace('\u{200b}', "")).unwrap_or_default();
    ensure!(text.trim_start().starts_with(first), "the first segment is {text:?}");
    ensure!(found.iter().all(|segment| !segment.text.trim().is_empty()), "a segment without words");
    ensure!(found.is_sorted_by_key(|segment| segment.start_ms), "out of order");
    Ok(())
}

/// What comes of a video whose player and captions answer so.
async fn played(player: Answer, captions: Option<Answer>, video: &str) -> Result<(Outcome, ReplayProxy)> {
    let mut script = Script::new().rule(Rule::post(HOST, PLAYER).answer(player));
    if let Some(captions) = captions {
        script = script.rule(Rule::get(HOST, CAPTIONS).answer(captions));
    }
    let proxy = ReplayProxy::start(script)?;
    let outcome = ask(&behind(&proxy)?, video, None).await?;
    ensure!(proxy.unexpected().is_empty(), "unexpected: {:?}", proxy.unexpected());
    Ok((outcome, proxy))
}

/// A video with one English track.
fn small_player() -> Answer {
    let address = format!("https://www.youtube.com/api/timedtext?v={ANY_VIDEO}&lang=en");
    Answer::json(&json!({
        "playabilityStatus": { "status": "OK" },
        "captions": { "playerCaptionsTracklistRenderer": { "captionTracks": [
            { "baseUrl": address, "languageCode": "en", "name": { "runs": [{ "text": "English" }] } },
        ] } },
        "videoDetails": { "videoId": ANY_VIDEO, "title": "Any video", "lengthSeconds": "60" },
    }))
}

/// The video that player data is about.
fn video_of(player: &Value) -> String {
    player.pointer("/videoDetails/videoId").and_then(Value::as_str).unwrap_or(ANY_VIDEO).to_owned()
}

/// The player data in a recording: bare, in an envelope, in a list of parts of a page, or in a page.
fn player_data(bytes: &[u8]) -> Result<Value> {
    let text = std::str::from_utf8(bytes)?;
    let Ok(whole) = serde_json::from_str::<Value>(text) else {
        return of_page(text).context("the page holds no player data");
    };
    let enveloped = |value: &Value| value.get("playerResponse").cloned();
    match &whole {
        Value::Array(parts) => parts.iter().find_map(enveloped).context("no part is player data"),
        other => Ok(enveloped(other).unwrap_or(whole)),
    }
}

/// The object that a page assigns to `ytInitialPlayerResponse`.
fn of_page(page: &str) -> Option<Value> {
    const NAME: &str = "ytInitialPlayerResponse";
    page.match_indices(NAME).find_map(|(place, _)| {
        let rest = page.get(place + NAME.len()..)?.trim_start_matches("\"]").trim_start();
        let object = rest.strip_prefix('=')?.trim_start();
        let value = serde_json::Deserializer::from_str(object).into_iter::<Value>().next()?.ok()?;
        value.is_object().then_some(value)
    })
}

#[tokio::test]
async fn the_next_client_has_what_one_has_not() -> Result<()> {
    let Some(folder) = folder() else { return Ok(()) };
    let read = |name: &str| player_data(&std::fs::read(folder.join(name))?);
    let refused = read("newpipe/player_visionos_unplayable_kids.json")?;
    let played = read("newpipe/reel_ok_kids.json")?;
    let client = |name: &str| Rule::post(HOST, PLAYER).json("/context/client/clientName", name);
    let body = Answer::text("<transcript><text start=\"1\" dur=\"2\">ducks</text></transcript>");
    let script = Script::new()
        .rule(client("VISIONOS").answer(Answer::json(&refused)))
        .rule(client("ANDROID").answer(Answer::json(&played)))
        .rule(Rule::get(HOST, CAPTIONS).answer(body));
    let proxy = ReplayProxy::start(script)?;
    let outcome = ask(&behind(&proxy)?, &video_of(&played), None).await?;
    ensure!(outcome.is_ok(), "{outcome:?}");
    ensure!(proxy.requests().len() == 3, "{:?}", proxy.requests());
    Ok(())
}

#[test]
fn player_data_is_found_wherever_it_is() -> Result<()> {
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
