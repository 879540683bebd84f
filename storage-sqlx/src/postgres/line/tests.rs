use std::{collections::BTreeSet, time::Duration};

use tokio::{sync::Notify, task::JoinSet};

use super::*;
use crate::postgres::options::PostgresOptions;

/// What is seen of the tasks that serve.
#[derive(Debug, Default)]
struct Seen {
    /// How many each served together, in the order in which they began.
    groups: Mutex<Vec<usize>>,
    /// The names that are being served.
    names: Mutex<BTreeSet<usize>>,
    /// Told to go on, where somebody is to be held up.
    go_on: Notify,
}

struct Ask {
    name: usize,
    seen: Arc<Seen>,
    is_held_up: bool,
    is_faulty: bool,
}

enum Clerk {}

impl Serve for Clerk {
    type Ask = Ask;
    type Outcome = usize;

    async fn serve(_: &Database, members: Vec<Member<Self>>) {
        let seen = Arc::clone(&members[0].0.seen);
        seen.groups.lock().unwrap().push(members.len());
        let own: BTreeSet<usize> = members.iter().map(|(ask, _)| ask.name).collect();
        {
            let mut names = seen.names.lock().unwrap();
            assert!(names.is_disjoint(&own), "a name is served twice at a time");
            names.extend(&own);
        }
        match members.iter().any(|(ask, _)| ask.is_held_up) {
            true => seen.go_on.notified().await,
            false => tokio::time::sleep(Duration::from_micros(50)).await,
        }
        seen.names.lock().unwrap().retain(|name| !own.contains(name));
        assert!(!members.iter().any(|(ask, _)| ask.is_faulty), "a fault, as the test wants it");
        for (ask, answer) in members {
            answer.send(Ok(ask.name)).ok();
        }
    }
}

struct Office {
    line: Arc<Line<Clerk>>,
    seen: Arc<Seen>,
}

impl Office {
    /// Nothing listens at that address, and nobody asks it.
    fn open() -> Self {
        let database = Database::new(PostgresOptions::new("postgres://nobody@127.0.0.1:1/none")).unwrap();
        Self { line: Arc::new(Line::new(&database)), seen: Arc::default() }
    }

    fn ask(&self, name: usize) -> Ask {
        Ask { name, seen: Arc::clone(&self.seen), is_held_up: false, is_faulty: false }
    }

    fn join(&self, ask: Ask) -> tokio::task::JoinHandle<Result<usize>> {
        let line = Arc::clone(&self.line);
        tokio::spawn(async move { line.ask(&ask.name.to_string(), ask).await })
    }

    fn groups(&self) -> Vec<usize> {
        self.seen.groups.lock().unwrap().clone()
    }

    /// The first ones are being served.
    async fn see_begun(&self) {
        while self.groups().is_empty() {
            tokio::task::yield_now().await;
        }
    }

    fn is_empty(&self) -> bool {
        let waiting = self.line.0.waiting();
        let counts = [waiting.count, waiting.ready_count, waiting.served_count, waiting.tasks];
        counts == [0; 4]
            && waiting.waiters.is_empty()
            && waiting.ready.is_empty()
            && waiting.served.is_empty()
    }

