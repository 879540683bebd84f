//! `verbatim archive verify`: what it reports, resumes and repairs.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{ALL_FORMS, DamageFixture, StoredAs, VIDEOS};
use crate::server::platform::fetch_count;

const VERIFY: [&str; 2] = ["archive", "verify"];

/// The damaged videos that a check lists.
fn damaged(fixture: &DamageFixture, arguments: &[&str], code: i32) -> Result<Vec<Value>> {
    let (listed, _) = fixture.expect(&[&VERIFY, arguments, &["--json"]].concat(), "", code)?;
    Ok(serde_json::from_str(&listed)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_lists_damaged_transcripts() -> Result<()> {
    for form in ALL_FORMS {
        let fixture = DamageFixture::new(form, &VIDEOS)?;
        let (listed, summary) = fixture.expect(&VERIFY, "", 0)?;
        assert_eq!(listed, "", "{form:?}");
        assert!(summary.contains("5 transcripts checked, none is damaged"), "{summary}");
        assert_eq!(damaged(&fixture, &[], 0)?, Vec::<Value>::new());
        for video in [VIDEOS[1], VIDEOS[3]] {
            fixture.flip(video)?;
        }
        // A withdrawn video is checked like any other.
        fixture.expect(&["archive", "withdraw", VIDEOS[3]], "", 0)?;
        let (listed, error) = fixture.expect(&VERIFY, "", 1)?;
        assert_eq!(listed.lines().count(), 2, "{listed}");
        for (line, video) in listed.lines().zip([VIDEOS[1], VIDEOS[3]]) {
            assert!(line.starts_with(&format!("video_site/{video} en revision 1: ")), "{line}");
        }
        assert!(error.contains("5 transcripts checked, 2 are damaged"), "{error}");
        assert!(error.contains("--repair"), "{error}");
        let rows = damaged(&fixture, &[], 1)?;
        assert_eq!(rows.len(), 2);
        for (name, value) in [
            ("platform", json!("video_site")),
            ("videoId", json!(VIDEOS[1])),
            ("language", json!("en")),
            ("revision", json!(1)),
            ("wishes", json!(["default", "en"])),
            ("deleted", json!(false)),
            ("refetched", json!(null)),
        ] {
            assert_eq!(rows[0][name], value, "{name}: {}", rows[0]);
        }
        // Nothing was changed.
        assert_eq!(damaged(&fixture, &[], 1)?, rows);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_deletes_damaged_transcripts_only() -> Result<()> {
    for form in ALL_FORMS {
        let fixture = DamageFixture::new(form, &VIDEOS[..3])?;
        // A sound earlier revision and a sound track of the damaged video.
        let other = "WEBVTT\n\n00:01.000 --> 00:02.000\nEs gibt Schafe.\n";
        fixture.expect(&["import", "-", "--video", VIDEOS[0], "--lang", "de"], other, 0)?;
        fixture.flip(VIDEOS[0])?;
        fixture.expect(&["import", "-", "--video", VIDEOS[0], "--lang", "de", "--replace"], other, 0)?;
        assert_eq!(damaged(&fixture, &[], 1)?.len(), 1, "{form:?}");

        let (listed, _) = fixture.expect(&[&VERIFY[..], &["--repair", "delete"]].concat(), "", 0)?;
        assert!(listed.contains("dyke-walk-0 en revision 1: ") && listed.contains("deleted"), "{listed}");
        assert!(listed.lines().count() == 1, "{listed}");
        fixture.expect(&VERIFY, "", 0)?;
        let (german, _) = fixture.expect(&["get", VIDEOS[0], "--lang", "de", "--format", "text"], "", 0)?;
        assert!(german.contains("Schafe"), "{german}");
        let totals: Value = serde_json::from_str(&fixture.expect(&["archive", "stats", "--json"], "", 0)?.0)?;
        assert_eq!((&totals["videos"], &totals["transcripts"]), (&json!(3), &json!(3)), "{form:?} {totals}");
        let sizes = fixture.query("SELECT sum(body_bytes) FROM transcripts")?;
        assert_eq!(totals["bytes"].to_string(), sizes.trim(), "{form:?}");
        assert_eq!(fetch_count(&fixture.proxy, VIDEOS[0]), 1);
        // The video is fetched like one that was never archived.
        fixture.expect(&["get", VIDEOS[0], "--lang", "en"], "", 0)?;
        assert_eq!(fetch_count(&fixture.proxy, VIDEOS[0]), 2);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_fetches_damaged_transcripts_again() -> Result<()> {
    for form in ALL_FORMS {
        let fixture = DamageFixture::new(form, &VIDEOS)?;
        let lost = "WEBVTT\n\n00:01.000 --> 00:02.000\nNo platform has this.\n";
        fixture.expect(&["import", "-", "--video", "not-there-0", "--lang", "en"], lost, 0)?;
        for video in [VIDEOS[0], VIDEOS[4], "not-there-0"] {
            fixture.flip(video)?;
        }
        let rows = damaged(&fixture, &["--repair", "refetch"], 1)?;
        let state = |video: &str| {
            let row = rows.iter().find(|row| row["videoId"] == video);
            row.map(|row| (row["deleted"].clone(), row["refetched"].clone()))
        };
        for video in [VIDEOS[0], VIDEOS[4]] {
            assert_eq!(state(video), Some((json!(true), json!(true))), "{form:?} {rows:?}");
            assert_eq!(fetch_count(&fixture.proxy, video), 2, "one fetch serves all selectors");
            fixture.expect(&["archive", "show", video], "", 0)?;
        }
        assert_eq!(state("not-there-0"), Some((json!(true), json!(false))), "{rows:?}");
        fixture.expect(&VERIFY, "", 0)?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_resumes_after_cursor() -> Result<()> {
    for form in [StoredAs::File, StoredAs::Postgres] {
        let fixture = DamageFixture::new(form, &VIDEOS)?;
        for video in VIDEOS {
            fixture.flip(video)?;
        }
        // Pages of two: the cursor after each is printed, and a run from there lists the rest.
        let (listed, error) = fixture.expect(&[&VERIFY[..], &["--limit", "2"]].concat(), "", 1)?;
        assert_eq!(listed.lines().count(), 2, "{listed}");
        let cursor = error.split("--after ").nth(1).and_then(|rest| rest.split_whitespace().next());
        let cursor = cursor.context("no cursor")?;
        let (rest, error) = fixture.expect(&[&VERIFY[..], &["--after", cursor]].concat(), "", 1)?;
        assert!(!error.contains("--after"), "{error}");
        let all: BTreeSet<_> = listed.lines().chain(rest.lines()).collect();
        assert_eq!((all.len(), rest.lines().count()), (5, 3), "{form:?} {listed}{rest}");
        fixture.expect(&[&VERIFY[..], &["--after", "no cursor"]].concat(), "", 2)?;
    }
    Ok(())
}

#[test]
fn verify_newer_encoding_is_listed_but_not_deleted() -> Result<()> {
    let fixture = DamageFixture::new(StoredAs::ColdFile, &VIDEOS[..2])?;
    let newer = "UPDATE cold SET bytes = CAST(x'02' || substr(bytes, 2) AS BLOB) WHERE id = 65536";
    fixture.sqlite(newer)?;
    for _ in 0..2 {
        let rows = damaged(&fixture, &["--repair", "delete"], 1)?;
        assert_eq!((rows.len(), &rows[0]["deleted"]), (1, &json!(false)));
        let reason = rows[0]["reason"].as_str().unwrap_or_default();
        assert!(reason.contains("newer"), "{reason}");
    }
    Ok(())
}

#[test]
fn verify_help_teaches_repair() -> Result<()> {
    let fixture = DamageFixture::new(StoredAs::File, &[])?;
    let (help, _) = fixture.expect(&["archive", "verify", "--help"], "", 0)?;
    for part in ["Examples:\n", "--repair refetch", "--repair delete", "--after", "Exit status"] {
        assert!(help.contains(part), "{part}: {help}");
    }
    Ok(())
}
