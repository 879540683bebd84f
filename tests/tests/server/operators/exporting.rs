//! From an archive into files, and from those into another archive.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::Result;
use http::Method;
use tempfile::TempDir;

use super::{super::harness::Server, VIDEO, archived, ends, text, told};

const FORMATS: [&str; 5] = ["json", "text", "md", "srt", "vtt"];
/// Texts that a careless writer or reader would change.
const HOSTILE: &str = "WEBVTT\n\n00:00:01.000 --> 00:00:02.500\n<v Ann>Tom &amp; Ann: a --&gt; b\n\u{200B}\nList&lt;T&gt;\n\n\
    00:00:02.500 --> 00:00:03.001\n42\n\n00:59:59.999 --> 01:00:00.000\n中文 *not bold* {\\\\an8}\n";

/// An archive with three videos on two platforms, one of them in three languages.
fn filled() -> Result<TempDir> {
    let data = archived()?;
    let folder = data.path();
    for arguments in [
        &["--video", "https://x.com/a/status/20", "--lang", "pt-BR", "--title", "Um \"título\""][..],
        &["--video", VIDEO, "--lang", "de-AT", "--generated"],
        &["--video", VIDEO, "--lang", "zh-Hant", "--author", "Ann"],
        &["--video", "-wtIMTCHWuI"],
    ] {
        ends(folder, &[&["import", "-"], arguments].concat(), HOSTILE, 0)?;
    }
    Ok(data)
}

/// What the archive answers to every wish in every format.
fn answers(data: &Path, formats: &[&str]) -> Result<BTreeMap<String, String>> {
    let mut answers = BTreeMap::new();
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
            answers.insert(arguments.join(" "), told(data, &arguments)?);
        }
    }
    Ok(answers)
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
fn an_export_as_json_gives_an_equal_archive() -> Result<()> {
    let data = filled()?;
    let files = TempDir::new()?;
    let to = files.path().display().to_string();
    let exported = told(data.path(), &["archive", "export", "--all", "--to", &to])?;
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
    let imported = told(other.path(), &["import", &to])?;
    assert!(imported.contains("5 files: 5 transcripts imported"), "{imported}");
    assert_eq!(answers(other.path(), &FORMATS)?, answers(data.path(), &FORMATS)?);
    // And what that one exports is the same again, but for the moment of storing.
    let again = TempDir::new()?;
    told(other.path(), &["archive", "export", "--all", "--to", &again.path().display().to_string()])?;
    for name in expect {
        let read = |folder: &TempDir| -> Result<serde_json::Value> {
            let mut json: serde_json::Value = serde_json::from_slice(&fs::read(folder.path().join(name))?)?;
            json["storedAt"].take();
            Ok(json)
        };
        assert_eq!(read(&again)?, read(&files)?, "{name}");
    }
    let imported = told(other.path(), &["import", &to])?;
    assert!(imported.contains("0 transcripts imported, 5 were archived already"), "{imported}");
    Ok(())
}

#[test]
fn subtitles_come_back_with_the_same_words_and_times() -> Result<()> {
    let data = filled()?;
    for format in ["srt", "vtt"] {
        let files = TempDir::new()?;
        let to = files.path().display().to_string();
        told(data.path(), &["archive", "export", "--all", "--format", format, "--to", &to])?;
        let other = TempDir::new()?;
        told(other.path(), &["import", &to])?;
        let formats = ["text", "srt", "vtt"];
        assert_eq!(answers(other.path(), &formats)?, answers(data.path(), &formats)?, "{format}");
    }
    Ok(())
}

