use std::{
    collections::VecDeque,
    sync::{Mutex, atomic::AtomicU32, atomic::Ordering::Relaxed},
};

use async_trait::async_trait;
use tokio::{sync::mpsc, time::Instant};

use super::*;
use crate::{
    Timestamp,
    accounts::mail::RingingOutbox,
    directory::{NewKey, Redeem, Redeemed},
    error::ErrorKind,
    ids::{AccountId, KeyId, WalletId},
    memory::{MemoryDirectory, MemoryOutbox},
};

/// A clock that goes with tokio's time, which is paused.
#[derive(Debug)]
struct Paused(Instant);

impl Paused {
    #[expect(clippy::disallowed_methods, reason = "the runtime's time is paused: only the test moves it")]
    fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for Paused {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_000_000).plus(self.0.elapsed())
    }
}

#[derive(Debug)]
struct Counting(AtomicU32);

impl Random for Counting {
    fn bytes(&self, count: u32) -> Vec<u8> {
        (0..count).map(|_| (self.0.fetch_add(1, Relaxed).wrapping_mul(2_654_435_761) >> 24) as u8).collect()
    }
}

/// What the mail server does with a mail.
#[derive(Debug)]
enum Fate {
    Fail(Retry),
    Stall,
    /// It takes the mail, and its answer never arrives.
    TakeAndStall,
    Panic,
}

/// Takes every mail, unless another fate is in store.
#[derive(Debug)]
struct Post {
    fates: Mutex<VecDeque<Fate>>,
    clock: Arc<Paused>,
    taken: mpsc::UnboundedSender<(Timestamp, Mail)>,
}

#[async_trait]
impl Mailer for Post {
    async fn send(&self, mail: Mail) -> Result<()> {
        let fate = self.fates.lock().unwrap().pop_front();
        let take = |mail| self.taken.send((self.clock.now(), mail)).unwrap();
        match fate {
            None => take(mail),
            Some(Fate::Fail(retry)) => {
                return Err(Error::new(ErrorKind::Unavailable, retry, "the server says no"));
            }
            Some(Fate::Stall) => std::future::pending().await,
            Some(Fate::TakeAndStall) => {
                take(mail);
                std::future::pending().await
            }
            Some(Fate::Panic) => panic!("a mailer's defect"),
        }
        Ok(())
    }
}

struct World {
    outbox: RingingOutbox,
    bell: Bell,
    directory: MemoryDirectory,
    parts: SenderParts,
    post: Arc<Post>,
    taken: mpsc::UnboundedReceiver<(Timestamp, Mail)>,
}

impl World {
    fn new(fates: impl IntoIterator<Item = Fate>) -> Self {
        Self::over(Arc::new(MemoryOutbox::default()), fates)
    }

    fn over(outbox: Arc<dyn Outbox>, fates: impl IntoIterator<Item = Fate>) -> Self {
        let (sender, taken) = mpsc::unbounded_channel();
        let clock = Arc::new(Paused::start());
        let post = Arc::new(Post {
            fates: Mutex::new(fates.into_iter().collect()),
            clock: Arc::clone(&clock),
            taken: sender,
        });
        let directory = MemoryDirectory::default();
        let bell = Bell::default();
        let outbox = RingingOutbox::new(outbox, bell.clone());
        let parts = SenderParts {
            outbox: Arc::new(outbox.clone()),
            directory: Arc::new(directory.clone()),
            mailer: Arc::clone(&post) as _,
            clock,
            random: Arc::new(Counting(AtomicU32::new(0))),
            letterhead: Letterhead::default(),
        };
        Self { outbox, bell, directory, parts, post, taken }
    }

    fn start(&self) -> RunningSender {
        MailSender::new(self.parts.clone(), self.bell.clone()).start(&Handle::current())
    }

    async fn queue(&self, id: &str, to: &str) {
        let intent =
            MailIntent { id: id.to_owned(), kind: "verify".to_owned(), to: to.to_owned(), attempts: 0 };
        self.outbox.queue(intent, self.parts.clock.now()).await.unwrap();
    }

    async fn taken(&mut self) -> (Timestamp, Mail) {
        // Time that is paused passes when everybody waits: a day is over in a moment.
        tokio::time::timeout(Duration::from_secs(86_400), self.taken.recv()).await.unwrap().unwrap()
    }

    async fn nothing_for(&mut self, time: Duration) {
        let taken = tokio::time::timeout(time, self.taken.recv()).await;
        assert!(taken.is_err(), "{taken:?}");
    }

    /// What comes of following the link of a mail.
    async fn follow(&self, mail: &Mail, confirmed: bool, name: &str) -> Redeemed {
        let token = token(mail);
        let now = self.parts.clock.now();
        let key = NewKey {
            id: KeyId::new(format!("key-{name}")),
            digest: Sha256::digest(name).to_vec(),
            hint: "vba_".to_owned(),
            now,
        };
        let ask = Redeem {
            digest: Sha256::digest(token.as_bytes()).to_vec(),
            confirmed,
            new_account: AccountId::new(name),
            new_wallet: WalletId::new(name),
            key,
        };
        self.directory.redeem(ask).await.unwrap()
    }
}

