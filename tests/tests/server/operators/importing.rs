//! Imports of files and folders as other programs write them.

use std::{fs, path::Path};

use anyhow::Result;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    super::harness::ServerFixture, VIDEO, WORDS, data_with_transcript, json_of, run_expecting, stdout_of,
    text,
};

fn folder(files: &[(&str, &str)]) -> Result<TempDir> {
    let folder = TempDir::new()?;
    for (name, body) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap_or(folder.path()))?;
        fs::write(path, body)?;
    }
    Ok(folder)
}

fn vtt(words: &str) -> String {
    format!("WEBVTT\n\n00:01.000 --> 00:02.000\n{words}\n")
}

fn import(data: &Path, folder: &TempDir, flags: &[&str], code: i32) -> Result<(String, String)> {
    let path = folder.path().display().to_string();
    let output = run_expecting(data, &[&["import", &path], flags].concat(), "", code)?;
    Ok((text(&output.stdout), text(&output.stderr)))
}

#[test]
fn import_large_folder_reports_progress_and_skips_bad_files() -> Result<()> {
    let names: Vec<_> = (0..300).map(|n| format!("{}/Talk {n} [id-{n:03}-0000].en.vtt", n % 7)).collect();
    let bodies: Vec<_> = (0..300).map(|n| vtt(&format!("words {n}"))).collect();
    let files: Vec<_> =
        names.iter().zip(&bodies).map(|(name, body)| (name.as_str(), body.as_str())).collect();
    let folder = folder(&files)?;
    fs::write(folder.path().join("a [id-bad-0000].en.vtt"), "<html>no captions</html>")?;
    fs::write(folder.path().join("b [id-bad-0001].json"), "{\"transcript\":[{\"text\"")?;
    fs::write(folder.path().join("nameless.srt"), "1\n00:00:01,000 --> 00:00:02,000\nwords\n")?;
    fs::write(folder.path().join("picture.jpg"), "no captions")?;
    let data = TempDir::new()?;

    let (planned, _) = import(data.path(), &folder, &["--dry-run"], 1)?;
    assert!(planned.contains("303 files: 300 transcripts would be imported"), "{planned}");
    assert!(fs::read_dir(data.path())?.next().is_none(), "a dry run created an archive");

    let (done, progress) = import(data.path(), &folder, &[], 1)?;
    assert!(done.contains("303 files: 300 transcripts imported") && done.contains(", 3 failed"), "{done}");
    for bad in ["id-bad-0000", "id-bad-0001", "nameless.srt"] {
        assert!(progress.lines().any(|line| line.contains(bad)), "{bad}: {progress}");
    }
    for count in [100, 200, 300] {
        assert!(progress.contains(&format!("imported {count} of 303: ")), "{progress}");
    }
    assert!(!progress.contains('\r'), "a progress line was redrawn without a terminal");
    assert_eq!(json_of(data.path(), &["archive", "stats", "--json"])?["videos"], 300);
    assert_eq!(stdout_of(data.path(), &["get", "id-299-0000"])?.trim_end(), "words 299");
    Ok(())
}

