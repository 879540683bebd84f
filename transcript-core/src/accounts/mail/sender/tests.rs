//! Tests of the mail sender with in-memory stores and paused time.

mod outcomes;

use std::{
    collections::VecDeque,
    sync::{Mutex, atomic::AtomicU32, atomic::Ordering::Relaxed},
};

use async_trait::async_trait;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use super::*;
use crate::{
    Timestamp,
    accounts::{Order, OrderItem, OrderState, RedeemLinkRequest, mail::NotifyingOutbox},
    directory::{NewKeyRecord, RedeemOutcome, RedeemRequest},
    error::ErrorKind,
    ids::{AccountId, KeyId, OrderId, SessionId, WalletId},
    memory::{MemoryDirectory, MemoryOrders, MemoryOutbox, MemorySessions},
    test_doubles::{PausedClock, SequentialRandom},
};

/// Fault of the mail server for one mail.
#[derive(Debug)]
enum DeliveryFault {
    Fail(Retry),
    Stall,
    /// It accepts the mail, but its reply never arrives.
    AcceptAndStall,
    /// It accepts the mail, and replies after this time.
    AcceptAfter(Duration),
    Panic,
}

/// Accepts every mail, unless a fault is queued.
#[derive(Debug)]
struct FakeMailer {
    faults: Mutex<VecDeque<DeliveryFault>>,
    clock: Arc<PausedClock>,
    delivered: mpsc::UnboundedSender<(Timestamp, MailMessage)>,
}

#[async_trait]
impl Mailer for FakeMailer {
    async fn send(&self, mail: MailMessage) -> Result<()> {
        let next_fault = self.faults.lock().unwrap().pop_front();
        let deliver = |mail| self.delivered.send((self.clock.now(), mail)).unwrap();
        match next_fault {
            None => deliver(mail),
            Some(DeliveryFault::Fail(retry)) => {
                return Err(Error::new(ErrorKind::Unavailable, retry, "the server rejected the mail"));
            }
            Some(DeliveryFault::Stall) => std::future::pending().await,
            Some(DeliveryFault::AcceptAndStall) => {
                deliver(mail);
                std::future::pending().await
            }
            Some(DeliveryFault::AcceptAfter(time)) => {
                deliver(mail);
                tokio::time::sleep(time).await;
            }
            Some(DeliveryFault::Panic) => panic!("a mailer's defect"),
        }
        Ok(())
    }
}

struct SenderFixture {
    outbox: NotifyingOutbox,
    notifier: OutboxNotifier,
    directory: MemoryDirectory,
    deps: MailSenderDeps,
    mailer: Arc<FakeMailer>,
    delivered: mpsc::UnboundedReceiver<(Timestamp, MailMessage)>,
}

/// A running sender. Drop stops it at once.
struct RunningSender {
    stop: oneshot::Sender<()>,
    tasks: JoinSet<()>,
}

impl RunningSender {
    async fn stop(mut self) {
        drop(self.stop);
        self.tasks.join_next().await.unwrap().unwrap();
    }
}

impl SenderFixture {
    fn new(faults: impl IntoIterator<Item = DeliveryFault>) -> Self {
        Self::with_outbox(Arc::new(MemoryOutbox::default()), faults)
    }

    fn with_outbox(outbox: Arc<dyn Outbox>, faults: impl IntoIterator<Item = DeliveryFault>) -> Self {
        let (sender, delivered) = mpsc::unbounded_channel();
        let clock = Arc::new(PausedClock::new(Timestamp::from_millis(1_000_000)));
        let mailer = Arc::new(FakeMailer {
            faults: Mutex::new(faults.into_iter().collect()),
            clock: Arc::clone(&clock),
            delivered: sender,
        });
        let directory = MemoryDirectory::default();
        let notifier = OutboxNotifier::default();
        let outbox = NotifyingOutbox::new(outbox, notifier.clone());
        let deps = MailSenderDeps {
            outbox: Arc::new(outbox.clone()),
            directory: Arc::new(directory.clone()),
            orders: Arc::new(MemoryOrders::default()),
            sessions: Arc::new(MemorySessions::default()),
            mailer: Arc::clone(&mailer) as _,
            clock,
            random: Arc::new(SequentialRandom::default()),
            branding: MailBranding::default(),
        };
        Self { outbox, notifier, directory, deps, mailer, delivered }
    }

