//! Tests with scripts in place of yt-dlp.

use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

use tempfile::TempDir;
use transcript_core::{supplier::ListAbsenceReason, test_doubles::ManualClock};

use super::*;
use crate::http::{HttpOptions, HttpTransport};

const LONG_TIMEOUT: Duration = Duration::from_secs(60);
const PROFILE: &str = "https://www.tiktok.com/@rope.walk";
/// Prints the videos of the requested range, of a profile with `$count` of them.
const PROFILE_SCRIPT: &str = r#"
for argument in "$@"; do case "$argument" in --playlist-items=*) range="${argument#*=}" ;; esac; done
number="${range%:*}"
while [ "$number" -le "${range#*:}" ] && [ "$number" -le "$count" ]; do
  printf '{"id": "76%05d", "title": "%s", "playlist_title": "rope.walk"}\n' "$number" "$range"
  number=$((number + 1))
done"#;

/// A lister with this script as its program.
fn scripted(folder: &TempDir, script: &str) -> YtDlpLists {
    let program = folder.path().join("yt-dlp");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    let http = HttpTransport::new(HttpOptions::default()).unwrap();
    YtDlpLists::new(Arc::new(YtDlp::new(&program, Arc::new(http), Arc::new(ManualClock::default())).unwrap()))
}

async fn page_within(
    lists: &YtDlpLists,
    position: Option<&ListPosition>,
    time: Duration,
) -> Result<ListOutcome, SupplyError> {
    let list = VideoList::parse(PROFILE).unwrap();
    lists.list_page(&list, position, Timestamp::from_millis(0).plus(time)).await
}

/// The next page.
async fn page(lists: &YtDlpLists, position: Option<&ListPosition>) -> VideoListPage {
    match page_within(lists, position, LONG_TIMEOUT).await.unwrap() {
        ListOutcome::Page(page) => page,
        ListOutcome::Absent(absence) => panic!("{absence:?}"),
    }
}