fn token(mail: &Mail) -> String {
    let (_, rest) = mail.text.split_once("/api/v1/verify?token=").unwrap();
    rest.lines().next().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_queued_mail_is_sent_at_once_with_a_token_that_works() {
    let mut world = World::new([]);
    let _sender = world.start();
    // The sender sleeps by now, and only the bell can wake it before its time.
    world.nothing_for(Duration::from_secs(5)).await;
    let queued = world.parts.clock.now();
    world.queue("m1", "ann@example.org").await;
    let (at, mail) = world.taken().await;
    assert_eq!((at, mail.to.as_str()), (queued, "ann@example.org"));
    assert_eq!(token(&mail).len(), 64);
    assert!(mail.text.contains("confirm the address"), "{}", mail.text);
    let redeemed = world.follow(&mail, false, "a").await;
    assert!(matches!(redeemed, Redeemed::Issued { first: true, .. }), "{redeemed:?}");
    world.nothing_for(Duration::from_secs(86_400)).await;
}

#[tokio::test(start_paused = true)]
async fn the_text_is_that_of_what_the_link_does_when_it_is_sent() {
    let mut world = World::new([]);
    let sender = world.start();
    world.queue("m1", "ann@example.org").await;
    let (_, first) = world.taken().await;
    world.follow(&first, false, "a").await;
    // It was queued as `verify`, and there is an account by now.
    world.queue("m2", "ann@example.org").await;
    let (_, second) = world.taken().await;
    assert!(second.text.contains("asked for a new API key"), "{}", second.text);
    assert_eq!(world.follow(&second, false, "b").await, Redeemed::NeedsConfirmation);
    sender.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_fails_in_passing_is_tried_again_with_longer_and_longer_pauses() {
    let after = Retry::After(Duration::from_secs(100));
    let fates = [Retry::Backoff, Retry::Backoff, after, Retry::Backoff].map(Fate::Fail);
    let mut world = World::new(fates);
    let began = world.parts.clock.now();
    let _sender = world.start();
    world.queue("m1", "ann@example.org").await;
    let (at, _) = world.taken().await;
    // 15 + 30 + 100 (asked for) + 120 seconds, each seen at the next look.
    let took = at.since(began).as_secs();
    assert!((265..=265 + 4 * LOOK_EVERY.as_secs()).contains(&took), "{took}");
    world.nothing_for(Duration::from_secs(86_400)).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_for_good_is_never_tried_again() {
    let mut world = World::new([Fate::Fail(Retry::Never)]);
    let _sender = world.start();
    world.queue("m1", "nobody@example.org").await;
    world.nothing_for(Duration::from_secs(86_400)).await;
    world.queue("m2", "ann@example.org").await;
    assert_eq!(world.taken().await.1.to, "ann@example.org");
}

#[tokio::test(start_paused = true)]
async fn attempts_are_bounded() {
    let mut world = World::new((0..100).map(|_| Fate::Fail(Retry::Backoff)));
    let _sender = world.start();
    world.queue("m1", "ann@example.org").await;
    world.nothing_for(Duration::from_secs(7 * 86_400)).await;
    assert_eq!(world.post.fates.lock().unwrap().len(), 100 - ATTEMPTS_MAX as usize);
    // One that ends its process each time is given up, too, without being tried any more.
    let world = World::new([]);
    world.queue("m1", "ann@example.org").await;
    for _ in 0..ATTEMPTS_MAX {
        let now = world.parts.clock.now();
        let leased = world.outbox.due(&Holder::new("dead"), now, now.plus(LEASE), 1).await.unwrap();
        assert_eq!(leased.len(), 1);
        tokio::time::advance(LEASE).await;
    }
    let mut world = world;
    let _sender = world.start();
    world.nothing_for(Duration::from_secs(86_400)).await;
}

#[tokio::test(start_paused = true)]
async fn a_mail_of_unknown_kind_is_given_up() {
    let mut world = World::new([]);
    let _sender = world.start();
    let intent = MailIntent {
        id: "m".to_owned(),
        kind: "newsletter".to_owned(),
        to: "ann@example.org".to_owned(),
        attempts: 0,
    };
    world.outbox.queue(intent, world.parts.clock.now()).await.unwrap();
    world.nothing_for(Duration::from_secs(86_400)).await;
}

#[tokio::test(start_paused = true)]
async fn one_that_stalls_or_panics_holds_up_no_other() {
    let mut world = World::new([Fate::Stall, Fate::Panic]);
    let _sender = world.start();
    for id in ["stalls", "panics", "goes"] {
        world.queue(id, &format!("{id}@example.org")).await;
    }
    let began = world.parts.clock.now();
    let (at, mail) = world.taken().await;
    assert_eq!((at, mail.to.as_str()), (began, "goes@example.org"));
    // The one that stalled is given up after its time and tried again, the other one when its lease ends.
    let (at, mail) = world.taken().await;
    let took = at.since(began);
    assert_eq!(mail.to, "stalls@example.org");
    assert!(took >= SENDING_MAX + FIRST_PAUSE && took <= SENDING_MAX + FIRST_PAUSE + LOOK_EVERY, "{took:?}");
    let (at, mail) = world.taken().await;
    let took = at.since(began);
    assert_eq!(mail.to, "panics@example.org");
    assert!(took >= LEASE && took <= LEASE + LOOK_EVERY, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_dies_loses_no_mail_and_every_copy_works() {
    let mut world = World::new([Fate::TakeAndStall]);
    let sender = world.start();
    world.queue("m1", "ann@example.org").await;
    let (died, first) = world.taken().await;
    drop(sender);
    let _next = world.start();
    let (at, second) = world.taken().await;
    let took = at.since(died);
    assert!(took >= LEASE && took <= LEASE + LOOK_EVERY, "{took:?}");
    assert_ne!(token(&first), token(&second));
    // Either is good; the one that is used voids the other.
    assert!(matches!(world.follow(&first, false, "a").await, Redeemed::Issued { .. }));
    assert_eq!(world.follow(&second, true, "b").await, Redeemed::Invalid);
    world.nothing_for(Duration::from_secs(86_400)).await;
}

#[tokio::test(start_paused = true)]
async fn stopping_waits_for_what_is_on_its_way_and_takes_no_more() {
    let mut world = World::new([Fate::TakeAndStall]);
    let sender = world.start();
    world.queue("m1", "ann@example.org").await;
    world.taken().await;
    let began = world.parts.clock.now();
    sender.stop().await;
    assert_eq!(world.parts.clock.now().since(began), SENDING_MAX, "the mail on its way had its time");
    world.queue("m2", "ben@example.org").await;
    world.nothing_for(Duration::from_secs(86_400)).await;
}

#[tokio::test(start_paused = true)]
async fn many_senders_send_each_mail_once() {
    let mut world = World::new([]);
    let senders = [world.start(), world.start(), world.start()];
    for n in 0..50 {
        world.queue(&format!("m{n}"), &format!("{n}@example.org")).await;
    }
    let mut to = Vec::new();
    for _ in 0..50 {
        to.push(world.taken().await.1.to);
    }
    to.sort();
    to.dedup();
    assert_eq!(to.len(), 50);
    world.nothing_for(Duration::from_secs(3_600)).await;
    for sender in senders {
        sender.stop().await;
    }
}

/// An outbox whose `done` fails this often.
#[derive(Debug)]
struct Forgetful {
    outbox: MemoryOutbox,
    failures: AtomicU32,
}

#[async_trait]
impl Outbox for Forgetful {
    async fn queue(&self, intent: MailIntent, now: Timestamp) -> Result<()> {
        self.outbox.queue(intent, now).await
    }

    async fn due(
        &self,
        holder: &Holder,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> Result<Vec<MailIntent>> {
        self.outbox.due(holder, now, until, limit).await
    }

    async fn forget(&self, to: &str, now: Timestamp) -> Result<u64> {
        self.outbox.forget(to, now).await
    }

    async fn waiting(&self) -> Result<u64> {
        self.outbox.waiting().await
    }

    async fn done(&self, id: &str, retry_at: Option<Timestamp>) -> Result<()> {
        let left = self.failures.try_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        match left {
            Ok(_) => Err(Error::unavailable("the store is away")),
            Err(_) => self.outbox.done(id, retry_at).await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_when_a_mail_is_done_is_told_again() {
    for (failures, copies) in [(3, 1), (10_000, 2)] {
        let outbox = Forgetful { outbox: MemoryOutbox::default(), failures: AtomicU32::new(failures) };
        let outbox = Arc::new(outbox);
        let mut world = World::over(Arc::clone(&outbox) as _, []);
        let _sender = world.start();
        world.queue("m1", "ann@example.org").await;
        world.taken().await;
        if copies == 2 {
            // It was never heard that the mail is done: its lease ends, and there is a second copy.
            world.taken().await;
            outbox.failures.store(0, Relaxed);
        }
        world.nothing_for(Duration::from_secs(86_400)).await;
    }
}

#[test]
fn pauses_grow_to_a_bound_and_end() {
    let seconds: Vec<u64> =
        (1..).map_while(|attempt| pause(attempt, Retry::Backoff)).map(|pause| pause.as_secs()).collect();
    assert_eq!(seconds, [15, 30, 60, 120, 240, 480, 960, 1_920, 3_600, 3_600, 3_600]);
    assert_eq!(pause(1, Retry::Never), None);
    assert_eq!(pause(1, Retry::After(Duration::from_secs(86_400))), Some(PAUSE_MAX));
    assert_eq!(pause(u32::MAX, Retry::Backoff), None);
    assert_eq!(pause(0, Retry::Backoff), Some(FIRST_PAUSE));
}
