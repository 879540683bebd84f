//! Exports of an archive to files, and imports of these files into another archive.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Output, Stdio},
};

use anyhow::Result;
use http::Method;
use serde_json::json;
use tempfile::TempDir;

use super::{
    super::harness::{ServerFixture, verbatim},
    VIDEO, data_with_transcript, run_expecting, stdout_of, text,
};

const FORMATS: [&str; 5] = ["json", "text", "md", "srt", "vtt"];
/// Texts that a faulty writer or reader would change.
const HOSTILE: &str = "WEBVTT\n\n00:00:01.000 --> 00:00:02.500\n<v Ann>Tom &amp; Ann: a --&gt; b\n\u{200B}\nList&lt;T&gt;\n\n\
    00:00:02.500 --> 00:00:03.001\n42\n\n00:59:59.999 --> 01:00:00.000\n中文 *not bold* {\\\\an8}\n";

/// An archive with three videos on two platforms, one of them in three languages.
fn fill_archive() -> Result<TempDir> {
    let data = data_with_transcript()?;
    let folder = data.path();
    for arguments in [
        &["--video", "https://x.com/a/status/20", "--lang", "pt-BR", "--title", "Um \"título\""][..],
        &["--video", VIDEO, "--lang", "de-AT", "--generated"],
        &["--video", VIDEO, "--lang", "zh-Hant", "--author", "Ann"],
        &["--video", "-wtIMTCHWuI"],
    ] {
        run_expecting(folder, &[&["import", "-"], arguments].concat(), HOSTILE, 0)?;
    }
    Ok(data)
}

/// The archive's output for every track selector in every format.
fn read_outputs(data: &Path, formats: &[&str]) -> Result<BTreeMap<String, String>> {
    let mut read_outputs = BTreeMap::new();
    for (link, language) in [
        (VIDEO, None),
        (VIDEO, Some("en")),
        (VIDEO, Some("de")),
        (VIDEO, Some("zh-Hant")),
        ("-wtIMTCHWuI", None),
        ("https://x.com/a/status/20", None),
        ("https://x.com/a/status/20", Some("pt")),
    ] {
        for format in formats {
            let mut arguments = vec!["get", link, "--format", format];
            arguments.extend(language.iter().flat_map(|tag| ["--lang", *tag]));
            read_outputs.insert(arguments.join(" "), stdout_of(data, &arguments)?);
        }
    }
    Ok(read_outputs)
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                names.push(path.strip_prefix(folder)?.display().to_string());
            }
        }
    }
    names.sort();
    Ok(names)
}

#[test]
fn export_as_json_imports_to_equal_archive() -> Result<()> {
    let data = fill_archive()?;
    let files = TempDir::new()?;
    let to = files.path().display().to_string();
    let exported = stdout_of(data.path(), &["archive", "export", "--all", "--to", &to])?;
    let expect = [
        "microblog/20/pt-BR.json",
        "video_site/-wtIMTCHWuI/und.json",
        "video_site/dyke-walk-0/de-AT.json",
        "video_site/dyke-walk-0/en.json",
        "video_site/dyke-walk-0/zh-Hant.json",
    ];
    assert_eq!(names(files.path())?, expect);
    assert_eq!(exported.lines().count(), expect.len());

    let other = TempDir::new()?;
    let imported = stdout_of(other.path(), &["import", &to])?;
    assert!(imported.contains("5 files: 5 transcripts imported"), "{imported}");
    assert_eq!(read_outputs(other.path(), &FORMATS)?, read_outputs(data.path(), &FORMATS)?);
    // A second export is equal, except for the time of storing.
    let again = TempDir::new()?;
    stdout_of(other.path(), &["archive", "export", "--all", "--to", &again.path().display().to_string()])?;
    for name in expect {
        let read = |folder: &TempDir| -> Result<serde_json::Value> {
            let mut json: serde_json::Value = serde_json::from_slice(&fs::read(folder.path().join(name))?)?;
            json["storedAt"].take();
            Ok(json)
        };
        assert_eq!(read(&again)?, read(&files)?, "{name}");
    }
    let imported = stdout_of(other.path(), &["import", &to])?;
    assert!(imported.contains("0 transcripts imported, 5 unchanged, 0 kept ("), "{imported}");
    Ok(())
}

/// Runs a command whose output is read by a program that has ended.
fn run_without_reader(data: &Path, arguments: &[&str]) -> Result<Output> {
    let (reader, closed) = std::io::pipe()?;
    drop(reader);
    let mut command = verbatim(data, arguments);
    let child = command.stdin(Stdio::null()).stdout(closed).stderr(Stdio::piped()).spawn()?;
    Ok(child.wait_with_output()?)
}

