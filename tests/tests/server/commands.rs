//! The commands and their exit codes.

use std::{
    fs::File,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::Result;
use serde_json::json;
use tempfile::TempDir;

use super::{
    harness::{EXAMPLE, ServerFixture, import_example, run, text, verbatim},
    platform::{fetch_count, platform_settings, start_platform},
};

const VIDEO: &str = "dyke-walk-0";

#[tokio::test(flavor = "multi_thread")]
async fn get_prints_transcript_or_reason() -> Result<()> {
    let proxy = start_platform(&[VIDEO], Duration::ZERO)?;
    let data = TempDir::new()?;
    let get = |arguments: &[&str]| {
        let mut command = verbatim(data.path(), &[&["get"], arguments].concat());
        command.envs(platform_settings(&proxy));
        run(command, b"")
    };
    let link = format!("https://youtu.be/{VIDEO}");
    let first = get(&[&link])?;
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
    assert_eq!(
        text(&first.stdout).trim_end(),
        format!("This is {VIDEO}. The sheep keep the grass short. So the dyke holds.")
    );
    // The second one comes from the archive, which all commands share.
    let json_form = get(&[VIDEO, "--format", "json"])?;
    let body: serde_json::Value = serde_json::from_slice(&json_form.stdout)?;
    assert_eq!((&body["available"], &body["fromCache"]), (&json!(true), &json!(true)));
    assert_eq!(fetch_count(&proxy, VIDEO), 1);

    // Exit code 3: no transcript; the message has the reason and the watch address.
    let none = get(&["https://youtu.be/not-there-0"])?;
    assert_eq!(none.status.code(), Some(3), "{}", text(&none.stderr));
    assert!(none.stdout.is_empty());
    assert!(text(&none.stderr).contains("/watch/video_site/not-there-0"), "{}", text(&none.stderr));
    // Exit code 2: a bad link or wrong usage.
    for arguments in [
        &["https://example.org/"][..],
        &["--format", "pdf", &link],
        &["--lang", "english please", &link],
        &[],
    ] {
        let refused = get(arguments)?;
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {}", text(&refused.stderr));
        assert!(refused.stdout.is_empty());
    }
    Ok(())
}

/// A language without its own transcript gets the best archived match, and the command says so.
#[tokio::test(flavor = "multi_thread")]
async fn get_missing_language_prints_best_match() -> Result<()> {
    let data = TempDir::new()?;
    import_example(&data, "L1ghth0use1")?;
    // No platform can be reached.
    let get = |language: &str| {
        let mut command = verbatim(data.path(), &["get", "L1ghth0use1", "--lang", language]);
        command.env("VERBATIM_UPSTREAM__PROXY", "http://127.0.0.1:1").env("VERBATIM_UPSTREAM__RETRIES", "0");
        run(command, b"")
    };
    let british = get("en-GB")?;
    assert_eq!(british.status.code(), Some(0), "{}", text(&british.stderr));
    assert!(text(&british.stdout).contains("built by hand"));
    assert_eq!(text(&british.stderr), "verbatim: the best match for en-GB is in en\n");
    assert_eq!(text(&get("en")?.stderr), "");
    assert_eq!(get("de")?.status.code(), Some(3));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn import_is_served_at_once() -> Result<()> {
    let data = TempDir::new()?;
    let server = ServerFixture::start(&data, &[])?;
    let path = "/api/transcript?url=https://youtu.be/L1ghth0use1";
    assert_eq!(server.get(path).await?.json()["failureReason"], json!("needs_verification"));
    let import = |arguments: &[&str], input: &[u8]| {
        run(verbatim(data.path(), &[&["import"], arguments].concat()), input)
    };
    let imported =
        import(&[EXAMPLE, "--video", "https://youtu.be/L1ghth0use1", "--title", "The lighthouse"], b"")?;
    assert_eq!(imported.status.code(), Some(0), "{}", text(&imported.stderr));
    let body = server.get(path).await?.json();
    assert_eq!(body["transcript"].as_array().map(Vec::len), Some(5), "{body}");
    assert_eq!(
        body["transcript"][0],
        json!({
            "text": "The lighthouse at the end of the pier was built by hand.", "start": 1.0, "duration": 3.2
        })
    );
    // A second import keeps the first one, unless `--replace` is given.
    let other = b"1\n00:00:01,000 --> 00:00:02,000\nSomething else.\n";
    // The header of the file names English.
    let video = ["-", "--video", "L1ghth0use1", "--lang", "en"];
    assert_eq!(import(&video, other)?.status.code(), Some(0));
    assert_eq!(server.get(path).await?.json()["transcript"].as_array().map(Vec::len), Some(5));
    assert_eq!(import(&[&video[..], &["--replace"]].concat(), other)?.status.code(), Some(0));
    assert_eq!(server.get(path).await?.json()["transcript"][0]["text"], json!("Something else."));

    for (arguments, input) in [
        (&["-", "--video", "L1ghth0use1"][..], &b"<html>no captions</html>"[..]),
        (&["-", "--video", "L1ghth0use1"], b""),
        (&["/nothing/here.vtt", "--video", "L1ghth0use1"], b""),
        (&["-", "--video", "https://example.org/x"], other),
    ] {
        let refused = import(arguments, input)?;
        assert!(matches!(refused.status.code(), Some(1 | 2)), "{arguments:?}: {:?}", refused.status);
        assert!(text(&refused.stderr).len() > 20, "{arguments:?}");
        assert!(!text(&refused.stderr).contains("panicked"));
    }
    Ok(())
}

#[test]
fn config_invalid_setting_stops_start_and_is_named() -> Result<()> {
    let data = TempDir::new()?;
    for (name, value, word) in [
        ("VERBATIM_UPSTREAM__TIMEOUT", "soon", "upstream.timeout"),
        ("VERBATIM_UPSTREAM__TIMEOOT", "20s", "upstream.timeoot"),
        ("VERBATIM_SERVER__LISTEN", "nowhere", "server.listen"),
        ("VERBATIM_LIMITS__FREE_PER_MONTH", "-1", "limits.free_per_month"),
        ("VERBATIM_YOUTUBE__CLIENTS", "netscape", "youtube.clients"),
    ] {
        for command in ["serve", "check-config"] {
            let mut command = verbatim(data.path(), &[command]);
            command.env(name, value);
            let refused = run(command, b"")?;
            assert_eq!(refused.status.code(), Some(2), "{name}: {}", text(&refused.stderr));
            let message = text(&refused.stderr).to_lowercase();
            assert!(message.contains(word), "{name}: {message}");
            let source = format!("environment variable {}", name.to_lowercase());
            assert!(message.contains(&source), "{name}: {message}");
        }
    }
    let file = data.path().join("settings.toml");
    std::fs::write(&file, "[limits]\nfree_per_month = 3\nunknown_thing = 1\n")?;
    let refused =
        run(verbatim(data.path(), &["check-config", "--config", &file.display().to_string()]), b"")?;
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("limits.unknown_thing"), "{}", text(&refused.stderr));

    std::fs::write(&file, "[limits]\nfree_per_month = 3\n[speech]\napi_key = \"very-secret\"\n")?;
    let shown = run(verbatim(data.path(), &["check-config", "--config", &file.display().to_string()]), b"")?;
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown.stderr));
    let shown = text(&shown.stdout) + &text(&shown.stderr);
    assert!(shown.contains("limits.free_per_month") && !shown.contains("very-secret"), "{shown}");
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn database_without_file_descriptors_names_cause() -> Result<()> {
    let data = TempDir::new()?;
    import_example(&data, "dQw4w9WgXcQ")?;
    let mut messages = String::new();
    for limit in 8..32 {
        let stats = verbatim(data.path(), &["archive", "stats"]);
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -n {limit}; exec \"$0\" \"$@\"")]);
        command.arg(stats.get_program()).args(stats.get_args());
        for (name, value) in stats.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        messages.push_str(&text(&run(command, b"")?.stderr));
    }
    assert!(messages.contains("too many files are open; raise the limit"), "{messages}");
    assert!(!messages.contains("are this user's"), "{messages}");
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn keys_create_with_failed_output_revokes_key() -> Result<()> {
    let data = TempDir::new()?;
    let (reader, closed) = std::io::pipe()?;
    drop(reader);
    let full = File::options().write(true).open("/dev/full")?;
    for output in [Stdio::from(closed), Stdio::from(full)] {
        let mut command = verbatim(data.path(), &["keys", "create", "--count", "2"]);
        let made = command.stdin(Stdio::null()).stdout(output).stderr(Stdio::piped()).spawn()?;
        let made = made.wait_with_output()?;
        assert_eq!(made.status.code(), Some(1), "{}", text(&made.stderr));
        assert!(text(&made.stderr).contains("was revoked"), "{}", text(&made.stderr));
    }
    let listed = run(verbatim(data.path(), &["keys", "list", "--json"]), b"")?;
    let keys: Vec<serde_json::Value> = serde_json::from_slice(&listed.stdout)?;
    assert_eq!(keys.len(), 2);
    assert!(keys.iter().all(|key| key["revokedAt"].is_string()), "{keys:?}");
    Ok(())
}

#[test]
fn help_is_printed_without_colours() -> Result<()> {
    let data = TempDir::new()?;
    for arguments in [
        &["--help"][..],
        &["serve", "--help"],
        &["get", "--help"],
        &["import", "--help"],
        &["keys", "create", "--help"],
    ] {
        let mut command = Command::new(super::harness::binary());
        command.args(arguments).current_dir(data.path());
        let output = run(command, b"")?;
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(output.stdout.len() > 200, "{arguments:?}");
        assert!(!text(&output.stdout).contains('\u{1b}'), "colours are for terminals only");
    }
    Ok(())
}
