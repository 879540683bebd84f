//! The built command with a speech-to-text service.

use std::{fs, process::Command};

use anyhow::Result;
use http::StatusCode;
use serde_json::{Value, json};
use tempfile::TempDir;
use verbatim_tests::replay::ReplayProxy;

use super::{
    fixture::{REEL, video},
    recogniser::SpeechRecognizer,
    sounds::{speech, tones},
};
use crate::{
    server::{
        harness::{ServerFixture, binary, borrow_settings, create_keys, run, verbatim, verbatim_with},
        platform::platform_settings,
    },
    service::fake::{FakeReply, FakeService},
};

/// Settings of a command that uses this platform, this service and this folder for temporary files.
pub(super) fn speech_settings(
    proxy: &ReplayProxy,
    base_url: &str,
    folder: &TempDir,
) -> Vec<(String, String)> {
    let mut settings = platform_settings(proxy);
    for (name, value) in [
        ("VERBATIM_SPEECH__BASE_URL", base_url.to_owned()),
        ("VERBATIM_SPEECH__MODEL", "sphinx".to_owned()),
        ("VERBATIM_SPEECH__API_KEY", "test-key".to_owned()),
        ("VERBATIM_SPEECH__RETRIES", "0".to_owned()),
        ("TMPDIR", folder.path().display().to_string()),
    ] {
        settings.push((name.to_owned(), value));
    }
    settings
}

fn link() -> String {
    format!("https://www.instagram.com/reel/{REEL}/")
}

#[test]
fn speech_cli_get_prints_transcript() -> Result<()> {
    let recognizer = SpeechRecognizer::start()?;
    let proxy = video(speech(&[(0.0, "the quick brown fox jumps over the lazy dog")])?)?;
    let (data, temporary) = (TempDir::new()?, TempDir::new()?);
    let mut get = verbatim(data.path(), &["get", &link()]);
    get.envs(speech_settings(&proxy, &recognizer.base_url, &temporary));
    let output = run(get, b"")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("brown fox") && text.contains("lazy dog"), "{text}");
    let shown = run(verbatim(data.path(), &["archive", "show", &link()]), b"")?;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("speech-to-text") && shown.contains("recognised by a machine"), "{shown}");
    assert_eq!(fs::read_dir(temporary.path())?.count(), 0, "temporary files are left");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_cli_progress_is_shown_only_on_terminal() -> Result<()> {
    let service = FakeService::start(|_, _| FakeReply::transcription(&[(0.0, 1.5, " Laid.")])).await?;
    let proxy = video(tones(4)?)?;
    for is_terminal in [true, false] {
        let (data, temporary) = (TempDir::new()?, TempDir::new()?);
        let mut get = verbatim(data.path(), &["get", &link()]);
        if is_terminal {
            let folder = data.path().display();
            let line = format!("'{}' get '{}' --data '{folder}'", binary().display(), link());
            get = Command::new("script");
            get.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        }
        get.envs(speech_settings(&proxy, &service.base_url, &temporary))
            .env("VERBATIM_SPEECH__CHUNK_DURATION", "3s")
            .env("TERM", "xterm");
        let output = tokio::task::spawn_blocking(|| run(get, b"")).await??;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(text.contains("Laid."), "{text}");
        assert_eq!(text.contains("\r\x1b[Ktranscribing part 2 of 2"), is_terminal, "{text:?}");
        assert_eq!(text.contains('\x1b'), is_terminal, "{text:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_lookup_charges_only_success() -> Result<()> {
    let service = FakeService::start(|_, index| match index {
        0 | 1 => FakeReply::new(500, "", ""),
        _ => FakeReply::transcription(&[(0.0, 1.5, " Laid."), (2.0, 3.5, " And closed.")]),
    })
    .await?;
    let proxy = video(tones(4)?)?;
    let (data, temporary) = (TempDir::new()?, TempDir::new()?);
    let settings = speech_settings(&proxy, &service.base_url, &temporary);
    let settings = borrow_settings(&settings);
    let server = ServerFixture::start(&data, &settings)?;
    let key = create_keys(&data, 1)?.remove(0);
    let path = format!("/api/transcript?url={}", link());
    let look_up = async || -> Result<Value> {
        let reply = server.get_as(&key, &path).await?;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
        Ok(reply.json())
    };
    let failed = look_up().await?;
    assert_eq!(
        (&failed["failureReason"], &failed["key"]["used"]),
        (&json!("fetch_error"), &json!(0)),
        "{failed}"
    );
    let transcribed = look_up().await?;
    assert_eq!(
        (&transcribed["source"], &transcribed["fromCache"]),
        (&json!("speech-to-text"), &json!(false)),
        "{transcribed}"
    );
    let words = json!([
        {"text": "Laid.", "start": 0.0, "duration": 1.5},
        {"text": "And closed.", "start": 2.0, "duration": 1.5},
    ]);
    assert_eq!((&transcribed["transcript"], &transcribed["key"]["used"]), (&words, &json!(1)));
    assert_eq!(look_up().await?["fromCache"], json!(true));
    assert_eq!(fs::read_dir(temporary.path())?.count(), 0, "temporary files are left");
    Ok(())
}

#[test]
fn speech_settings_are_checked() -> Result<()> {
    let data = TempDir::new()?;
    let checked =
        |settings: &[(&str, &str)]| run(verbatim_with(data.path(), settings, &["check-config"]), b"");
    let set = [("VERBATIM_SPEECH__BASE_URL", "https://s.example/v1"), ("VERBATIM_SPEECH__MODEL", "m")];
    let good = checked(&[&set[..], &[("VERBATIM_SPEECH__FORMAT", "flac")]].concat())?;
    let report = String::from_utf8_lossy(&good.stdout).into_owned();
    assert_eq!(good.status.code(), Some(0), "{}", String::from_utf8_lossy(&good.stderr));
    assert!(report.contains("\"speech-to-text\"") && report.contains("\"flac\""), "{report}");
    for (name, value) in [
        ("VERBATIM_SPEECH__FORMAT", "mp3"),
        ("VERBATIM_SPEECH__BASE_URL", "https://me@s.example/v1"),
        ("VERBATIM_SPEECH__CHUNK_DURATION", "1s"),
    ] {
        let wrong = checked(&[&set[..], &[(name, value)]].concat())?;
        assert_eq!(wrong.status.code(), Some(2), "{name}");
        assert!(String::from_utf8_lossy(&wrong.stderr).contains(name), "{wrong:?}");
    }
    Ok(())
}
