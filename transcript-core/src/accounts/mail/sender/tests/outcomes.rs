//! What the outbox and the observer receive at the end of an attempt.

use super::*;

/// An outbox whose first `failures` calls of `finish` fail.
#[derive(Debug)]
struct FailingOutbox {
    outbox: MemoryOutbox,
    failures: AtomicU32,
}

#[async_trait]
impl Outbox for FailingOutbox {
    async fn queue(&self, intent: MailIntent, now: Timestamp) -> Result<()> {
        self.outbox.queue(intent, now).await
    }

    async fn lease_due(&self, now: Timestamp, expires_at: Timestamp, limit: u32) -> Result<Vec<MailIntent>> {
        self.outbox.lease_due(now, expires_at, limit).await
    }

    async fn cancel_for_address(&self, to: &str, now: Timestamp) -> Result<u64> {
        self.outbox.cancel_for_address(to, now).await
    }

    async fn count_waiting(&self) -> Result<u64> {
        self.outbox.count_waiting().await
    }

    async fn finish(&self, id: &str, retry_at: Option<Timestamp>) -> Result<()> {
        let left = self.failures.try_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        match left {
            Ok(_) => Err(Error::unavailable("the store is unavailable")),
            Err(_) => self.outbox.finish(id, retry_at).await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn mail_sender_done_store_failure_is_retried() {
    for (failures, copies) in [(3, 1), (10_000, 2)] {
        let outbox = FailingOutbox { outbox: MemoryOutbox::default(), failures: AtomicU32::new(failures) };
        let outbox = Arc::new(outbox);
        let mut fixture = SenderFixture::with_outbox(Arc::clone(&outbox) as _, []);
        let _sender = fixture.start();
        fixture.queue("m1", "ann@example.org").await;
        fixture.delivered().await;
        if copies == 2 {
            // The outbox never stored that the mail is done: its lease expires, and there is a second copy.
            fixture.delivered().await;
            outbox.failures.store(0, Relaxed);
        }
        fixture.expect_none_for(Duration::from_secs(86_400)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn mail_sender_observer_receives_each_result() {
    use MailResult::{Abandoned, Failed, Sent};
    let retried = DeliveryFault::Fail(Retry::Backoff);
    let fixture = SenderFixture::new([DeliveryFault::Fail(Retry::Never), retried]);
    let (results, mut observed) = mpsc::unbounded_channel();
    let observer: MailObserver = Arc::new(move |result| results.send(result).unwrap());
    let sender = MailSender::new(fixture.deps.clone(), fixture.notifier.clone()).with_observer(observer);
    let _running = JoinSet::from_iter([sender.run(std::future::pending())]);
    fixture.queue("m1", "bounce@example.org").await;
    assert_eq!(observed.recv().await, Some(Abandoned));
    fixture.queue("m2", "ann@example.org").await;
    assert_eq!([observed.recv().await, observed.recv().await], [Some(Failed), Some(Sent)]);
    fixture.mailer.faults.lock().unwrap().extend((0..100).map(|_| DeliveryFault::Fail(Retry::Backoff)));
    fixture.queue("m3", "ben@example.org").await;
    for attempt in 1..=ATTEMPTS_MAX {
        let expect = if attempt < ATTEMPTS_MAX { Failed } else { Abandoned };
        assert_eq!(observed.recv().await, Some(expect), "attempt {attempt}");
    }
}