/// An archive that is restored from an export serves nothing that was taken down.
#[test]
fn a_withdrawal_is_exported_and_imported_as_such() -> Result<()> {
    let data = filled()?;
    let files = TempDir::new()?;
    let to = files.path().display().to_string();
    // One that was archived, and one of which there never was anything.
    for video in [VIDEO, "never-there"] {
        told(data.path(), &["archive", "withdraw", video])?;
    }
    told(data.path(), &["archive", "export", "--all", "--to", &to])?;
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
    let again = told(data.path(), &["archive", "export", VIDEO, "--to", &to])?;
    assert_eq!(again, "", "it is there already");
    ends(data.path(), &["archive", "export", VIDEO, "--to", &to, "--format", "srt"], "", 3)?;

    let restored = TempDir::new()?;
    let planned = told(restored.path(), &["import", &to, "--dry-run"])?;
    assert!(planned.contains("video_site/never-there: would be withdrawn\n"), "{planned}");
    let done = told(restored.path(), &["import", &to])?;
    assert!(done.contains("2 transcripts imported") && done.contains("; 2 videos withdrawn"), "{done}");
    for video in [VIDEO, "never-there"] {
        let gone = ends(restored.path(), &["get", video], "", 3)?;
        assert!(text(&gone.stderr).contains("withdrawn by the operator"), "{gone:?}");
    }
    let done = told(restored.path(), &["import", &to])?;
    assert!(!done.contains("withdrawn"), "{done}");

    // What was written before and after a withdrawal does not go unnoticed.
    told(data.path(), &["archive", "withdraw", VIDEO, "--undo"])?;
    let odd = ends(data.path(), &["archive", "export", VIDEO, "--to", &to], "", 1)?;
    assert!(text(&odd.stderr).contains("is withdrawn, which it is no more"), "{odd:?}");
    told(data.path(), &["archive", "export", VIDEO, "--to", &to, "--force"])?;
    told(data.path(), &["archive", "withdraw", VIDEO])?;
    let odd = ends(data.path(), &["archive", "export", VIDEO, "--to", &to], "", 0)?;
    assert!(text(&odd.stderr).contains("has files from before"), "{odd:?}");
    Ok(())
}

#[test]
fn an_export_overwrites_nothing_unless_it_is_told_to() -> Result<()> {
    let data = archived()?;
    let files = TempDir::new()?;
    let to = files.path().display().to_string();
    let export = ["archive", "export", VIDEO, "--format", "text", "--to", &to];
    let file = files.path().join("video_site").join(VIDEO).join("en.txt");
    assert_eq!(told(data.path(), &export)?, format!("{}\n", file.display()));
    let words = fs::read_to_string(&file)?;
    assert_eq!(words.trim_end(), "The sheep keep the grass short.");
    // The same content is no conflict.
    assert_eq!(told(data.path(), &export)?, "");
    fs::write(&file, "mine")?;
    let kept = ends(data.path(), &export, "", 1)?;
    assert!(text(&kept.stderr).contains("--force"), "{}", text(&kept.stderr));
    assert_eq!(fs::read_to_string(&file)?, "mine");
    ends(data.path(), &[&export[..], &["--force"]].concat(), "", 0)?;
    assert_eq!(fs::read_to_string(&file)?, words);
    assert_eq!(names(files.path())?, ["video_site/dyke-walk-0/en.txt"], "no drafts are left");

    // One that is not archived does not keep the others from being written.
    fs::remove_file(&file)?;
    let some = ["archive", "export", "not-there-0", VIDEO, "--format", "text", "--to", &to];
    ends(data.path(), &some, "", 3)?;
    assert!(file.exists());
    ends(data.path(), &["archive", "export", VIDEO, "--to", &file.display().to_string()], "", 1)?;
    ends(data.path(), &["archive", "export", VIDEO, "--all"], "", 2)?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn subtitles_are_served_over_http() -> Result<()> {
    let data = archived()?;
    let server = Server::start(&data, &[])?;
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
        assert_eq!(told(data.path(), &["get", VIDEO, "--format", format])?, words);
        let head = server.send(Method::HEAD, &format!("{path}&format={format}"), &[], "").await?;
        assert_eq!((head.status.as_u16(), head.header("content-type")), (200, kind));
        // Refusals are text, as with Markdown.
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
