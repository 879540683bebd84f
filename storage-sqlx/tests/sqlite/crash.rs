//! A process killed at any time: acknowledged operations survive, and balances equal their entries.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use transcript_core::{
    ids::HoldId,
    ledger::{HoldOutcome, HoldState, Ledger, SettleOutcome, SettleRequest},
};

use crate::common::{check_audit, grant, request, timestamp};

/// The folder, set for the process that is killed.
const FOLDER: &str = "VERBATIM_TEST_CRASH";
const ROUND: &str = "VERBATIM_TEST_CRASH_ROUND";
const ROUNDS: u64 = 10;

#[test]
fn acknowledged_operation_after_kill_survives() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    if let Some(folder) = std::env::var_os(FOLDER) {
        runtime.block_on(work(PathBuf::from(folder), std::env::var(ROUND).unwrap()));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = BTreeMap::new();
    for round in 0..ROUNDS {
        let before = acknowledged.len();
        acknowledged.extend(run_and_kill(folder.path(), round));
        assert!(acknowledged.len() > before, "the process was killed before it acknowledged anything");
        runtime.block_on(check(folder.path(), &acknowledged));
    }
}

/// Holds and settles without end, and prints each acknowledged step.
async fn work(folder: PathBuf, round: String) {
    let store = crate::store_in(&folder).await;
    grant(&*store, &format!("bought{round}"), "w", 1_000_000).await;
    let mut workers = Vec::new();
    for worker in 0..6 {
        let (store, round) = (Arc::clone(&store), round.clone());
        workers.push(tokio::spawn(async move {
            for n in 0_u64.. {
                let id = format!("{round}-{worker}-{n}");
                let held = store.hold(request(id.clone(), "w", 3)).await.unwrap();
                assert!(matches!(held, HoldOutcome::Held { .. }));
                acknowledge(&format!("held {id}"));
                let spent = n % 4;
                let settle =
                    SettleRequest { id: HoldId::new(id.clone()), spent: vec![spent], now: timestamp(1) };
                let _ = store.settle(settle).await.unwrap();
                acknowledge(&format!("settled {id} {spent}"));
            }
        }));
    }
    for worker in workers {
        worker.await.unwrap();
    }
}

fn acknowledge(step: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("ack {step}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Starts the process, kills it, and returns the acknowledged holds with their settled amounts.
fn run_and_kill(folder: &Path, round: u64) -> BTreeMap<String, Option<u64>> {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::acknowledged_operation_after_kill_survives", "--nocapture"])
        .env(FOLDER, folder)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap());
    let mut acknowledged = BTreeMap::new();
    let mut read = |line: &str| {
        // An incomplete line was not acknowledged.
        let Some(("", step)) = line.strip_suffix('\n').and_then(|line| line.split_once("ack ")) else {
            return;
        };
        match step.split(' ').collect::<Vec<_>>()[..] {
            ["held", id] => acknowledged.insert(id.to_owned(), None),
            ["settled", id, spent] => acknowledged.insert(id.to_owned(), Some(spent.parse().unwrap())),
            _ => panic!("{line}"),
        };
    };
    let mut line = String::new();
    for _ in 0..20 + 7 * round {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the process ended early");
        read(&line);
    }
    std::thread::sleep(Duration::from_micros(730 * round));
    process.kill().unwrap();
    process.wait().unwrap();
    loop {
        line.clear();
        if lines.read_line(&mut line).unwrap() == 0 {
            return acknowledged;
        }
        read(&line);
    }
}

async fn check(folder: &Path, acknowledged: &BTreeMap<String, Option<u64>>) {
    let store = crate::store_in(folder).await;
    check_audit(&*store).await;
    for (id, settled) in acknowledged {
        match (store.hold(request(id.clone(), "w", 3)).await.unwrap(), settled) {
            (HoldOutcome::Exists { state: HoldState::Settled { spent }, .. }, Some(settled)) => {
                assert_eq!(spent, [*settled], "{id}");
            }
            // The last settlement may be stored without its acknowledgement.
            (HoldOutcome::Exists { state: HoldState::Open { .. } | HoldState::Settled { .. }, .. }, None) => {
            }
            (outcome, _) => panic!("{id} was acknowledged as {settled:?}, but is {outcome:?}"),
        }
    }
    // Holds that were open when the process was killed can still be settled, once.
    for (id, _) in acknowledged.iter().filter(|(_, settled)| settled.is_none()) {
        let settle = SettleRequest { id: HoldId::new(id.clone()), spent: vec![1], now: timestamp(2) };
        let outcome = store.settle(settle).await.unwrap();
        assert!(matches!(outcome, SettleOutcome::Settled { .. } | SettleOutcome::Exists { .. }), "{id}");
    }
    store.close().await;
}