    fn start(&self) -> RunningSender {
        let (stop, stopped) = oneshot::channel::<()>();
        let sender = MailSender::new(self.deps.clone(), self.notifier.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(sender.run(async move { drop(stopped.await) }));
        RunningSender { stop, tasks }
    }

    async fn queue(&self, id: &str, to: &str) {
        self.queue_kind(id, MailKind::Verify, to).await;
    }

    async fn queue_kind(&self, id: &str, kind: MailKind, to: &str) {
        let (id, kind) = (id.to_owned(), kind.as_str().to_owned());
        let intent = MailIntent { id, kind, to: to.to_owned(), attempts: 0, language: None };
        self.outbox.queue(intent, self.deps.clock.now()).await.unwrap();
    }

    async fn delivered(&mut self) -> (Timestamp, MailMessage) {
        // Paused time passes when every task waits: a day is over at once.
        tokio::time::timeout(Duration::from_secs(86_400), self.delivered.recv()).await.unwrap().unwrap()
    }

    async fn expect_none_for(&mut self, time: Duration) {
        let delivered = tokio::time::timeout(time, self.delivered.recv()).await;
        assert!(delivered.is_err(), "{delivered:?}");
    }

    /// Opens the link of a mail.
    async fn redeem_link(&self, mail: &MailMessage, confirmed: bool, name: &str) -> RedeemOutcome {
        let token = token(mail);
        let now = self.deps.clock.now();
        let key = NewKeyRecord {
            id: KeyId::new(format!("key-{name}")),
            digest: Sha256::digest(name).to_vec(),
            hint: "vba_".to_owned(),
            now,
        };
        let redeem = RedeemRequest {
            digest: Sha256::digest(token.as_bytes()).to_vec(),
            confirmed,
            new_account: AccountId::new(name),
            new_wallet: WalletId::new(name),
            key,
        };
        self.directory.redeem(redeem).await.unwrap()
    }
}

fn token(mail: &MailMessage) -> String {
    let (_, rest) = mail.text.split_once("/api/v1/verify?token=").unwrap();
    rest.lines().next().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn mail_sender_queued_mail_is_sent_at_once_with_valid_token() {
    let mut fixture = SenderFixture::new([]);
    let _sender = fixture.start();
    // The sender sleeps now, and only the notifier can wake it early.
    fixture.expect_none_for(Duration::from_secs(5)).await;
    let queued_at = fixture.deps.clock.now();
    fixture.queue("m1", "ann@example.org").await;
    let (at, mail) = fixture.delivered().await;
    assert_eq!((at, mail.to.as_str()), (queued_at, "ann@example.org"));
    assert_eq!(token(&mail).len(), 64);
    assert!(mail.text.contains("confirm the address"), "{}", mail.text);
    let redeemed = fixture.redeem_link(&mail, false, "a").await;
    assert!(matches!(redeemed, RedeemOutcome::Issued { first: true, .. }), "{redeemed:?}");
    fixture.expect_none_for(Duration::from_secs(86_400)).await;
}

#[tokio::test(start_paused = true)]
async fn mail_sender_text_matches_account_state_at_send() {
    let mut fixture = SenderFixture::new([]);
    let sender = fixture.start();
    fixture.queue("m1", "ann@example.org").await;
    let (_, first) = fixture.delivered().await;
    fixture.redeem_link(&first, false, "a").await;
    // It was queued as `verify`, and there is an account now.
    fixture.queue("m2", "ann@example.org").await;
    let (_, second) = fixture.delivered().await;
    assert!(second.text.contains("request for a new API key"), "{}", second.text);
    assert_eq!(fixture.redeem_link(&second, false, "b").await, RedeemOutcome::NeedsConfirmation);
    sender.stop().await;
}

#[tokio::test(start_paused = true)]
async fn mail_sender_sign_in_mail_has_link_only_for_an_account() {
    let mut fixture = SenderFixture::new([]);
    let sender = fixture.start();
    fixture.queue_kind("m1", MailKind::SignIn, "ann@example.org").await;
    let (_, first) = fixture.delivered().await;
    assert!(first.text.contains("/api/v1/verify?token="), "an address without an account: {}", first.text);
    let RedeemOutcome::Issued { account, .. } = fixture.redeem_link(&first, false, "a").await else {
        panic!("the link creates the account");
    };
    fixture.queue_kind("m2", MailKind::SignIn, "ann@example.org").await;
    let (_, second) = fixture.delivered().await;
    let token: String =
        second.text.split("/sign-in/confirm?token=").nth(1).unwrap().chars().take(64).collect();
    let now = fixture.deps.clock.now();
    let request = |session: &str| RedeemLinkRequest {
        link: Sha256::digest(token.as_bytes()).to_vec(),
        digest: Sha256::digest(session).to_vec(),
        session: SessionId::new(session),
        device: String::new(),
        now,
        expires_at: now.plus(Duration::from_secs(60)),
        account_max: 1,
    };
    let opened = fixture.deps.sessions.redeem_link(request("s1")).await.unwrap();
    assert_eq!(opened.map(|session| session.account), Some(account.id));
    assert_eq!(fixture.deps.sessions.redeem_link(request("s2")).await.unwrap(), None);
    sender.stop().await;
}

#[tokio::test(start_paused = true)]
async fn mail_sender_receipt_names_order_and_price() {
    let mut fixture = SenderFixture::new([]);
    let order = Order {
        id: OrderId::new("order-7"),
        version: 1,
        account: AccountId::new("ann"),
        item: OrderItem::Pack("2k".to_owned()),
        credits: 2_000,
        amount_minor: 129_000,
        currency: "usd".to_owned(),
        state: OrderState::Open,
        payment: None,
        refunded_credits: Vec::new(),
        returned_minor: 0,
        // A credit at the provider paid the rest of the price.
        paid_minor: Some(123_405),
        language: None,
        created_at: fixture.deps.clock.now(),
    };
    fixture.deps.orders.open(order).await.unwrap();
    let sender = fixture.start();
    fixture.queue_kind("receipt-order-7", MailKind::Receipt, "ann@example.org").await;
    let (_, mail) = fixture.delivered().await;
    let text = mail.text.replace('\n', " ");
    for part in ["2,000 credits", "Price: $1,234.05.", "Order: order-7", "/account/orders/order-7"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    sender.stop().await;
}

#[tokio::test(start_paused = true)]
async fn mail_sender_transient_failure_is_retried_with_growing_pauses() {
    let after = Retry::After(Duration::from_secs(100));
    let faults = [Retry::Backoff, Retry::Backoff, after, Retry::Backoff].map(DeliveryFault::Fail);
    let mut fixture = SenderFixture::new(faults);
    let started_at = fixture.deps.clock.now();
    let _sender = fixture.start();
    fixture.queue("m1", "ann@example.org").await;
    let (at, _) = fixture.delivered().await;
    // 15 + 30 + 100 (requested) + 120 seconds, each noticed by the next poll.
    let elapsed = at.since(started_at).as_secs();
    assert!((265..=265 + 4 * POLL_INTERVAL.as_secs()).contains(&elapsed), "{elapsed}");
    fixture.expect_none_for(Duration::from_secs(86_400)).await;
}

#[tokio::test(start_paused = true)]
async fn mail_sender_permanent_failure_is_not_retried() {
    let mut fixture = SenderFixture::new([DeliveryFault::Fail(Retry::Never)]);
    let _sender = fixture.start();
    fixture.queue("m1", "bounce@example.org").await;
    fixture.expect_none_for(Duration::from_secs(86_400)).await;
    fixture.queue("m2", "ann@example.org").await;
    assert_eq!(fixture.delivered().await.1.to, "ann@example.org");
}

#[tokio::test(start_paused = true)]
async fn mail_sender_attempts_are_bounded() {
    let mut fixture = SenderFixture::new((0..100).map(|_| DeliveryFault::Fail(Retry::Backoff)));
    let _sender = fixture.start();
    fixture.queue("m1", "ann@example.org").await;
    fixture.expect_none_for(Duration::from_secs(7 * 86_400)).await;
    assert_eq!(fixture.mailer.faults.lock().unwrap().len(), 100 - ATTEMPTS_MAX as usize);
    // A mail whose sender dies each time is abandoned, too, without another attempt.
    let fixture = SenderFixture::new([]);
    fixture.queue("m1", "ann@example.org").await;
    for _ in 0..ATTEMPTS_MAX {
        let now = fixture.deps.clock.now();
        let leased = fixture.outbox.lease_due(now, now.plus(LEASE), 1).await.unwrap();
        assert_eq!(leased.len(), 1);
        tokio::time::advance(LEASE).await;
    }
    let mut fixture = fixture;
    let _sender = fixture.start();
    fixture.expect_none_for(Duration::from_secs(86_400)).await;
}

#[tokio::test(start_paused = true)]
async fn mail_sender_unknown_kind_is_abandoned() {
    let mut fixture = SenderFixture::new([]);
    let _sender = fixture.start();
    let intent = MailIntent {
        id: "m".to_owned(),
        kind: "newsletter".to_owned(),
        to: "ann@example.org".to_owned(),
        attempts: 0,
        language: None,
    };
    fixture.outbox.queue(intent, fixture.deps.clock.now()).await.unwrap();
    fixture.expect_none_for(Duration::from_secs(86_400)).await;
}

#[tokio::test(start_paused = true)]
async fn mail_sender_stalled_or_panicked_send_delays_no_other() {
    let mut fixture = SenderFixture::new([DeliveryFault::Stall, DeliveryFault::Panic]);
    let _sender = fixture.start();
    for id in ["stalls", "panics", "goes"] {
        fixture.queue(id, &format!("{id}@example.org")).await;
    }
    let started_at = fixture.deps.clock.now();
    let (at, mail) = fixture.delivered().await;
    assert_eq!((at, mail.to.as_str()), (started_at, "goes@example.org"));
    // The stalled mail is retried after its timeout, the other one when its lease expires.
    let (at, mail) = fixture.delivered().await;
    let elapsed = at.since(started_at);
    assert_eq!(mail.to, "stalls@example.org");
    assert!(
        elapsed >= SEND_TIMEOUT + FIRST_PAUSE && elapsed <= SEND_TIMEOUT + FIRST_PAUSE + POLL_INTERVAL,
        "{elapsed:?}"
    );
    let (at, mail) = fixture.delivered().await;
    let elapsed = at.since(started_at);
    assert_eq!(mail.to, "panics@example.org");
    assert!(elapsed >= LEASE && elapsed <= LEASE + POLL_INTERVAL, "{elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn mail_sender_crash_loses_no_mail_and_each_token_works() {
    let mut fixture = SenderFixture::new([DeliveryFault::AcceptAndStall]);
    let sender = fixture.start();
    fixture.queue("m1", "ann@example.org").await;
    let (crashed_at, first) = fixture.delivered().await;
    drop(sender);
    let _next = fixture.start();
    let (at, second) = fixture.delivered().await;
    let elapsed = at.since(crashed_at);
    assert!(elapsed >= LEASE && elapsed <= LEASE + POLL_INTERVAL, "{elapsed:?}");
    assert_ne!(token(&first), token(&second));
    // Both are valid; using one revokes the other.
    assert!(matches!(fixture.redeem_link(&first, false, "a").await, RedeemOutcome::Issued { .. }));
    assert_eq!(fixture.redeem_link(&second, true, "b").await, RedeemOutcome::Invalid);
    fixture.expect_none_for(Duration::from_secs(86_400)).await;
}

#[tokio::test(start_paused = true)]
async fn mail_sender_stop_waits_for_sends_and_leases_no_more() {
    let time = Duration::from_secs(25);
    let mut fixture = SenderFixture::new([DeliveryFault::AcceptAfter(time)]);
    let sender = fixture.start();
    fixture.queue("m1", "ann@example.org").await;
    fixture.delivered().await;
    let started_at = fixture.deps.clock.now();
    sender.stop().await;
    assert_eq!(fixture.deps.clock.now().since(started_at), time, "the send in progress had its time");
    fixture.queue("m2", "ben@example.org").await;
    fixture.expect_none_for(Duration::from_secs(86_400)).await;
    // The outcome of the first one was stored.
    let _next = fixture.start();
    assert_eq!(fixture.delivered().await.1.to, "ben@example.org");
    fixture.expect_none_for(Duration::from_secs(86_400)).await;
}

#[tokio::test(start_paused = true)]
async fn mail_sender_hanging_mailer_blocks_stop_until_timeout() {
    let mut fixture = SenderFixture::new([DeliveryFault::AcceptAndStall]);
    let sender = fixture.start();
    fixture.queue("m1", "ann@example.org").await;
    fixture.delivered().await;
    let started_at = fixture.deps.clock.now();
    sender.stop().await;
    assert_eq!(fixture.deps.clock.now().since(started_at), STOP_TIMEOUT);
    // The mail is sent again when its lease expires.
    let _next = fixture.start();
    let (at, _) = fixture.delivered().await;
    let elapsed = at.since(started_at);
    assert!(elapsed >= LEASE && elapsed <= LEASE + POLL_INTERVAL, "{elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn mail_sender_concurrent_senders_send_each_mail_once() {
    let mut fixture = SenderFixture::new([]);
    let senders = [fixture.start(), fixture.start(), fixture.start()];
    for n in 0..50 {
        fixture.queue(&format!("m{n}"), &format!("{n}@example.org")).await;
    }
    let mut to = Vec::new();
    for _ in 0..50 {
        to.push(fixture.delivered().await.1.to);
    }
    to.sort();
    to.dedup();
    assert_eq!(to.len(), 50);
    fixture.expect_none_for(Duration::from_secs(3_600)).await;
    for sender in senders {
        sender.stop().await;
    }
}

#[test]
fn mail_sender_pauses_grow_to_bound_and_end() {
    let seconds: Vec<u64> =
        (1..).map_while(|attempt| pause(attempt, Retry::Backoff)).map(|pause| pause.as_secs()).collect();
    assert_eq!(seconds, [15, 30, 60, 120, 240, 480, 960, 1_920, 3_600, 3_600, 3_600]);
    assert_eq!(pause(1, Retry::Never), None);
    assert_eq!(pause(1, Retry::After(Duration::from_secs(86_400))), Some(RETRY_PAUSE_MAX));
    assert_eq!(pause(u32::MAX, Retry::Backoff), None);
    assert_eq!(pause(0, Retry::Backoff), Some(FIRST_PAUSE));
}