    /// The tasks end once they find that nobody waits.
    async fn see_empty(&self) {
        for _ in 0..1_000 {
            if self.is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("something is left");
    }
}

#[tokio::test]
async fn those_of_one_name_are_served_together_as_far_as_they_may() {
    let office = Office::open();
    let asked: Vec<_> = (0..100).map(|_| office.join(office.ask(7))).collect();
    for answer in asked {
        assert_eq!(answer.await.unwrap().unwrap(), 7);
    }
    assert_eq!(office.groups(), [64, 36]);
    office.see_empty().await;
}

#[tokio::test]
async fn two_tasks_share_those_of_many_names() {
    let office = Office::open();
    let asked: Vec<_> = (0..32).map(|name| office.join(office.ask(name))).collect();
    for (name, answer) in asked.into_iter().enumerate() {
        assert_eq!(answer.await.unwrap().unwrap(), name);
    }
    assert_eq!(office.groups(), [16, 16]);
    office.see_empty().await;
}

#[tokio::test]
async fn a_name_with_many_who_wait_keeps_nobody_else_waiting() {
    let office = Office::open();
    let held_up = office.join(Ask { is_held_up: true, ..office.ask(1) });
    office.see_begun().await;
    let behind: Vec<_> = (0..1_000).map(|_| office.join(office.ask(1))).collect();
    tokio::task::yield_now().await;
    for name in 2..40 {
        assert_eq!(office.join(office.ask(name)).await.unwrap().unwrap(), name);
    }
    assert!(office.line.is_busy("1") && !office.line.is_busy("40"));
    assert!(behind.iter().all(|answer| !answer.is_finished()), "they wait for the first one");
    office.seen.go_on.notify_one();
    assert_eq!(held_up.await.unwrap().unwrap(), 1);
    for answer in behind {
        assert_eq!(answer.await.unwrap().unwrap(), 1);
    }
    office.see_empty().await;
}

#[tokio::test]
async fn a_fault_ends_those_who_are_served_with_it_and_nobody_else() {
    let office = Office::open();
    let faulty = office.join(Ask { is_held_up: true, is_faulty: true, ..office.ask(1) });
    office.see_begun().await;
    let behind = office.join(office.ask(1));
    assert_eq!(office.join(office.ask(2)).await.unwrap().unwrap(), 2);
    assert!(!behind.is_finished());
    office.seen.go_on.notify_one();
    assert!(faulty.await.unwrap().is_err());
    assert_eq!(behind.await.unwrap().unwrap(), 1, "another task has gone on");
    office.see_empty().await;
}

#[test]
fn a_runtime_that_ends_leaves_nobody_waiting() {
    let (runtime, other) = (tokio::runtime::Runtime::new().unwrap(), tokio::runtime::Runtime::new().unwrap());
    let office = runtime.block_on(async { Office::open() });
    let asked: Vec<_> = other.block_on(async {
        let held_up = office.join(Ask { is_held_up: true, ..office.ask(1) });
        office.see_begun().await;
        let behind = office.join(office.ask(1));
        while office.line.0.waiting().count == 0 {
            tokio::task::yield_now().await;
        }
        vec![held_up, behind]
    });
    drop(runtime);
    other.block_on(async {
        for answer in asked {
            assert!(answer.await.unwrap().is_err());
        }
        assert!(office.join(office.ask(2)).await.unwrap().is_err());
    });
    assert!(office.is_empty());
}

#[tokio::test]
async fn whoever_left_is_not_served() {
    let office = Office::open();
    let held_up = office.join(Ask { is_held_up: true, ..office.ask(1) });
    office.see_begun().await;
    let left: Vec<_> = (0..10).map(|_| office.join(office.ask(1))).collect();
    tokio::task::yield_now().await;
    left.iter().for_each(tokio::task::JoinHandle::abort);
    let stays = office.join(office.ask(1));
    tokio::task::yield_now().await;
    office.seen.go_on.notify_one();
    assert_eq!(held_up.await.unwrap().unwrap(), 1);
    assert_eq!(stays.await.unwrap().unwrap(), 1);
    assert_eq!(office.groups(), [1, 1]);
    office.see_empty().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn everybody_is_answered_once_and_no_name_is_served_twice_at_a_time() {
    let office = Arc::new(Office::open());
    let mut clients = JoinSet::new();
    for client in 0..40_usize {
        let office = Arc::clone(&office);
        clients.spawn(async move {
            for round in 0..200 {
                // A few names are asked for by nearly all, the others by one each.
                let name = if (client + round) % 3 == 0 { round % 4 } else { 100 + client };
                assert_eq!(office.line.ask(&name.to_string(), office.ask(name)).await.unwrap(), name);
            }
        });
    }
    clients.join_all().await;
    assert_eq!(office.groups().iter().sum::<usize>(), 40 * 200);
    office.see_empty().await;
}