#[test]
fn import_reads_files_of_ytdlp() -> Result<()> {
    let info = json!({
        "id": "dQw4w9WgXcQ", "extractor_key": "Youtube", "title": "The whole title", "channel": "Ann",
        "webpage_url": "https://www.youtube.com/watch?v=dQw4w9WgXcQ", "duration": 61, "language": "en",
        "channel_id": "UCann", "timestamp": 1_700_000_000, "chapters": [{ "start_time": 0, "title": "In" }],
        "subtitles": { "fr": [{}] }, "automatic_captions": { "en": [{}], "en-orig": [{}], "de": [{}] }
    });
    let short = json!({
        "id": "7458607278405471496", "extractor_key": "TikTok", "title": "Short", "upload_date": "20240229",
        "webpage_url": "https://www.tiktok.com/@a/video/7458607278405471496"
    });
    let json3 =
        r#"{"wireMagic":"pb3","events":[{"tStartMs":0,"dDurationMs":9,"segs":[{"utf8":"json3 words"}]}]}"#;
    let srv3 = r#"<timedtext format="3"><body><p t="0" d="9">srv3 words</p></body></timedtext>"#;
    let ttml = r#"<tt xmlns="http://www.w3.org/ns/ttml"><body><div><p begin="0s" end="1s">ttml words</p></div></body></tt>"#;
    let folder = folder(&[
        ("T [dQw4w9WgXcQ].info.json", &info.to_string()),
        ("T [dQw4w9WgXcQ].de.vtt", &vtt("deutsch")),
        ("T [dQw4w9WgXcQ].en.vtt", &vtt("english")),
        ("T [dQw4w9WgXcQ].fr.vtt", &vtt("français")),
        ("T [dQw4w9WgXcQ].live_chat.json", "{}\n{}\n"),
        ("S [7458607278405471496].info.json", &short.to_string()),
        ("S [7458607278405471496].eng-US.vtt", &vtt("short words")),
        ("Old-json3-00000.en.json3", json3),
        ("srv3-000000.en.srv3", srv3),
        ("A [ttml-000000].en.ttml", ttml),
    ])?;
    let data = TempDir::new()?;
    let (done, _) = import(data.path(), &folder, &[], 0)?;
    assert!(done.contains("7 files: 7 transcripts imported"), "{done}");
    let shown = json_of(data.path(), &["archive", "show", "dQw4w9WgXcQ", "--json"])?;
    let tracks: Vec<_> = shown["tracks"].as_array().into_iter().flatten().collect();
    let kinds: Vec<_> = tracks.iter().map(|track| (&track["language"], &track["kind"])).collect();
    let expect = [
        (json!("en"), json!("generated")),
        (json!("de"), json!("translated")),
        (json!("fr"), json!("human")),
    ];
    assert_eq!(kinds, expect.iter().map(|(language, kind)| (language, kind)).collect::<Vec<_>>());
    assert_eq!(tracks[0]["archived"]["title"], "The whole title");
    assert_eq!(tracks[0]["archived"]["author"], "Ann");
    assert_eq!(tracks[0]["wishes"], json!(["default", "en"]));
    let found = json_of(data.path(), &["get", "dQw4w9WgXcQ", "--format", "json"])?;
    assert_eq!(found["metadata"]["publishedAt"], "2023-11-14T22:13:20Z");
    assert_eq!(found["metadata"]["authorId"], "UCann");
    assert_eq!(found["chapters"][0]["title"], "In");
    let short = stdout_of(data.path(), &["search", "short", "after:2024-02", "before:2024-03"])?;
    assert!(short.contains("7458607278405471496"), "{short}");
    run_expecting(data.path(), &["search", "english", "after:2024"], "", 3)?;
    for (link, words) in [
        ("dQw4w9WgXcQ", "english"),
        ("https://www.tiktok.com/@a/video/7458607278405471496", "short words"),
        ("json3-00000", "json3 words"),
        ("srv3-000000", "srv3 words"),
        ("ttml-000000", "ttml words"),
    ] {
        assert_eq!(stdout_of(data.path(), &["get", link])?.trim_end(), words, "{link}");
    }
    Ok(())
}

