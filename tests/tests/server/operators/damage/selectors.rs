//! Damaged selectors: the text is sound, but no lookup finds it.

use anyhow::Result;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{DamageFixture, StoredAs, VIDEOS, check_names};
use crate::server::platform::fetch_count;

const DAMAGED: &str = VIDEOS[0];
const OTHER: &str = VIDEOS[1];
const GERMAN: &str = "WEBVTT\n\n00:01.000 --> 00:02.000\nEs gibt Schafe.\n";

/// Damage of all selectors of a video, and whether a lookup recognizes it.
const DAMAGES: [(&str, bool); 3] = [
    (
        "UPDATE wishes SET transcript = (SELECT max(id) FROM transcripts) WHERE video = 'video_site/dyke-walk-0'",
        true,
    ),
    ("UPDATE wishes SET transcript = transcript + 1000 WHERE video = 'video_site/dyke-walk-0'", true),
    ("DELETE FROM wishes WHERE video = 'video_site/dyke-walk-0'", false),
];

/// Each form with the damage that it can have: the foreign keys of PostgreSQL prevent the other kinds.
fn forms() -> impl Iterator<Item = (StoredAs, &'static str, bool)> {
    let files = DAMAGES.map(|(damage, is_recognized)| (StoredAs::File, damage, is_recognized));
    let (deletion, is_recognized) = DAMAGES[2];
    files.into_iter().chain([(StoredAs::Postgres, deletion, is_recognized)])
}

fn verify(fixture: &DamageFixture, arguments: &[&str], code: i32) -> Result<Vec<Value>> {
    let arguments = [&["archive", "verify", "--json"], arguments].concat();
    Ok(serde_json::from_str(&fixture.expect(&arguments, "", code)?.0)?)
}

