use std::{path::Path, time::Duration};

use tokio::time::{Instant, sleep};
use transcript_core::supplier::Watcher;

use super::*;
use crate::program::find_program;

#[derive(Debug)]
struct Nobody {
    gone_at: Option<Instant>,
}

impl Watcher for Nobody {
    fn stage(&self, _: &str, _: u64, _: u64) {}

    fn cancelled(&self) -> bool {
        self.gone_at.is_some_and(|moment| Instant::now() >= moment)
    }
}

const PATIENT: Nobody = Nobody { gone_at: None };

fn shell(folder: &Path, script: &str, time: Duration) -> Program {
    Program {
        path: find_program(Path::new("sh")).unwrap(),
        arguments: vec!["-c".into(), script.into()],
        environment: vec![("PATH".into(), std::env::var_os("PATH").unwrap()), ("ONE".into(), "1".into())],
        folder: folder.to_owned(),
        deadline: Instant::now() + time,
        output_max: 1_000,
        room: Room { memory: 64 << 20, file: 1_000 },
    }
}

/// Waits until a file that a script keeps touching stops growing, so that its writer is gone.
async fn stops_growing(file: &Path) {
    let length = || std::fs::metadata(file).map_or(0, |file| file.len());
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let before = length();
        sleep(Duration::from_millis(300)).await;
        if length() == before {
            return;
        }
        assert!(Instant::now() < end, "its writer still lives");
    }
}

const LONG: Duration = Duration::from_secs(60);
/// Leaves a grandchild behind that writes for ever, and holds the output open.
const OFFSPRING: &str = "(while :; do echo x >> grows; sleep 0.05; done) & ";

#[tokio::test]
async fn what_it_prints_and_how_it_ends_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let script = "echo out; echo err >&2; echo $ONE$HOME; cat; exit 7";
    let ended = shell(folder.path(), script, LONG).run(&PATIENT).await.unwrap();
    let expect = Ended { status: Some(7), output: b"out\n1\n".to_vec(), errors: "err\n".to_owned() };
    assert_eq!(ended, expect);
    let missing = Program { path: "/nowhere/at-all".into(), ..shell(folder.path(), "", LONG) };
    assert!(matches!(missing.run(&PATIENT).await, Err(ProgramFault::Start(_))));
}

#[tokio::test]
async fn whatever_it_started_ends_with_it() {
    for (script, time, gone_after) in [
        // It ends by itself, at its deadline, and when nobody waits any more.
        (OFFSPRING.to_owned(), LONG, None),
        (format!("{OFFSPRING} sleep 60"), Duration::from_millis(500), None),
        (format!("{OFFSPRING} sleep 60"), LONG, Some(Duration::from_millis(500))),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let watcher = Nobody { gone_at: gone_after.map(|after| Instant::now() + after) };
        let ended = shell(folder.path(), &script, time).run(&watcher).await;
        match gone_after {
            Some(_) => assert!(matches!(ended, Err(ProgramFault::Cancelled)), "{ended:?}"),
            None if time < LONG => assert!(matches!(ended, Err(ProgramFault::Timeout)), "{ended:?}"),
            None => assert_eq!(ended.unwrap().status, Some(0)),
        }
        stops_growing(&folder.path().join("grows")).await;
    }
}

#[tokio::test]
async fn it_ends_when_whoever_runs_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let program = shell(folder.path(), &format!("{OFFSPRING} sleep 60"), LONG);
    let running = tokio::spawn(async move { program.run(&PATIENT).await });
    let grows = folder.path().join("grows");
    while !grows.exists() {
        sleep(Duration::from_millis(20)).await;
    }
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    stops_growing(&grows).await;
}

#[tokio::test]
async fn whoever_prints_for_ever_is_cut_off_and_errors_keep_their_end() {
    let folder = tempfile::tempdir().unwrap();
    let endless = shell(folder.path(), "while :; do echo xxxxxxxxxxxxxxxx; done", LONG).run(&PATIENT).await;
    assert!(matches!(endless, Err(ProgramFault::TooMuch)), "{endless:?}");
    let script = "i=0; while [ $i -lt 2000 ]; do echo 0123456789abcdef >&2; i=$((i+1)); done; echo last >&2";
    let wordy = shell(folder.path(), script, LONG).run(&PATIENT).await.unwrap();
    assert!(wordy.errors.ends_with("last\n") && wordy.errors.len() <= ERRORS_KEPT);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn it_takes_no_more_than_it_may() {
    let folder = tempfile::tempdir().unwrap();
    // The limits are there a moment after the start.
    let script =
        "sleep 0.5; head -c 5000 /dev/zero > large; echo $?; head -c 200000000 /dev/zero | tail -c 190000000";
    let ended = shell(folder.path(), script, LONG).run(&PATIENT).await;
    assert_eq!(std::fs::metadata(folder.path().join("large")).unwrap().len(), 1_000);
    let ended = ended.unwrap();
    assert_ne!(ended.status, Some(0), "{ended:?}");
    assert!(ended.errors.contains("memory"), "{ended:?}");
}
