//! Output of hostile texts: escaped on a terminal, unchanged in a pipe.

use std::process::Command;

use anyhow::Result;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::harness::{binary, run, verbatim};

const VIDEO: &str = "dyke-walk-0";
/// Clears the screen, sets a title, starts colours in two ways, moves back, and reverses the text direction.
const HOSTILE: &str = "a\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{8}\u{202e}b";

fn is_dangerous(c: char) -> bool {
    let reorders = matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    reorders || (c.is_control() && !matches!(c, '\n' | '\t'))
}

/// Output of a command on a terminal: standard output and standard error together.
fn run_on_terminal(data: &TempDir, arguments: &[&str]) -> Result<String> {
    let quoted = |word: &str| format!("'{}'", word.replace('\'', "'\\''"));
    let data = data.path().display().to_string();
    let words = [&[binary().to_str().unwrap_or_default()], arguments, &["--data", &data]].concat();
    let line = words.into_iter().map(quoted).collect::<Vec<_>>().join(" ");
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env("VERBATIM_LOG__LEVEL", "warn");
    let output = run(script, b"")?;
    // A terminal ends its lines with CR LF.
    Ok(String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n"))
}

#[test]
fn terminal_output_has_no_control_characters() -> Result<()> {
    let data = TempDir::new()?;
    let captions = json!([{ "text": HOSTILE, "start": 0.5, "duration": 1.0 }]).to_string();
    let title = ["--title", HOSTILE, "--author", HOSTILE];
    let import = [&["import", "-", "--video", VIDEO, "--lang", "en"][..], &title].concat();
    assert_eq!(run(verbatim(data.path(), &import), captions.as_bytes())?.status.code(), Some(0));
    let hostile_file = data.path().join("\u{1b}[2J.vtt");
    std::fs::write(&hostile_file, "no captions")?;
    let hostile_file = hostile_file.display().to_string();

    for format in ["text", "md", "json", "srt", "vtt"] {
        let shown = run_on_terminal(&data, &["get", VIDEO, "--format", format])?;
        assert!(shown.contains("[2J") && shown.contains("31m"), "{format}: {shown:?}");
        assert!(!shown.contains(is_dangerous), "{format}: {shown:?}");
        let piped = run(verbatim(data.path(), &["get", VIDEO, "--format", format]), b"")?.stdout;
        let piped = String::from_utf8_lossy(&piped).into_owned();
        if format == "json" {
            for text in [&piped, &shown] {
                let words = serde_json::from_str::<Value>(text)?["transcript"][0]["text"].clone();
                assert_eq!(words, HOSTILE);
            }
        } else {
            assert!(piped.contains("\u{9b}31m\u{8}\u{202e}b"), "{format}: {piped:?}");
        }
    }
    for arguments in [
        &["archive", "show", VIDEO][..],
        &["archive", "show", VIDEO, "--json"],
        &["archive", "export", VIDEO, "--to", "/dev/null/\u{1b}[2J"],
        &["import", &hostile_file, "--video", VIDEO],
        &["import", &hostile_file, &hostile_file],
        &["get", "https://example.org/\u{1b}[2J\u{9b}31m"],
        &["keys", "revoke", "key-\u{1b}[2J"],
        &["keys", "list"],
    ] {
        let shown = run_on_terminal(&data, arguments)?;
        assert!(!shown.trim().is_empty(), "{arguments:?}");
        assert!(!shown.contains(is_dangerous), "{arguments:?}: {shown:?}");
    }
    Ok(())
}

/// An empty answer deletes nothing. A withdrawn video lists no transcripts, and has all of them.
#[test]
fn terminal_question_before_deletion_names_withdrawal() -> Result<()> {
    let data = TempDir::new()?;
    let captions = json!([{ "text": "one", "start": 0.5, "duration": 1.0 }]).to_string();
    let import = verbatim(data.path(), &["import", "-", "--video", VIDEO, "--lang", "en"]);
    assert_eq!(run(import, captions.as_bytes())?.status.code(), Some(0));
    for withdrawn in [false, true] {
        if withdrawn {
            run_on_terminal(&data, &["archive", "withdraw", VIDEO])?;
        }
        let shown = run_on_terminal(&data, &["archive", "delete", VIDEO])?;
        assert!(shown.contains("Delete all transcripts and revisions of "), "{shown}");
        assert_eq!(shown.contains("which is withdrawn"), withdrawn, "{shown}");
        assert!(shown.contains("nothing was deleted"), "{shown}");
    }
    Ok(())
}