/// What a machine recognised says so itself; the name, the metadata and the option take precedence.
#[test]
fn import_of_recognised_speech_is_generated() -> Result<()> {
    let json3 = r#"{"wireMagic":"pb3","events":[{"tStartMs":0,"dDurationMs":9,"segs":[{"utf8":"so","acAsrConf":0}]}]}"#;
    let srv3 = r#"<timedtext format="3"><body><p t="0" d="9"><s ac="248">so</s></p></body></timedtext>"#;
    let youtube =
        "WEBVTT\nKind: captions\nLanguage: en\n\n00:00.000 --> 00:02.000\nso<00:00:00.400><c> we</c>\n";
    let whisper =
        r#"{"text":" so","language":"en","segments":[{"text":" so","start":0,"end":1,"avg_logprob":-0.2}]}"#;
    let info = json!({
        "id": "aaaaaaaaaa6", "extractor_key": "Youtube", "subtitles": { "en": [{}] },
        "webpage_url": "https://www.youtube.com/watch?v=aaaaaaaaaa6"
    });
    let folder = folder(&[
        ("T [aaaaaaaaaa1].en.json3", json3),
        ("T [aaaaaaaaaa2].en.srv3", srv3),
        ("T [aaaaaaaaaa3].en.vtt", youtube),
        ("T [aaaaaaaaaa4].en.json", whisper),
        ("T [aaaaaaaaaa5].en.vtt", &vtt("words of a person")),
        ("T [aaaaaaaaaa6].en.vtt", youtube),
        ("T [aaaaaaaaaa6].info.json", &info.to_string()),
    ])?;
    let data = TempDir::new()?;
    import(data.path(), &folder, &[], 0)?;
    for (number, kind) in
        [(1, "generated"), (2, "generated"), (3, "generated"), (4, "generated"), (5, "human"), (6, "human")]
    {
        let shown = json_of(data.path(), &["archive", "show", &format!("aaaaaaaaaa{number}"), "--json"])?;
        assert_eq!(shown["tracks"][0]["kind"], kind, "{number}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn import_reads_foreign_json() -> Result<()> {
    let snippets = json!([{ "text": "Words", "start": 0.5, "duration": 1.25 }]);
    let by_video =
        json!({ "aaaaaaaaaa1": snippets, "aaaaaaaaaa2": { "snippets": snippets, "language_code": "de" } });
    let object = json!({
        "snippets": snippets, "video_id": "aaaaaaaaaa3", "language": "English", "language_code": "en",
        "is_generated": true
    });
    let one = data_with_transcript()?;
    let server = ServerFixture::start(&one, &[])?;
    let look_up = server.get(&format!("/api/transcript?v={VIDEO}")).await?.text();
    let folder = folder(&[
        ("many.json", &by_video.to_string()),
        ("object.json", &object.to_string()),
        ("list [aaaaaaaaaa4].en.json", &snippets.to_string()),
        ("look-up.json", &look_up),
    ])?;
    let data = TempDir::new()?;
    let (done, _) = import(data.path(), &folder, &[], 0)?;
    assert!(done.contains("4 files: 5 transcripts imported"), "{done}");
    for video in ["aaaaaaaaaa1", "aaaaaaaaaa2", "aaaaaaaaaa3", "aaaaaaaaaa4"] {
        let found = json_of(data.path(), &["get", video, "--format", "json"])?;
        assert_eq!(found["transcript"], snippets, "{video}");
    }
    let shown = json_of(data.path(), &["archive", "show", "aaaaaaaaaa3", "--json"])?;
    assert_eq!(shown["tracks"][0]["kind"], "generated");
    let copied = json_of(data.path(), &["get", VIDEO, "--format", "json"])?;
    assert_eq!(copied["transcript"], serde_json::from_str::<Value>(&look_up)?["transcript"]);
    Ok(())
}

/// The JSON of a lookup, as `get --to` writes it, is imported with its kind; a machine translation is no default.
#[test]
fn import_of_lookup_json_keeps_track_and_metadata() -> Result<()> {
    let first = TempDir::new()?;
    let exported = json!({
        "format": "verbatim-export/1", "platform": "video_site", "videoId": VIDEO, "language": "tr",
        "kind": "translated", "title": "Rope", "author": "Ann", "duration": 61, "source": "youtube-captions",
        "wishes": ["translation:tr"], "transcript": [{ "text": "halat", "start": 0.5, "duration": 1.25 }],
        "tracks": [{ "language": "en", "kind": "generated", "original": true }]
    });
    let imported = run_expecting(first.path(), &["import", "-"], &exported.to_string(), 0)?;
    assert!(text(&imported.stdout).contains("translation into tr: imported\n"), "{imported:?}");
    let get = ["get", VIDEO, "--lang", "tr", "--translated", "--format", "json"];
    let look_up = stdout_of(first.path(), &get)?;

    let second = TempDir::new()?;
    let folder = folder(&[(&format!("Rope [{VIDEO}].tr.json"), &look_up)])?;
    import(second.path(), &folder, &[], 0)?;
    let shown = json_of(second.path(), &["archive", "show", VIDEO, "--json"])?;
    let known = |language: &str| {
        let mut tracks = shown["tracks"].as_array().into_iter().flatten();
        tracks.find(|track| track["language"] == language).cloned().unwrap_or_default()
    };
    let (track, english) = (known("tr"), known("en"));
    assert_eq!((&track["kind"], &track["wishes"]), (&json!("translated"), &json!(["translation:tr"])));
    assert_eq!((&english["kind"], &english["original"]), (&json!("generated"), &json!(true)));
    assert_eq!((&track["archived"]["title"], &track["archived"]["author"]), (&json!("Rope"), &json!("Ann")));
    let again: Value = serde_json::from_str(&stdout_of(second.path(), &get)?)?;
    let first: Value = serde_json::from_str(&look_up)?;
    assert_eq!((&again["metadata"], &again["transcript"]), (&first["metadata"], &first["transcript"]));
    Ok(())
}

#[test]
fn import_invalid_input_is_rejected_with_reason() -> Result<()> {
    let data = TempDir::new()?;
    let folder =
        folder(&[("words.vtt", WORDS), ("cut.json", "[{\"text\":\"a\",\"start\":0"), ("empty/x.txt", "x")])?;
    let path = |name: &str| folder.path().join(name).display().to_string();
    // A sparse file above the size limit.
    fs::File::create(folder.path().join("huge.vtt"))?.set_len(400 * 1024 * 1024)?;
    fs::File::create(folder.path().join("large.vtt"))?.set_len(40 * 1024 * 1024)?;
    let video = ["--video", VIDEO];
    for arguments in [
        &["import", &path("words.vtt")][..],
        &["import", &path("cut.json"), video[0], video[1]],
        &["import", &path("huge.vtt"), video[0], video[1]],
        &["import", &path("large.vtt"), video[0], video[1]],
        // As with several files.
        &["import", &path("cut.json"), &path("words.vtt")],
    ] {
        run_expecting(data.path(), arguments, "", 1)?;
    }
    for arguments in [
        &["import"][..],
        &["import", "/nothing/here"],
        &["import", "/nothing/here", &path("words.vtt")],
        &["import", &path("empty")],
        &["import", &path("words.vtt"), "--video", "https://vm.tiktok.com/ZMabcdef/"],
        &["import", &path(""), video[0], video[1]],
        &["import", &path("words.vtt"), &path("cut.json"), video[0], video[1]],
        &["import", "-", &path("words.vtt")],
        &["import", &path("words.vtt"), video[0], video[1], "--lang", "no language"],
        &["import", &path("words.vtt"), video[0], video[1], "--title", &"x".repeat(501)],
    ] {
        run_expecting(data.path(), arguments, "", 2)?;
    }
    // A file that names its video is not imported for another one.
    let look_up = json!({ "videoId": "aaaaaaaaaa1", "available": true, "transcript": [] });
    run_expecting(data.path(), &["import", "-", video[0], video[1]], &look_up.to_string(), 1)?;
    assert_eq!(json_of(data.path(), &["archive", "stats", "--json"])?["transcripts"], 0);
    Ok(())
}

#[test]
fn import_unreadable_cues_are_reported_with_lines() -> Result<()> {
    let body = "WEBVTT\n\n00:01.000 --> 00:02.000\na \0 b\n\n00:1x.000 --> 00:20.000\nlost\n";
    let folder = folder(&[("T [dQw4w9WgXcQ].en.vtt", body), ("U [dyke-walk-0].en.vtt", &vtt("whole"))])?;
    let file = folder.path().join("T [dQw4w9WgXcQ].en.vtt").display().to_string();

    let data = TempDir::new()?;
    let printed = stdout_of(data.path(), &["import", &file])?;
    assert!(printed.contains("\n1 cue was left out: its times cannot be read (line 6)\n"), "{printed}");
    assert!(printed.contains("\n1 character is unreadable, and U+FFFD now (line 4)\n"), "{printed}");
    let line = json_of(data.path(), &["import", &file, "--json"])?;
    assert_eq!(line["leftOut"], json!({ "count": 1, "lines": [6] }));
    assert_eq!(line["unreadable"], json!({ "count": 1, "lines": [4] }));
    assert_eq!((&line["videoId"], &line["language"]), (&json!("dQw4w9WgXcQ"), &json!("en")));
    assert_eq!(line["wishes"][0], json!({ "wish": "en", "effect": "unchanged" }));

    let (done, notes) = import(data.path(), &folder, &["--replace"], 0)?;
    assert!(done.contains("; 1 cues left out, 1 characters unreadable"), "{done}");
    assert!(notes.contains("T [dQw4w9WgXcQ].en.vtt: 1 cue was left out"), "{notes}");
    assert!(!notes.contains("U ["), "{notes}");
    let (lines, notes) = import(data.path(), &folder, &["--json"], 0)?;
    assert_eq!(lines.lines().count(), 2, "{lines}");
    assert!(lines.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{lines}");
    assert!(notes.contains("2 files: "), "{notes}");

    let hopeless = "WEBVTT\n\n00:1x.000 --> 00:20.000\nlost\n";
    let refused = run_expecting(data.path(), &["import", "-", "--video", VIDEO], hopeless, 1)?;
    assert!(text(&refused.stderr).contains("no cue's times and text can be read"), "{refused:?}");
    Ok(())
}

#[test]
fn import_language_defaults_to_file_header() -> Result<()> {
    let file = |header: &str| format!("WEBVTT\n{header}\n\n00:01.000 --> 00:02.000\nMot\n");
    for (header, flags, expect) in [
        ("Kind: captions\nLanguage: fr", &[][..], Some("fr")),
        ("Language: fr", &["--lang", "oc"], Some("oc")),
        ("Language: not a language", &[], Some("und")),
        ("Kind: chapters\nLanguage: fr", &["--lang", "fr"], None),
    ] {
        let data = TempDir::new()?;
        let import = [&["import", "-", "--video", VIDEO], flags].concat();
        run_expecting(data.path(), &import, &file(header), if expect.is_some() { 0 } else { 1 })?;
        if let Some(language) = expect {
            let shown = json_of(data.path(), &["archive", "show", VIDEO, "--json"])?;
            assert_eq!(shown["tracks"][0]["language"], language, "{header:?}");
        }
    }
    // The metadata file decides the kind of the track, wherever the language comes from.
    let info = json!({
        "id": "dQw4w9WgXcQ", "extractor_key": "Youtube", "title": "T", "language": "fr",
        "webpage_url": "https://www.youtube.com/watch?v=dQw4w9WgXcQ", "automatic_captions": { "fr": [{}] }
    });
    let folder = folder(&[
        ("T [dQw4w9WgXcQ].info.json", &info.to_string()),
        ("T [dQw4w9WgXcQ].fr.vtt", &file("Language: fr")),
    ])?;
    let data = TempDir::new()?;
    import(data.path(), &folder, &[], 0)?;
    let shown = json_of(data.path(), &["archive", "show", "dQw4w9WgXcQ", "--json"])?;
    assert_eq!(shown["tracks"][0]["kind"], "generated");
    Ok(())
}

/// Malformed files that players accept, with the text that they show; and files that no player accepts as WebVTT.
#[test]
fn import_malformed_webvtt_matches_players() -> Result<()> {
    let cue = "00:00.000 --> 00:01.000\nwords";
    for (name, body, expect) in [
        ("mark", format!("\u{FEFF}WEBVTT\n\n{cue}\n"), Some("words")),
        ("no end of the last line", format!("WEBVTT\n\n{cue}"), Some("words")),
        ("carriage returns", format!("WEBVTT\n\n{cue}\n").replace('\n', "\r"), Some("words")),
        ("both", format!("WEBVTT\n\n{cue}\n").replace('\n', "\r\n"), Some("words")),
        ("header text", format!("WEBVTT\twith a header\n\n{cue}\n"), Some("words")),
        ("header lines", format!("WEBVTT\nKind: x\nLanguage: en\n\n{cue}\n"), Some("words")),
        ("no empty line", format!("WEBVTT\n{cue}\n"), Some("words")),
        ("many empty lines", format!("WEBVTT\n\n\n\n\n{cue}\n\n\n\n"), Some("words")),
        ("notes", format!("WEBVTT\n\nNOTE\n{{}}\n\nNOTE one line\n\n{cue}\n"), Some("words")),
        ("style", format!("WEBVTT\n\nSTYLE\n::cue(b) {{ color: red; }}\n\n{cue}\n"), Some("words")),
        ("identifier", format!("WEBVTT\n\nthe first: 1\n{cue}\n"), Some("words")),
        ("no spaces", "WEBVTT\n\n00:00.000-->00:01.000\nwords\n".to_owned(), Some("words")),
        ("tabs", "WEBVTT\n\n00:00.000\t-->\t00:01.000\nwords\n".to_owned(), Some("words")),
        (
            "odd settings",
            "WEBVTT\n\n00:00.000 --> 00:01.000 line:-1% foo: :bar x\nwords\n".to_owned(),
            Some("words"),
        ),
        ("long hours", "WEBVTT\n\n000:00:00.000 --> 001:00:01.000\nwords\n".to_owned(), Some("words")),
        ("open tags", "WEBVTT\n\n00:00.000 --> 00:01.000\n<b><i>wor<c.a.b>ds\n".to_owned(), Some("words")),
        (
            "entities",
            "WEBVTT\n\n00:00.000 --> 00:01.000\n&lt;words&gt; &amp;\n".to_owned(),
            Some("<words> &"),
        ),
        ("a broken one", format!("WEBVTT\n\n00:70.000 -> 00:01\nlost\n\n{cue}\n"), Some("words")),
        ("no signature", format!("WEBVT\n\n{cue}"), Some("words")),
        ("lower case", "webvtt\n\nwords\n".to_owned(), None),
        ("glued signature", "WEBVTTwords\n\nmore\n".to_owned(), None),
        ("only a header", "WEBVTT\n\nNOTE nothing\n".to_owned(), None),
        ("empty", String::new(), None),
    ] {
        let data = TempDir::new()?;
        let import = ["import", "-", "--video", VIDEO];
        let code = if expect.is_some() { 0 } else { 1 };
        run_expecting(data.path(), &import, &body, code).map_err(|error| error.context(name))?;
        if let Some(words) = expect {
            assert_eq!(stdout_of(data.path(), &["get", VIDEO])?.trim_end(), words, "{name}");
        }
    }
    Ok(())
}
