use std::{
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering},
    task::{Context, Poll, Waker},
    time::Duration,
};

use super::*;

/// An owner with a name; one with a capital letter pays.
type Name = &'static str;

impl TurnOwner for Name {
    fn pays(&self) -> bool {
        self.starts_with(char::is_uppercase)
    }
}

type Acquisition<'a> = Pin<Box<dyn Future<Output = Result<QueuePermit<Name>, QueueFull>> + 'a>>;

fn poll(acquisition: &mut Acquisition<'_>) -> Poll<Result<QueuePermit<Name>, QueueFull>> {
    acquisition.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// A queue whose only permit is taken.
fn busy_queue(waiting_max: usize) -> (FairQueue<Name>, QueuePermit<Name>) {
    let queue = FairQueue::new(1, waiting_max);
    let Poll::Ready(Ok(permit)) = poll(&mut (Box::pin(queue.acquire(&"First")) as Acquisition<'_>)) else {
        panic!("the first permit is not free");
    };
    (queue, permit)
}

/// Adds waiters of these owners, in this order.
fn wait_all<'a>(queue: &'a FairQueue<Name>, owners: &'a [Name]) -> Vec<(usize, Acquisition<'a>)> {
    let mut waiting = Vec::new();
    for (index, owner) in owners.iter().enumerate() {
        let mut acquisition: Acquisition<'_> = Box::pin(queue.acquire(owner));
        assert!(poll(&mut acquisition).is_pending(), "{owner} does not wait");
        waiting.push((index, acquisition));
    }
    waiting
}

/// The indices of the waiters in the order in which they get the permit, and of those that are refused.
fn order(mut waiting: Vec<(usize, Acquisition<'_>)>, permit: QueuePermit<Name>) -> (Vec<usize>, Vec<usize>) {
    drop(permit);
    let (mut served, mut refused) = (Vec::new(), Vec::new());
    while !waiting.is_empty() {
        let before = served.len() + refused.len();
        waiting.retain_mut(|(index, acquisition)| match poll(acquisition) {
            Poll::Pending => true,
            // Dropping the permit serves the next waiter.
            Poll::Ready(Ok(_)) => {
                served.push(*index);
                false
            }
            Poll::Ready(Err(QueueFull)) => {
                refused.push(*index);
                false
            }
        });
        assert!(served.len() + refused.len() > before, "waiters are stuck after {served:?}");
    }
    (served, refused)
}

fn check_idle(queue: &FairQueue<Name>, permits: usize) {
    let state = lock(&queue.0);
    assert_eq!(state.free_permits, permits);
    for ring in [&state.paying, &state.free] {
        assert!(ring.waiting == 0 && ring.turns.is_empty() && ring.owners.is_empty(), "{ring:?}");
    }
}

fn check_order(owners: &[Name], expect: &[usize]) {
    let (queue, permit) = busy_queue(100);
    let (served, refused) = order(wait_all(&queue, owners), permit);
    assert_eq!((served.as_slice(), refused.len()), (expect, 0), "{owners:?}");
    check_idle(&queue, 1);
}

#[test]
fn fair_queue_serves_one_owner_in_order_of_arrival() {
    check_order(&["A", "A", "A"], &[0, 1, 2]);
}

#[test]
fn fair_queue_gives_owners_turns_in_rotation() {
    check_order(&["A", "A", "A", "B", "C", "C"], &[0, 3, 4, 1, 5, 2]);
    check_order(&["a", "a", "a", "b", "c", "c"], &[0, 3, 4, 1, 5, 2]);
}

#[test]
fn fair_queue_serves_paying_owners_first_without_starving_others() {
    check_order(&["a", "b", "A", "A", "A", "A", "A", "A", "A"], &[2, 3, 4, 0, 5, 6, 7, 1, 8]);
    check_order(&["a", "A", "b"], &[1, 0, 2]);
}

#[test]
fn fair_queue_full_refuses_newcomer_at_once() {
    let (queue, permit) = busy_queue(2);
    let waiting = wait_all(&queue, &["a", "b"]);
    assert!(queue.is_full_for(&"c") && !queue.is_full_for(&"A"));
    let mut newcomer: Acquisition<'_> = Box::pin(queue.acquire(&"c"));
    assert!(matches!(poll(&mut newcomer), Poll::Ready(Err(QueueFull))));
    assert_eq!(order(waiting, permit), (vec![0, 1], vec![]));
    assert!(!queue.is_full_for(&"c"), "a permit is free");
    check_idle(&queue, 1);
}

#[test]
fn fair_queue_full_refuses_newest_free_waiter_for_paying_one() {
    let (queue, permit) = busy_queue(2);
    assert_eq!(order(wait_all(&queue, &["a", "b", "A"]), permit), (vec![2, 0], vec![1]));
    check_idle(&queue, 1);

    let (queue, permit) = busy_queue(2);
    let waiting = wait_all(&queue, &["A", "B"]);
    for newcomer in ["a", "C"] {
        assert!(queue.is_full_for(&newcomer));
        assert!(matches!(
            poll(&mut (Box::pin(queue.acquire(&newcomer)) as Acquisition<'_>)),
            Poll::Ready(Err(QueueFull))
        ));
    }
    assert_eq!(order(waiting, permit), (vec![0, 1], vec![]));
}

/// Neither class takes all places.
#[test]
fn fair_queue_full_keeps_share_of_free_owners() {
    let (queue, permit) = busy_queue(4);
    let waiting = wait_all(&queue, &["A", "B", "C", "D", "a"]);
    assert!(["b", "E"].iter().all(|newcomer| queue.is_full_for(newcomer)));
    assert_eq!(order(waiting, permit), (vec![0, 1, 2, 4], vec![3]));

    let (queue, permit) = busy_queue(4);
    let waiting = wait_all(&queue, &["a", "b", "c", "d", "A", "B", "C"]);
    assert!(["e", "D"].iter().all(|newcomer| queue.is_full_for(newcomer)));
    assert_eq!(order(waiting, permit), (vec![4, 5, 6, 0], vec![1, 2, 3]));
    check_idle(&queue, 1);
}

#[test]
fn fair_queue_full_of_one_owner_has_room_for_other() {
    let (queue, permit) = busy_queue(4);
    let waiting = wait_all(&queue, &["A", "A", "A", "A", "B", "B"]);
    assert!(["A", "B"].iter().all(|owner| queue.is_full_for(owner)));
    assert!(!queue.is_full_for(&"C"), "an owner without waiters");
    assert_eq!(order(waiting, permit), (vec![0, 4, 1, 5], vec![2, 3]));
    check_idle(&queue, 1);
}

#[test]
fn fair_queue_dropped_waiter_leaves_queue() {
    let (queue, permit) = busy_queue(3);
    let mut waiting = wait_all(&queue, &["A", "B", "C"]);
    drop(waiting.remove(1));
    assert_eq!(lock(&queue.0).paying.waiting, 2);
    assert!(!queue.is_full_for(&"D"));
    assert_eq!(order(waiting, permit), (vec![0, 2], vec![]));
    check_idle(&queue, 1);
}

#[test]
fn fair_queue_permit_of_dropped_waiter_passes_on() {
    let (queue, permit) = busy_queue(3);
    let mut waiting = wait_all(&queue, &["A", "A", "B"]);
    // Granted to the first waiter, which is dropped before it takes the permit; the next turn is B's.
    drop(permit);
    drop(waiting.remove(0));
    assert!(poll(&mut waiting[0].1).is_pending());
    let Poll::Ready(Ok(permit)) = poll(&mut waiting[1].1) else { panic!("the permit is lost") };
    waiting.truncate(1);
    drop((permit, waiting));
    check_idle(&queue, 1);
}

/// Waiters that are dropped while permits are granted neither lose nor double a permit.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fair_queue_cancellation_races_lose_no_permit() {
    const PERMITS: usize = 3;
    let queue = Arc::new(FairQueue::new(PERMITS, 20));
    let running = Arc::new(AtomicUsize::new(0));
    let owners = ["A", "B", "C", "a", "b", "c"];
    let tasks = (0..4_000_u64).map(|number| {
        let (queue, running) = (Arc::clone(&queue), Arc::clone(&running));
        let owner = owners[usize::try_from(number % 6).unwrap()];
        tokio::spawn(async move {
            // The runtime drops some acquisitions at the moment of their grant.
            let limit = Duration::from_micros(number * 7_919 % 900);
            let acquired = tokio::select! {
                biased;
                () = spin(limit) => None,
                acquired = queue.acquire(&owner) => acquired.ok(),
            };
            if acquired.is_some() {
                assert!(running.fetch_add(1, Ordering::SeqCst) < PERMITS, "too many permits");
                tokio::task::yield_now().await;
                running.fetch_sub(1, Ordering::SeqCst);
            }
            acquired.is_some()
        })
    });
    let mut served = 0;
    for task in tasks.collect::<Vec<_>>() {
        served += usize::from(task.await.unwrap());
    }
    assert!(served >= PERMITS, "{served}");
    check_idle(&queue, PERMITS);
}

/// Yields until a time is over: finer than the timer.
#[expect(clippy::disallowed_methods, reason = "the test races against real time")]
async fn spin(limit: Duration) {
    let end = tokio::time::Instant::now() + limit;
    while tokio::time::Instant::now() < end {
        tokio::task::yield_now().await;
    }
}