/// The stored words in a language, without a fetch.
fn words(fixture: &DamageFixture, language: &str) -> Result<String> {
    let arguments = ["get", DAMAGED, "--lang", language, "--format", "text"];
    Ok(fixture.expect(&arguments, "", 0)?.0)
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_selectors_are_reported_and_repaired() -> Result<()> {
    for (form, damage, is_recognized) in forms() {
        let (fixture, files) = (DamageFixture::new(form, &[DAMAGED, OTHER])?, TempDir::new()?);
        let to = files.path().display().to_string();
        let show = ["archive", "show", DAMAGED, "--json"];
        let before = (words(&fixture, "en")?, fixture.expect(&show, "", 0)?.0);
        fixture.query(damage)?;
        let (_, error) = fixture.expect(&show, "", 1)?;
        check_names(&error, DAMAGED);
        if is_recognized {
            for arguments in [&["get", DAMAGED][..], &["get", DAMAGED, "--lang", "en"]] {
                assert!(fixture.expect(arguments, "", 1)?.1.contains(DAMAGED), "{damage}");
            }
        }
        let export = ["archive", "export", "--all", "--to", &to, "--force"];
        let (_, error) = fixture.expect(&export, "", 1)?;
        check_names(&error, DAMAGED);
        assert!(error.contains("1 transcripts are damaged") && !error.contains(OTHER), "{error}");
        assert!(files.path().join(format!("video_site/{OTHER}/en.json")).is_file(), "{damage}");

        let rows = verify(&fixture, &[], 1)?;
        assert_eq!((rows.len(), &rows[0]["videoId"]), (1, &json!(DAMAGED)), "{damage}");
        assert_eq!((&rows[0]["deleted"], &rows[0]["restored"]), (&json!(false), &json!(false)), "{damage}");
        assert_eq!(rows[0]["wishes"], json!(["default", "en"]), "{damage}");
        assert_eq!(verify(&fixture, &[], 1)?, rows, "nothing was changed: {damage}");
        let repaired = verify(&fixture, &["--repair", "delete"], i32::from(!is_recognized))?;
        let effect =
            |row: &Value| (row["deleted"].clone(), row["restored"].clone(), row["refetched"].clone());
        assert_eq!(effect(&repaired[0]), (json!(false), json!(is_recognized), Value::Null), "{damage}");
        if !is_recognized {
            // The stored text may be one that was replaced.
            let fetched = verify(&fixture, &["--repair", "refetch"], 0)?;
            assert_eq!(effect(&fetched[0]), (json!(false), json!(false), json!(true)), "{damage}");
        }
        assert_eq!(verify(&fixture, &[], 0)?, Vec::<Value>::new(), "{damage}");

        fixture.expect(&export, "", 0)?;
        assert!(files.path().join(format!("video_site/{DAMAGED}/en.json")).is_file(), "{damage}");
        assert_eq!(words(&fixture, "en")?, before.0, "{damage}");
        if is_recognized {
            assert_eq!(fixture.expect(&show, "", 0)?.0, before.1, "{damage}");
        }
        fixture.expect(&["get", DAMAGED], "", 0)?;
        assert_eq!(fetch_count(&fixture.proxy, DAMAGED), if is_recognized { 1 } else { 2 }, "{damage}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_selectors_import_and_refresh_repair_them() -> Result<()> {
    for (form, damage, _) in forms() {
        let (fixture, files) = (DamageFixture::new(form, &[DAMAGED, OTHER])?, TempDir::new()?);
        let to = files.path().display().to_string();
        let before = words(&fixture, "en")?;
        fixture.expect(&["archive", "export", "--all", "--to", &to], "", 0)?;
        for repair in [&["import", &to][..], &["import", "--replace", &to], &["archive", "refresh", DAMAGED]]
        {
            fixture.query(damage)?;
            fixture.expect(&["archive", "verify"], "", 1)?;
            fixture.expect(repair, "", 0)?;
            fixture.expect(&["archive", "verify"], "", 0)?;
            assert_eq!(words(&fixture, "en")?, before, "{damage}");
        }
    }
    Ok(())
}

/// The other selectors of the video are sound.
#[tokio::test(flavor = "multi_thread")]
async fn damaged_selector_of_one_language_is_restored() -> Result<()> {
    let (fixture, files) = (DamageFixture::new(StoredAs::File, &[DAMAGED, OTHER])?, TempDir::new()?);
    let to = files.path().display().to_string();
    fixture.expect(&["import", "-", "--video", DAMAGED, "--lang", "de"], GERMAN, 0)?;
    fixture.sqlite("UPDATE wishes SET transcript = transcript + 1000 WHERE wish = 'de'")?;
    let (_, error) = fixture.expect(&["archive", "export", "--all", "--to", &to], "", 1)?;
    assert!(error.contains(DAMAGED) && error.contains("(de)"), "{error}");
    assert!(files.path().join(format!("video_site/{DAMAGED}/en.json")).is_file());
    let rows = verify(&fixture, &["--repair", "delete"], 0)?;
    assert_eq!((&rows[0]["wishes"], &rows[0]["restored"]), (&json!(["de"]), &json!(true)));
    fixture.expect(&["archive", "verify"], "", 0)?;
    assert!(words(&fixture, "de")?.contains("Schafe"));
    fixture.expect(&["archive", "export", "--all", "--to", &to], "", 0)?;

    // Without a transcript in its language, the selector is deleted.
    fixture.sqlite(&format!(
        "INSERT INTO wishes (video, wish, transcript) VALUES ('video_site/{DAMAGED}', 'fr', 1000)"
    ))?;
    verify(&fixture, &["--repair", "delete"], 0)?;
    fixture.expect(&["archive", "verify"], "", 0)?;
    assert_eq!(fixture.sqlite("SELECT count(*) FROM wishes WHERE wish = 'fr'")?.trim(), "0");
    Ok(())
}

/// The newest revision is damaged and deleted: the one that it replaced is not served again.
#[tokio::test(flavor = "multi_thread")]
async fn deleted_revision_is_fetched_and_earlier_one_not_served() -> Result<()> {
    let fixture = DamageFixture::new(StoredAs::File, &[DAMAGED])?;
    let (before, other) = (words(&fixture, "en")?, GERMAN.replace("Es gibt Schafe.", "Other words."));
    fixture.expect(&["import", "-", "--video", DAMAGED, "--lang", "en", "--replace"], &other, 0)?;
    assert_ne!(words(&fixture, "en")?, before);
    fixture.sqlite("UPDATE bodies SET checksum = checksum + 1 WHERE transcript <> 1")?;
    let deleted = verify(&fixture, &["--repair", "delete"], 0)?;
    assert!(!deleted.is_empty() && deleted.iter().all(|row| row["deleted"] == true), "{deleted:?}");
    for arguments in [&[][..], &["--repair", "delete"]] {
        assert_eq!(verify(&fixture, arguments, 1)?[0]["restored"], json!(false));
    }
    assert_eq!(fixture.sqlite("SELECT count(*) FROM wishes")?.trim(), "0");
    assert_eq!(verify(&fixture, &["--repair", "refetch"], 0)?[0]["refetched"], json!(true));
    assert_eq!((words(&fixture, "en")?, fetch_count(&fixture.proxy, DAMAGED)), (before, 2));
    Ok(())
}

/// The platform has no track in this language: the stored text is the only one.
#[tokio::test(flavor = "multi_thread")]
async fn stored_text_without_selector_is_served_if_it_cannot_be_fetched() -> Result<()> {
    let fixture = DamageFixture::new(StoredAs::File, &[DAMAGED])?;
    fixture.expect(&["import", "-", "--video", DAMAGED, "--lang", "de"], GERMAN, 0)?;
    fixture.sqlite("DELETE FROM wishes")?;
    let rows = verify(&fixture, &["--repair", "refetch"], 0)?;
    assert_eq!((&rows[0]["refetched"], &rows[0]["restored"]), (&json!(false), &json!(true)), "{rows:?}");
    assert!(words(&fixture, "de")?.contains("Schafe"));
    fixture.expect(&["archive", "verify"], "", 0)?;
    Ok(())
}

/// The best track is known, but not archived any more: the next lookup of the default fetches it.
#[tokio::test(flavor = "multi_thread")]
async fn default_without_its_transcript_is_no_other_language() -> Result<()> {
    let fixture = DamageFixture::new(StoredAs::File, &[DAMAGED])?;
    let before = words(&fixture, "en")?;
    fixture.expect(&["import", "-", "--video", DAMAGED, "--lang", "de"], GERMAN, 0)?;
    fixture.sqlite("DELETE FROM bodies WHERE transcript = 1; DELETE FROM transcripts WHERE id = 1")?;
    verify(&fixture, &["--repair", "delete"], 0)?;
    assert_eq!(fixture.sqlite("SELECT wish FROM wishes")?.trim(), "de");
    fixture.expect(&["get", DAMAGED], "", 0)?;
    assert_eq!((words(&fixture, "en")?, fetch_count(&fixture.proxy, DAMAGED)), (before, 2));
    Ok(())
}

/// Of tracks of one rank the earlier one is the default, and of its transcripts the newest.
#[tokio::test(flavor = "multi_thread")]
async fn restored_default_is_newest_transcript_of_earlier_track() -> Result<()> {
    let fixture = DamageFixture::new(StoredAs::File, &[])?;
    let import = |language: &str, text: &str| {
        let arguments = ["import", "-", "--video", DAMAGED, "--lang", language, "--replace"];
        fixture.expect(&arguments, &GERMAN.replace("Es gibt Schafe.", text), 0)
    };
    let restored = || {
        fixture.sqlite("UPDATE wishes SET transcript = transcript + 1000 WHERE wish = 'default'")?;
        verify(&fixture, &["--repair", "delete"], 0)?;
        fixture.sqlite("SELECT transcript FROM wishes WHERE wish = 'default'")
    };
    import("en-GB", "One.")?;
    import("en-US", "Two.")?;
    assert_eq!(restored()?.trim(), "1");
    import("en-GB", "Three.")?;
    // After the deletion of a damaged transcript, a fetch stores revision 1 again.
    fixture.sqlite("UPDATE transcripts SET revision = 7 WHERE id = 1")?;
    assert_eq!(restored()?.trim(), "3");
    Ok(())
}
