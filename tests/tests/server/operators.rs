//! The commands of an operator, with and without a running server on the same data folder.

mod accounts;
mod auditing;
mod compacting;
mod damage;
mod exporting;
mod importing;

use std::{path::Path, process::Output, time::Duration};

use anyhow::Result;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    harness::{ServerFixture, run, text, verbatim},
    platform::{fetch_count, platform_settings, start_platform},
};

const VIDEO: &str = "dyke-walk-0";
const WORDS: &str = "WEBVTT\n\n00:01.000 --> 00:02.000\nThe sheep keep the grass short.\n";

/// Runs a command and checks its exit code.
fn run_expecting(data: &Path, arguments: &[&str], input: &str, code: i32) -> Result<Output> {
    let output = run(verbatim(data, arguments), input.as_bytes())?;
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {} {stderr}", text(&output.stdout));
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert!(code == 0 || stderr.len() > 10, "a failure without an explanation: {arguments:?}");
    Ok(output)
}

/// Standard output of a command that must succeed.
fn stdout_of(data: &Path, arguments: &[&str]) -> Result<String> {
    Ok(text(&run_expecting(data, arguments, "", 0)?.stdout))
}

fn json_of(data: &Path, arguments: &[&str]) -> Result<Value> {
    Ok(serde_json::from_str(&stdout_of(data, arguments)?)?)
}

/// A data folder with one imported transcript of [`VIDEO`].
fn data_with_transcript() -> Result<TempDir> {
    let data = TempDir::new()?;
    let import = ["import", "-", "--video", VIDEO, "--lang", "en", "--title", "A \u{1b}[2Jwalk"];
    run_expecting(data.path(), &import, WORDS, 0)?;
    Ok(data)
}