#[test]
fn export_and_import_without_reader_process_everything() -> Result<()> {
    let data = fill_archive()?;
    let (files, other) = (TempDir::new()?, TempDir::new()?);
    let to = files.path().display().to_string();
    let exported = run_without_reader(data.path(), &["archive", "export", "--all", "--to", &to])?;
    assert_eq!(exported.status.code(), Some(0), "{}", text(&exported.stderr));
    assert_eq!(names(files.path())?.len(), 5);
    let imported = run_without_reader(other.path(), &["import", "--json", &to])?;
    assert_eq!(imported.status.code(), Some(0), "{}", text(&imported.stderr));
    assert_eq!(read_outputs(other.path(), &FORMATS)?, read_outputs(data.path(), &FORMATS)?);
    Ok(())
}

#[test]
fn export_as_subtitles_imports_to_same_text_and_times() -> Result<()> {
    let data = fill_archive()?;
    for format in ["srt", "vtt"] {
        let files = TempDir::new()?;
        let to = files.path().display().to_string();
        stdout_of(data.path(), &["archive", "export", "--all", "--format", format, "--to", &to])?;
        let other = TempDir::new()?;
        stdout_of(other.path(), &["import", &to])?;
        let formats = ["text", "srt", "vtt"];
        assert_eq!(read_outputs(other.path(), &formats)?, read_outputs(data.path(), &formats)?, "{format}");
    }
    Ok(())
}

/// A machine translation does not overwrite the captions of the same language.
#[test]
fn export_translation_is_another_file_than_captions() -> Result<()> {
    let data = TempDir::new()?;
    let translation = json!({
        "format": "verbatim-export/1", "platform": "video_site", "videoId": VIDEO, "language": "de",
        "kind": "translated", "wishes": ["translation:de"],
        "transcript": [{ "text": "Es ist still.", "start": 0, "duration": 1 }],
    });
    run_expecting(data.path(), &["import", "-"], &translation.to_string(), 0)?;
    run_expecting(data.path(), &["import", "-", "--video", VIDEO, "--lang", "de"], HOSTILE, 0)?;
    for format in ["json", "srt"] {
        let export = |data: &Path, format: &str| -> Result<TempDir> {
            let files = TempDir::new()?;
            let to = files.path().display().to_string();
            let arguments = ["archive", "export", "--all", "--force", "--format", format, "--to", &to];
            stdout_of(data, &arguments)?;
            let expect =
                ["de", "translation_de.de"].map(|name| format!("video_site/{VIDEO}/{name}.{format}"));
            assert_eq!(names(files.path())?, expect);
            Ok(files)
        };
        let (files, other) = (export(data.path(), format)?, TempDir::new()?);
        stdout_of(other.path(), &["import", &files.path().display().to_string()])?;
        let imported = export(other.path(), "json")?;
        for (name, kind) in [("de", "human"), ("translation_de.de", "translated")] {
            let file = imported.path().join(format!("video_site/{VIDEO}/{name}.json"));
            let read: serde_json::Value = serde_json::from_slice(&fs::read(file)?)?;
            assert_eq!(read["kind"], kind, "{format}");
        }
    }
    Ok(())
}

/// An archive restored from an export contains no withdrawn transcript.
#[test]
fn export_withdrawal_is_imported_as_withdrawal() -> Result<()> {
    let data = fill_archive()?;
    let files = TempDir::new()?;
    let to = files.path().display().to_string();
    // One video was archived, the other never was.
    for video in [VIDEO, "never-there"] {
        stdout_of(data.path(), &["archive", "withdraw", video])?;
    }
    stdout_of(data.path(), &["archive", "export", "--all", "--to", &to])?;
    let expect = [
        "microblog/20/pt-BR.json",
        "video_site/-wtIMTCHWuI/und.json",
        "video_site/dyke-walk-0/withdrawn.json",
        "video_site/never-there/withdrawn.json",
    ];
    assert_eq!(names(files.path())?, expect);
    for name in &expect[2..] {
        assert!(!fs::read_to_string(files.path().join(name))?.contains("sheep"));
    }
    let again = stdout_of(data.path(), &["archive", "export", VIDEO, "--to", &to])?;
    assert_eq!(again, "", "an existing file was written again");
    run_expecting(data.path(), &["archive", "export", VIDEO, "--to", &to, "--format", "srt"], "", 3)?;

    let restored = TempDir::new()?;
    let planned = stdout_of(restored.path(), &["import", &to, "--dry-run"])?;
    assert!(planned.contains("YouTube never-there: would be withdrawn\n"), "{planned}");
    let done = stdout_of(restored.path(), &["import", &to])?;
    assert!(done.contains("2 transcripts imported") && done.contains("; 2 videos withdrawn"), "{done}");
    for video in [VIDEO, "never-there"] {
        let gone = run_expecting(restored.path(), &["get", video], "", 3)?;
        let reason = "withdrawn: This transcript was withdrawn by the operator";
        assert!(text(&gone.stderr).contains(reason), "{gone:?}");
    }
    let done = stdout_of(restored.path(), &["import", &to])?;
    assert!(!done.contains("withdrawn"), "{done}");

    // Files from before and after a withdrawal are reported.
    stdout_of(data.path(), &["archive", "withdraw", VIDEO, "--undo"])?;
    let odd = run_expecting(data.path(), &["archive", "export", VIDEO, "--to", &to], "", 1)?;
    assert!(text(&odd.stderr).contains("is withdrawn, which is no longer true"), "{odd:?}");
    stdout_of(data.path(), &["archive", "export", VIDEO, "--to", &to, "--force"])?;
    stdout_of(data.path(), &["archive", "withdraw", VIDEO])?;
    let odd = run_expecting(data.path(), &["archive", "export", VIDEO, "--to", &to], "", 0)?;
    assert!(text(&odd.stderr).contains("has files from before"), "{odd:?}");
    Ok(())
}

