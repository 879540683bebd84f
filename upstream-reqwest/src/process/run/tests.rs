use std::{path::Path, time::Duration};

use tokio::{
    io::AsyncReadExt as _,
    net::unix::pipe,
    time::{Instant, timeout},
};
use transcript_core::test_doubles::PatientMonitor;

use super::*;
use crate::process::find_program;

const PATIENT: PatientMonitor = PatientMonitor { cancels_at: None };

fn shell_command(folder: &Path, script: &str, time: Duration) -> ProgramCommand {
    ProgramCommand {
        path: find_program(Path::new("sh")).unwrap(),
        arguments: vec!["-c".into(), script.into()],
        environment: vec![("PATH".into(), std::env::var_os("PATH").unwrap()), ("ONE".into(), "1".into())],
        folder: folder.to_owned(),
        deadline: Instant::now() + time,
        output_max: 1_000,
        room: ResourceLimits { memory: 64 << 20, file: 1_000 },
    }
}

/// A pipe for [`ENDLESS_CHILD_SCRIPT`]. It ends when the last program that holds it has exited.
fn open_pipe(folder: &Path) -> pipe::Receiver {
    let path = folder.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    pipe::OpenOptions::new().open_receiver(path).unwrap()
}

/// Waits until the programs have exited; returns what they wrote to the pipe.
async fn wait_for_exit(folder: &Path, mut pipe: pipe::Receiver) -> String {
    // A pipe that never had a writer does not end.
    drop(pipe::OpenOptions::new().open_sender(folder.join("pipe")).unwrap());
    let mut text = String::new();
    timeout(LONG_TIMEOUT, pipe.read_to_string(&mut text)).await.expect("a program still runs").unwrap();
    text
}

const LONG_TIMEOUT: Duration = Duration::from_secs(60);
/// Leaves a grandchild behind that never ends and holds the output and the pipe open.
const ENDLESS_CHILD_SCRIPT: &str = "exec 3>pipe; echo started >&3; (while :; do sleep 60; done) & ";

#[tokio::test]
async fn run_returns_output_and_exit_status() {
    let folder = tempfile::tempdir().unwrap();
    let script = "echo out; echo err >&2; echo $ONE$HOME; cat; exit 7";
    let ended = shell_command(folder.path(), script, LONG_TIMEOUT).run(&PATIENT).await.unwrap();
    let expect = ProgramExit { status: Some(7), output: b"out\n1\n".to_vec(), errors: "err\n".to_owned() };
    assert_eq!(ended, expect);
    let missing =
        ProgramCommand { path: "/nowhere/at-all".into(), ..shell_command(folder.path(), "", LONG_TIMEOUT) };
    assert!(matches!(missing.run(&PATIENT).await, Err(ProgramError::Start(_))));
}

#[tokio::test]
async fn run_end_stops_child_processes() {
    for (script, time, gone_after) in [
        // It ends normally, at its deadline, and on cancellation.
        (ENDLESS_CHILD_SCRIPT.to_owned(), LONG_TIMEOUT, None),
        (format!("{ENDLESS_CHILD_SCRIPT} sleep 60"), Duration::from_millis(500), None),
        (format!("{ENDLESS_CHILD_SCRIPT} sleep 60"), LONG_TIMEOUT, Some(Duration::from_millis(500))),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let pipe = open_pipe(folder.path());
        let monitor = PatientMonitor { cancels_at: gone_after.map(|after| Instant::now() + after) };
        let ended = shell_command(folder.path(), &script, time).run(&monitor).await;
        match gone_after {
            Some(_) => assert!(matches!(ended, Err(ProgramError::Cancelled)), "{ended:?}"),
            None if time < LONG_TIMEOUT => assert!(matches!(ended, Err(ProgramError::Timeout)), "{ended:?}"),
            None => assert_eq!(ended.as_ref().unwrap().status, Some(0)),
        }
        let written = wait_for_exit(folder.path(), pipe).await;
        assert!(ended.is_err() || written == "started\n", "{written:?}");
    }
}

#[tokio::test]
async fn run_dropped_future_stops_program() {
    let folder = tempfile::tempdir().unwrap();
    let mut pipe = open_pipe(folder.path());
    let program = shell_command(folder.path(), &format!("{ENDLESS_CHILD_SCRIPT} sleep 60"), LONG_TIMEOUT);
    let running = tokio::spawn(async move { program.run(&PATIENT).await });
    pipe.read_u8().await.unwrap();
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    wait_for_exit(folder.path(), pipe).await;
}

#[tokio::test]
async fn run_endless_output_fails_and_errors_keep_end() {
    let folder = tempfile::tempdir().unwrap();
    let endless = shell_command(folder.path(), "while :; do echo xxxxxxxxxxxxxxxx; done", LONG_TIMEOUT)
        .run(&PATIENT)
        .await;
    assert!(matches!(endless, Err(ProgramError::TooMuch)), "{endless:?}");
    let script = "i=0; while [ $i -lt 2000 ]; do echo 0123456789abcdef >&2; i=$((i+1)); done; echo last >&2";
    let wordy = shell_command(folder.path(), script, LONG_TIMEOUT).run(&PATIENT).await.unwrap();
    assert!(wordy.errors.ends_with("last\n") && wordy.errors.len() <= ERRORS_KEPT);
}

#[tokio::test]
async fn run_output_before_timeout_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let program = shell_command(folder.path(), "echo one; echo two; sleep 60", Duration::from_secs(4));
    let mut output = Vec::new();
    let ended = program.run_into(&mut output, &PATIENT).await;
    assert!(matches!(ended, Err(ProgramError::Timeout)), "{ended:?}");
    assert_eq!(output, b"one\ntwo\n");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn run_resource_limits_are_enforced() {
    let folder = tempfile::tempdir().unwrap();
    // The limits are set shortly after the start, that of files after that of memory.
    let script = "while [ \"$(ulimit -f)\" = unlimited ]; do sleep 0.05; done
        head -c 5000 /dev/zero > large; echo $?; head -c 200000000 /dev/zero | tail -c 190000000";
    let ended = shell_command(folder.path(), script, LONG_TIMEOUT).run(&PATIENT).await;
    assert_eq!(std::fs::metadata(folder.path().join("large")).unwrap().len(), 1_000);
    let ended = ended.unwrap();
    assert_ne!(ended.status, Some(0), "{ended:?}");
    assert!(ended.errors.contains("memory"), "{ended:?}");
}