#[tokio::test]
async fn profile_is_read_in_pages_that_double() {
    let folder = TempDir::new().unwrap();
    let lists = scripted(&folder, &format!("count=260{PROFILE_SCRIPT}"));
    let (mut position, mut ids, mut ranges) = (None, Vec::new(), Vec::new());
    loop {
        let page = page(&lists, position.as_ref()).await;
        assert_eq!(page.title.as_deref(), Some("rope.walk"));
        ranges.push(page.videos[0].title.clone().unwrap());
        ids.extend(page.videos.iter().map(|listed| listed.video.id().to_owned()));
        position = page.next;
        if position.is_none() {
            break;
        }
    }
    assert_eq!(ranges, ["1:60", "61:120", "121:240", "241:480"]);
    assert_eq!(ids, (1..=260).map(|number| format!("76{number:05}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn endless_profile_ends_at_its_bound() {
    let folder = TempDir::new().unwrap();
    let lists = scripted(&folder, &format!("count=5000{PROFILE_SCRIPT}"));
    let (mut page, mut count) = (page(&lists, None).await, 0);
    loop {
        count += page.videos.len();
        let Some(next) = page.next else { break };
        page = self::page(&lists, Some(&next)).await;
    }
    assert_eq!(count, 1_000);
}

#[tokio::test]
async fn profile_whose_page_is_the_last_one_ends() {
    let folder = TempDir::new().unwrap();
    let lists = scripted(&folder, &format!("count=60{PROFILE_SCRIPT}"));
    let first = page(&lists, None).await;
    let last = page(&lists, first.next.as_ref()).await;
    assert_eq!((first.videos.len(), last.videos.len(), last.next), (60, 0, None));
}

#[tokio::test]
async fn list_program_that_misbehaves_is_reported() {
    use SupplyReason::{Misconfigured, PlatformFault, Stale, Unreadable};
    let endless = r#"yes '{"id": "7600001"}'"#;
    let huge = "head -c 100000 /dev/zero | tr '\\0' x";
    for (script, expect) in [
        ("cat /dev/zero", Unreadable),
        (endless, Unreadable),
        (huge, Unreadable),
        // An empty list is never the absence of output.
        ("true", Unreadable),
        ("echo null", Unreadable),
        (r#"echo '{"id": "dQw4w9WgXcQ"}'"#, Unreadable),
        (r#"echo '{"id": "http://127.0.0.1/"}'"#, Unreadable),
        (r#"echo '{"id": "7600001"}'; echo '{"id": "../7600002"}'"#, Unreadable),
        ("exit 1", PlatformFault),
        ("kill -9 $$", PlatformFault),
        ("echo 'usage: yt-dlp' >&2; exit 2", Stale),
        ("echo \"ModuleNotFoundError: No module named 'yt_dlp'\" >&2; exit 1", Misconfigured),
    ] {
        let folder = TempDir::new().unwrap();
        let error = page_within(&scripted(&folder, script), None, LONG_TIMEOUT).await.unwrap_err();
        assert_eq!(*error.reason(), expect, "{script}: {error}");
    }
}

#[tokio::test]
async fn list_program_that_hangs_returns_what_it_printed() {
    let folder = TempDir::new().unwrap();
    let script = r#"echo '{"id": "7600001"}'; echo '{"id": "7600002"}'; printf '{"id": "76'; sleep 60"#;
    let lists = scripted(&folder, script);
    let Ok(ListOutcome::Page(page)) = page_within(&lists, None, Duration::from_secs(3)).await else {
        panic!("the printed videos are a page")
    };
    assert_eq!(page.videos.len(), 2);
    let next = page.next.unwrap();
    // It does so again, with the same videos.
    let error = page_within(&lists, Some(&next), Duration::from_secs(3)).await.unwrap_err();
    assert_eq!(*error.reason(), SupplyReason::Unreadable, "{error}");

    let silent = scripted(&folder, "sleep 60");
    let error = page_within(&silent, Some(&next), Duration::from_secs(1)).await.unwrap_err();
    assert_eq!(*error.reason(), SupplyReason::Timeout, "{error}");
}

#[tokio::test]
async fn list_failure_after_videos_is_reported_by_next_page() {
    let folder = TempDir::new().unwrap();
    let failure = "echo 'ERROR: [tiktok:user] rope.walk: Unable to download JSON metadata: HTTP Error 500: x' >&2; exit 1";
    let lists = scripted(&folder, &format!("count=20{PROFILE_SCRIPT}\n{failure}"));
    let first = page(&lists, None).await;
    assert_eq!(first.videos.len(), 20);
    let error = page_within(&lists, first.next.as_ref(), LONG_TIMEOUT).await.unwrap_err();
    assert_eq!(*error.reason(), SupplyReason::PlatformFault, "{error}");
}

#[tokio::test]
async fn private_profile_is_absent_only_at_its_beginning() {
    let folder = TempDir::new().unwrap();
    let private =
        "echo \"ERROR: [tiktok:user] rope.walk: This user's account is private. Log in\" >&2; exit 1";
    let lists = scripted(&folder, private);
    let outcome = page_within(&lists, None, LONG_TIMEOUT).await.unwrap();
    assert!(matches!(outcome, ListOutcome::Absent(absence) if absence.reason == ListAbsenceReason::Private));
    let position = EntryPosition { listed: 60, first: "7600001".to_owned(), stated: None }.write().unwrap();
    let error = page_within(&lists, Some(&position), LONG_TIMEOUT).await.unwrap_err();
    assert_eq!(*error.reason(), SupplyReason::Unreadable, "{error}");
}

#[tokio::test]
async fn list_position_of_another_lister_is_unreadable() {
    let folder = TempDir::new().unwrap();
    let lists = scripted(&folder, "exit 1");
    let position = ListPosition::new(r#"{"token": "T", "pages": 1, "videos": 100}"#).unwrap();
    let error = page_within(&lists, Some(&position), LONG_TIMEOUT).await.unwrap_err();
    assert_eq!((error.reason(), error.was_attempted()), (&SupplyReason::Unreadable, false));
}