#[test]
fn archive_show_prints_archived_tracks() -> Result<()> {
    let data = data_with_transcript()?;
    let shown = stdout_of(data.path(), &["archive", "show", "https://youtu.be/dyke-walk-0"])?;
    for part in ["video_site/dyke-walk-0", "revision 1", "from import", "selectors: default, en", "title: A"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains('\u{1b}'), "a title can move the cursor");
    let shown = json_of(data.path(), &["archive", "show", VIDEO, "--json"])?;
    assert_eq!(shown["tracks"][0]["language"], "en");
    assert_eq!(shown["tracks"][0]["wishes"], json!(["default", "en"]));
    assert_eq!(shown["tracks"][0]["archived"]["segments"], 1);
    let stats = json_of(data.path(), &["archive", "stats", "--json"])?;
    assert_eq!((&stats["videos"], &stats["transcripts"]), (&json!(1), &json!(1)));
    assert!(stdout_of(data.path(), &["archive", "stats"])?.contains("1  videos with a transcript"));

    let unknown = run_expecting(data.path(), &["archive", "show", "not-there-0"], "", 3)?;
    assert!(text(&unknown.stderr).trim_end().ends_with("/watch/video_site/not-there-0"), "{unknown:?}");
    for command in ["show", "delete", "withdraw", "refresh", "export"] {
        run_expecting(data.path(), &["archive", command], "", 2)?;
        run_expecting(data.path(), &["archive", command, "https://example.org/"], "", 2)?;
    }
    // A short link that is not resolved yet is not resolved by this command.
    run_expecting(data.path(), &["archive", "show", "https://vm.tiktok.com/ZMabcdef/"], "", 2)?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn archive_withdrawal_is_visible_on_running_server() -> Result<()> {
    let data = data_with_transcript()?;
    let server = ServerFixture::start(&data, &[])?;
    let path = format!("/api/transcript?v={VIDEO}");
    assert_eq!(server.get(&path).await?.json()["available"], true);
    assert!(stdout_of(data.path(), &["archive", "withdraw", VIDEO])?.ends_with(": withdrawn\n"));
    let gone = server.get(&path).await?.json();
    assert_eq!((&gone["available"], &gone["failureReason"]), (&json!(false), &json!("no_captions")));
    assert!(gone["failureMessage"].as_str().is_some_and(|why| why.contains("withdrawn by the operator")));
    for format in ["text", "md", "srt", "vtt"] {
        let gone = server.get(&format!("{path}&format={format}")).await?;
        assert_eq!(gone.status, 404, "{format}");
        assert!(!gone.text().contains("sheep"));
    }
    assert!(stdout_of(data.path(), &["archive", "show", VIDEO])?.contains("withdrawn by the operator"));
    assert!(stdout_of(data.path(), &["archive", "withdraw", VIDEO])?.ends_with("already\n"));
    run_expecting(data.path(), &["archive", "refresh", VIDEO], "", 3)?;
    run_expecting(data.path(), &["import", "-", "--video", VIDEO], WORDS, 1)?;

    assert!(stdout_of(data.path(), &["archive", "withdraw", VIDEO, "--undo"])?.ends_with("restored\n"));
    assert_eq!(server.get(&path).await?.json()["available"], true);
    assert!(stdout_of(data.path(), &["archive", "withdraw", VIDEO, "--undo"])?.ends_with("not withdrawn\n"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn archive_deletion_is_visible_on_running_server() -> Result<()> {
    let data = data_with_transcript()?;
    let server = ServerFixture::start(&data, &[])?;
    let path = format!("/api/transcript?v={VIDEO}");
    assert_eq!(server.get(&path).await?.json()["available"], true);
    // Without a terminal for the question, the deletion requires `--yes`.
    run_expecting(data.path(), &["archive", "delete", VIDEO], "y\n", 2)?;
    assert_eq!(server.get(&path).await?.json()["available"], true);
    assert!(stdout_of(data.path(), &["archive", "delete", VIDEO, "--yes"])?.contains("deleted"));
    assert_eq!(server.get(&path).await?.json()["failureReason"], "needs_verification");
    run_expecting(data.path(), &["archive", "delete", VIDEO, "--yes"], "", 3)?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn archive_refresh_fetches_again_without_charge() -> Result<()> {
    let proxy = start_platform(&[VIDEO], Duration::ZERO)?;
    let data = data_with_transcript()?;
    let server = ServerFixture::start(&data, &[])?;
    let path = format!("/api/transcript?v={VIDEO}");
    assert_eq!(server.get(&path).await?.json()["source"], "import");
    let refresh = |arguments: &[&str]| {
        let mut command = verbatim(data.path(), &[&["archive", "refresh"], arguments].concat());
        command.envs(platform_settings(&proxy));
        run(command, b"")
    };
    let first = refresh(&[VIDEO])?;
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
    assert!(text(&first.stdout).contains("archived as revision 2, 3 segments"), "{}", text(&first.stdout));
    let body = server.get(&path).await?.json();
    assert_eq!(body["source"], "youtube-captions");
    assert_eq!(body["transcript"].as_array().map(Vec::len), Some(3));

    let second = refresh(&["https://youtu.be/dyke-walk-0"])?;
    assert!(text(&second.stdout).contains("unchanged, still revision 2"), "{}", text(&second.stdout));
    assert_eq!(fetch_count(&proxy, VIDEO), 2);
    // A failed fetch leaves the archived transcript unchanged.
    for (arguments, code) in
        [(&[VIDEO, "--lang", "fr"][..], 3), (&["not-there-0"], 3), (&[VIDEO, "--lang", "no language"], 2)]
    {
        let output = refresh(arguments)?;
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output.stderr));
    }
    assert_eq!(server.get(&path).await?.json()["transcript"], body["transcript"]);
    let audit = json_of(data.path(), &["ledger", "audit", "--json"])?;
    assert_eq!((&audit["entries"], &audit["walletsChecked"]), (&json!(0), &json!(0)));
    Ok(())
}

#[test]
fn help_has_examples() -> Result<()> {
    let data = TempDir::new()?;
    for arguments in [
        &["archive", "show"][..],
        &["archive", "export"],
        &["archive", "delete"],
        &["archive", "withdraw"],
        &["archive", "refresh"],
        &["archive", "verify"],
        &["archive", "stats"],
        &["ledger", "audit"],
        &["import"],
    ] {
        let help = stdout_of(data.path(), &[arguments, &["--help"]].concat())?;
        assert!(help.contains("Examples:\n"), "{help}");
        assert!(help.contains(&format!("verbatim {}", arguments.join(" "))), "{help}");
    }
    Ok(())
}
