//! Commands on an archive with a damaged transcript.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{ALL_FORMS, DamageFixture, StoredAs, VIDEOS, check_names};
use crate::server::platform::fetch_count;

const DAMAGED: &str = VIDEOS[0];
const SOUND: &str = VIDEOS[1];
const WORDS: &str = "WEBVTT\n\n00:01.000 --> 00:02.000\nThese are other words.\n";

/// An archive with a damaged and a sound video.
fn damaged_archive(form: StoredAs) -> Result<DamageFixture> {
    let fixture = DamageFixture::new(form, &[DAMAGED, SOUND])?;
    fixture.flip(DAMAGED)?;
    Ok(fixture)
}

fn stats(fixture: &DamageFixture) -> Result<Value> {
    Ok(serde_json::from_str(&fixture.expect(&["archive", "stats", "--json"], "", 0)?.0)?)
}

/// The stored words of the damaged video, which must be readable.
fn words(fixture: &DamageFixture) -> Result<String> {
    fixture.expect(&["archive", "show", DAMAGED], "", 0)?;
    Ok(fixture.expect(&["get", DAMAGED, "--format", "text"], "", 0)?.0)
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_transcript_read_fails_with_name_and_remedy() -> Result<()> {
    for form in ALL_FORMS {
        let fixture = damaged_archive(form)?;
        let (shown, error) = fixture.expect(&["archive", "show", DAMAGED], "", 1)?;
        check_names(&error, DAMAGED);
        assert!(shown.contains("video_site/dyke-walk-0") && shown.contains("damaged"), "{shown}");
        let (shown, _) = fixture.expect(&["archive", "show", DAMAGED, "--json"], "", 1)?;
        let shown: Value = serde_json::from_str(&shown)?;
        let track = &shown["tracks"][0];
        assert_eq!((&track["archived"], &track["damaged"]), (&json!(null), &json!(true)), "{shown}");
        for arguments in [&["get", DAMAGED][..], &["get", DAMAGED, "--lang", "en"]] {
            let (written, error) = fixture.expect(arguments, "", 1)?;
            check_names(&error, DAMAGED);
            assert_eq!(written, "", "{form:?}");
        }
        fixture.expect(&["archive", "show", SOUND], "", 0)?;
        fixture.expect(&["get", SOUND], "", 0)?;
        let totals = stats(&fixture)?;
        assert_eq!((&totals["videos"], &totals["transcripts"]), (&json!(2), &json!(2)), "{form:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_transcript_refresh_repairs_it() -> Result<()> {
    for form in ALL_FORMS {
        let fixture = DamageFixture::new(form, &[DAMAGED, SOUND])?;
        let (before, totals) = (words(&fixture)?, stats(&fixture)?);
        fixture.flip(DAMAGED)?;
        // The fetched content equals the stored one, so only the stored form is new.
        fixture.expect(&["archive", "refresh", DAMAGED], "", 0)?;
        assert_eq!(words(&fixture)?, before, "{form:?}");
        let after = stats(&fixture)?;
        assert_eq!(after["transcripts"], json!(2), "{form:?}");
        if !form.is_cold() {
            assert_eq!(after, totals);
        }
        let sizes = fixture.query("SELECT sum(body_bytes) FROM transcripts")?;
        assert_eq!(after["bytes"].to_string(), sizes.trim(), "{form:?}");
        fixture.compact()?;
        assert_eq!(stats(&fixture)?, totals, "{form:?}");
        assert_eq!(words(&fixture)?, before, "{form:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_transcript_import_replaces_it() -> Result<()> {
    for form in ALL_FORMS {
        let fixture = DamageFixture::new(form, &[DAMAGED, SOUND])?;
        let (before, files) = (words(&fixture)?, TempDir::new()?);
        let files = files.path().display().to_string();
        fixture.expect(&["archive", "export", "--all", "--to", &files], "", 0)?;
        fixture.flip(DAMAGED)?;
        let (report, _) = fixture.expect(&["import", &files, "--dry-run"], "", 0)?;
        assert!(report.contains("would be replaced"), "{report}");
        fixture.expect(&["get", DAMAGED], "", 1)?;
        // The same content, then other content; neither import asks to replace.
        fixture.expect(&["import", &files], "", 0)?;
        assert_eq!(words(&fixture)?, before, "{form:?}");
        fixture.flip(DAMAGED)?;
        let import = ["import", "-", "--video", DAMAGED, "--lang", "en"];
        let (report, _) = fixture.expect(&import, WORDS, 0)?;
        assert!(report.contains("replaced"), "{report}");
        assert!(words(&fixture)?.contains("These are other words."), "{form:?}");
        let kept = fixture.expect(&import, &WORDS.replace("other", "third"), 0)?.0;
        assert!(kept.contains("kept as it was"), "{kept}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_video_is_withdrawn_and_deleted() -> Result<()> {
    for form in ALL_FORMS {
        let fixture = damaged_archive(form)?;
        fixture.expect(&["archive", "withdraw", DAMAGED], "", 0)?;
        fixture.expect(&["archive", "show", DAMAGED], "", 0)?;
        fixture.expect(&["get", DAMAGED], "", 3)?;
        fixture.expect(&["archive", "withdraw", DAMAGED, "--undo"], "", 0)?;
        fixture.expect(&["get", DAMAGED], "", 1)?;
        fixture.expect(&["archive", "delete", DAMAGED, "--yes"], "", 0)?;
        let totals = stats(&fixture)?;
        assert_eq!((&totals["videos"], &totals["transcripts"]), (&json!(1), &json!(1)), "{form:?}");
        fixture.expect(&["get", DAMAGED], "", 0)?;
        fixture.expect(&["archive", "show", DAMAGED], "", 0)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn export_continues_past_damaged_transcript() -> Result<()> {
    for form in ALL_FORMS {
        let fixture = damaged_archive(form)?;
        let files = TempDir::new()?;
        let to = files.path().display().to_string();
        for arguments in [&["archive", "export", "--all"][..], &["archive", "export", DAMAGED, SOUND]] {
            let arguments = [arguments, &["--to", &to, "--force"]].concat();
            let (written, error) = fixture.expect(&arguments, "", 1)?;
            check_names(&error, DAMAGED);
            assert!(!error.contains(SOUND), "{error}");
            assert_eq!(written.lines().count(), 1, "{written}");
            assert!(files.path().join(format!("video_site/{SOUND}/en.json")).is_file(), "{form:?}");
        }
    }
    Ok(())
}

/// Checks that JSON lists a track of this language, and none in place of a damaged one.
fn check_known(json: &str, language: &str) -> Result<()> {
    let json: Value = serde_json::from_str(json)?;
    let tracks = json["tracks"].as_array().context("no tracks")?;
    let has = |language: &str| tracks.iter().any(|track| track["language"] == language);
    assert!(has(language) && !has("und"), "{tracks:?}");
    Ok(())
}

/// The row of a track is damaged, and its text is sound: nothing is left out. Then both are damaged.
#[tokio::test(flavor = "multi_thread")]
async fn damaged_track_keeps_commands_and_lookups() -> Result<()> {
    for form in ALL_FORMS {
        let (fixture, files) = (DamageFixture::new(form, &[DAMAGED, SOUND])?, TempDir::new()?);
        let to = files.path().display().to_string();
        let damage = format!("UPDATE tracks SET kind = 'spoken' WHERE video = 'video_site/{DAMAGED}'");
        fixture.query(&damage)?;
        fixture.expect(&["archive", "export", "--all", "--to", &to], "", 0)?;
        for video in [DAMAGED, SOUND] {
            assert!(files.path().join(format!("video_site/{video}/en.json")).is_file(), "{form:?} {video}");
        }
        fixture.expect(&["get", DAMAGED, "--lang", "en-GB"], "", 0)?;
        assert_eq!(fetch_count(&fixture.proxy, DAMAGED), 1, "{form:?}");
        fixture.expect(&["archive", "show", DAMAGED], "", 0)?;
        fixture.expect(&["import", &to], "", 0)?;
        fixture.expect(&["archive", "verify"], "", 1)?;

        fixture.flip(DAMAGED)?;
        let (_, error) = fixture.expect(&["archive", "export", "--all", "--to", &to, "--force"], "", 1)?;
        check_names(&error, DAMAGED);
        assert!(error.contains("1 transcripts are damaged") && !error.contains(SOUND), "{error}");
        fixture.expect(&["import", &to], "", 0)?;
        let (shown, _) = fixture.expect(&["archive", "show", DAMAGED, "--json"], "", 0)?;
        check_known(&shown, "en")?;
        fixture.flip(DAMAGED)?;
        fixture.expect(&["import", "-", "--video", DAMAGED, "--lang", "de"], WORDS, 0)?;
        fixture.expect(&["archive", "export", DAMAGED, "--to", &to, "--force"], "", 1)?;
        let file = files.path().join(format!("video_site/{DAMAGED}/de.json"));
        check_known(&std::fs::read_to_string(file)?, "de")?;

        fixture.expect(&["archive", "withdraw", DAMAGED], "", 0)?;
        fixture.expect(&["archive", "show", DAMAGED], "", 0)?;
        fixture.expect(&["archive", "withdraw", DAMAGED, "--undo"], "", 0)?;
        fixture.expect(&["archive", "refresh", DAMAGED], "", 0)?;
        fixture.expect(&["get", DAMAGED], "", 0)?;
        fixture.expect(&["archive", "delete", DAMAGED, "--yes"], "", 0)?;
        fixture.expect(&["get", DAMAGED], "", 0)?;
        fixture.expect(&["archive", "verify"], "", 0)?;
    }
    Ok(())
}

/// The tracks of the video cannot be read.
#[tokio::test(flavor = "multi_thread")]
async fn damaged_selector_stops_no_takedown_and_no_import() -> Result<()> {
    let (fixture, files) = (DamageFixture::new(StoredAs::File, &[DAMAGED, SOUND])?, TempDir::new()?);
    let to = files.path().display().to_string();
    fixture.expect(&["archive", "export", "--all", "--to", &to], "", 0)?;
    let english = format!("video = 'video_site/{DAMAGED}' AND wish = 'en'");
    fixture.sqlite(&format!("UPDATE wishes SET wish = CAST(x'FF' AS TEXT) WHERE {english}"))?;
    let (listed, _) = fixture.expect(&["archive", "list"], "", 0)?;
    assert!(listed.contains(DAMAGED) && listed.contains(SOUND), "{listed}");
    let all = files.path().join("all");
    let folder = all.display().to_string();
    let (_, error) = fixture.expect(&["archive", "export", "--all", "--to", &folder], "", 1)?;
    assert!(error.contains(DAMAGED) && error.contains("1 transcripts are damaged"), "{error}");
    assert!(all.join(format!("video_site/{SOUND}/en.json")).is_file(), "{error}");
    std::fs::remove_dir_all(&all)?;
    fixture.expect(&["archive", "delete", SOUND, "--yes"], "", 0)?;
    let (report, error) = fixture.expect(&["import", &to], "", 1)?;
    assert!(report.contains("1 transcripts imported") && error.contains(DAMAGED), "{report} {error}");
    for arguments in [&["archive", "show", DAMAGED][..], &["archive", "export", DAMAGED, "--to", &to]] {
        let (_, error) = fixture.expect(arguments, "", 1)?;
        assert!(error.contains(DAMAGED) && error.contains("archive delete"), "{error}");
    }
    fixture.expect(&["archive", "withdraw", DAMAGED], "", 0)?;
    fixture.expect(&["archive", "withdraw", DAMAGED, "--undo"], "", 0)?;
    fixture.expect(&["archive", "delete", DAMAGED, "--yes"], "", 0)?;
    fixture.expect(&["get", DAMAGED], "", 0)?;
    fixture.expect(&["archive", "show", DAMAGED], "", 0)?;
    Ok(())
}

/// The name of a video is damaged, or of a platform of a later version.
#[tokio::test(flavor = "multi_thread")]
async fn malformed_name_hides_no_other_video() -> Result<()> {
    let (fixture, files) =
        (DamageFixture::new(StoredAs::File, &[DAMAGED, SOUND, VIDEOS[2]])?, TempDir::new()?);
    let to = files.path().display().to_string();
    fixture.expect(&["archive", "withdraw", VIDEOS[2]], "", 0)?;
    for table in ["transcripts", "tracks", "wishes"] {
        let named = format!("video = 'video_site/{DAMAGED}'");
        fixture.sqlite(&format!("UPDATE {table} SET video = 'later_site/1' WHERE {named}"))?;
    }
    let (listed, _) = fixture.expect(&["archive", "list"], "", 0)?;
    assert!(listed.contains(SOUND) && !listed.contains("later_site"), "{listed}");
    let (_, error) = fixture.expect(&["archive", "export", "--all", "--to", &to], "", 1)?;
    assert!(error.contains("1 videos cannot be listed"), "{error}");
    for file in [format!("video_site/{SOUND}/en.json"), format!("video_site/{}/withdrawn.json", VIDEOS[2])] {
        assert!(files.path().join(&file).is_file(), "{file}");
    }
    Ok(())
}

/// An export without the withdrawal of a video would show it where it is imported.
#[test]
fn withdrawal_with_malformed_name_fails_export() -> Result<()> {
    let (fixture, files) = (DamageFixture::new(StoredAs::File, &[SOUND])?, TempDir::new()?);
    fixture.sqlite("INSERT INTO withdrawals (video, at) VALUES ('later/x', 0)")?;
    let to = files.path().display().to_string();
    let (_, error) = fixture.expect(&["archive", "export", "--all", "--to", &to], "", 1)?;
    assert!(error.contains("1 videos cannot be listed"), "{error}");
    Ok(())
}

/// The totals are one row, which can be lost like any other.
#[test]
fn stats_without_totals_fail() -> Result<()> {
    let fixture = DamageFixture::new(StoredAs::File, &[SOUND])?;
    fixture.sqlite("DELETE FROM figures")?;
    for arguments in [&["archive", "stats"][..], &["archive", "stats", "--json"]] {
        let (written, error) = fixture.expect(arguments, "", 1)?;
        assert_eq!(written, "");
        assert!(error.contains("totals"), "{error}");
    }
    // Neither an export nor a check of the archive needs them.
    let files = TempDir::new()?;
    fixture.expect(&["archive", "export", "--all", "--to", &files.path().display().to_string()], "", 0)?;
    fixture.expect(&["archive", "verify"], "", 0)?;
    Ok(())
}