#[test]
fn export_without_force_overwrites_nothing() -> Result<()> {
    let data = data_with_transcript()?;
    let files = TempDir::new()?;
    let to = files.path().display().to_string();
    let export = ["archive", "export", VIDEO, "--format", "text", "--to", &to];
    let file = files.path().join("video_site").join(VIDEO).join("en.txt");
    assert_eq!(stdout_of(data.path(), &export)?, format!("{}\n", file.display()));
    let words = fs::read_to_string(&file)?;
    assert_eq!(words.trim_end(), "The sheep keep the grass short.");
    // A file with the same content is no conflict.
    assert_eq!(stdout_of(data.path(), &export)?, "");
    fs::write(&file, "mine")?;
    let conflict = run_expecting(data.path(), &export, "", 1)?;
    assert!(text(&conflict.stderr).contains("--force"), "{}", text(&conflict.stderr));
    assert_eq!(fs::read_to_string(&file)?, "mine");
    run_expecting(data.path(), &[&export[..], &["--force"]].concat(), "", 0)?;
    assert_eq!(fs::read_to_string(&file)?, words);
    assert_eq!(names(files.path())?, ["video_site/dyke-walk-0/en.txt"], "temporary files are left");

    // A video without a transcript does not prevent the export of the others.
    fs::remove_file(&file)?;
    let some = ["archive", "export", "not-there-0", VIDEO, "--format", "text", "--to", &to];
    run_expecting(data.path(), &some, "", 3)?;
    assert!(file.exists());
    run_expecting(data.path(), &["archive", "export", VIDEO, "--to", &file.display().to_string()], "", 1)?;
    run_expecting(data.path(), &["archive", "export", VIDEO, "--all"], "", 2)?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn lookup_serves_subtitle_formats() -> Result<()> {
    let data = data_with_transcript()?;
    let server = ServerFixture::start(&data, &[])?;
    let path = format!("/api/transcript?v={VIDEO}");
    for (format, kind, words) in [
        (
            "srt",
            "application/x-subrip; charset=utf-8",
            "1\n00:00:01,000 --> 00:00:02,000\nThe sheep keep the grass short.\n",
        ),
        (
            "vtt",
            "text/vtt; charset=utf-8",
            "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\nThe sheep keep the grass short.\n",
        ),
    ] {
        let found = server.get(&format!("{path}&format={format}")).await?;
        assert_eq!((found.status.as_u16(), found.header("content-type")), (200, kind));
        assert_eq!(found.text(), words);
        assert_eq!(stdout_of(data.path(), &["get", VIDEO, "--format", format])?, words);
        let head = server.send(Method::HEAD, &format!("{path}&format={format}"), &[], "").await?;
        assert_eq!((head.status.as_u16(), head.header("content-type")), (200, kind));
        // Errors are plain text, as with Markdown.
        let missing = server.get(&format!("/api/transcript?v=not-there-0&format={format}")).await?;
        assert_eq!(
            (missing.status.as_u16(), missing.header("content-type")),
            (404, "text/plain; charset=utf-8")
        );
        assert!(missing.text().trim_end().ends_with("/watch/video_site/not-there-0"));
    }
    let refused = server.get(&format!("{path}&format=pdf")).await?;
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("json, text, md, srt, vtt"), "{}", refused.text());
    Ok(())
}
