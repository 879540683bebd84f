//! One client: it asks on and on, one thing at a time, and writes down what it gets.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client as HyperClient, connect::HttpConnector},
    rt::TokioExecutor,
};
use tokio::sync::watch;

use super::{
    Addresses,
    people::Person,
    record::{Record, Repeatable},
};
use crate::{server::harness::Reply, simulation::dice::Dice};

/// How long work that was begun by a server that died may stand in the way of its repeat: its lease, and some more.
const PATIENCE: Duration = Duration::from_secs(150);
/// How often a request is sent again at once whose server has died.
const ATTEMPTS: u32 = 200;
/// How long it waits in between: a server that has just died is not in the book yet as dead.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(10);
/// How long an answer may take. Whoever asks a server that has just died may reach somebody else who got its port, and who
/// never answers.
const ANSWERED: Duration = Duration::from_secs(60);
/// Less than what an answer holds stays held that nobody settles.
const HELD: Duration = Duration::from_secs(45);
/// How many repeats of answered requests each client makes at the end.
const REPEATS_MAX: usize = 60;

/// The videos that there are.
#[derive(Debug)]
pub(super) struct Stock {
    shelved: Vec<String>,
    fresh: Vec<String>,
    next: AtomicUsize,
}

impl Stock {
    pub(super) fn new(shelved: Vec<String>, fresh: Vec<String>) -> Self {
        Self { shelved, fresh, next: AtomicUsize::new(0) }
    }

    /// One that nobody has asked for before, while there are any.
    fn fresh(&self) -> &str {
        &self.fresh[self.next.fetch_add(1, Ordering::Relaxed) % self.fresh.len()]
    }

    /// One of the common ones: the first half are asked for with idempotency keys only, the rest without.
    fn shelved(&self, dice: &Dice, keyed: bool) -> &str {
        let half = self.shelved.len() / 2;
        dice.pick::<String>(if keyed { &self.shelved[..half] } else { &self.shelved[half..] })
    }
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// Nobody took the request.
    Unsent,
    /// The connection ended before the answer was whole.
    Midway,
}

fn http() -> &'static HyperClient<HttpConnector, Full<Bytes>> {
    static HTTP: OnceLock<HyperClient<HttpConnector, Full<Bytes>>> = OnceLock::new();
    HTTP.get_or_init(|| {
        // A connection belongs to the runtime of the test that opened it, so none is kept. And no request is
        // repeated by itself: each is written down.
        let mut builder = HyperClient::builder(TokioExecutor::new());
        builder.pool_max_idle_per_host(0).retry_canceled_requests(false);
        builder.build_http()
    })
}

/// Asks one server once.
pub(super) async fn ask(
    book: &Addresses,
    place: usize,
    key: &str,
    path: &str,
    idempotency_key: Option<&str>,
) -> Result<Reply, Cut> {
    let address = loop {
        match book.address(place) {
            Some(address) => break address,
            None => tokio::time::sleep(Duration::from_millis(2)).await,
        }
    };
    let mut request = Request::get(format!("http://{address}{path}"));
    request = request.header("authorization", format!("Bearer {key}"));
    if let Some(idempotency_key) = idempotency_key {
        request = request.header("idempotency-key", idempotency_key);
    }
    let request = request.body(Full::default()).expect("a sound request");
    let cut = |error: hyper_util::client::legacy::Error| match error.is_connect() {
        true => Cut::Unsent,
        false => Cut::Midway,
    };
    let answer = async {
        let (parts, body) = http().request(request).await.map_err(cut)?.into_parts();
        let body = body.collect().await.map_err(|_| Cut::Midway)?.to_bytes();
        Ok(Reply { status: parts.status, headers: parts.headers, body })
    };
    let answered = tokio::time::timeout(ANSWERED, answer).await;
    answered.unwrap_or_else(|_| {
        assert!(!book.has(&address), "a server that lives has not answered {path} for {ANSWERED:?}");
        Err(Cut::Midway)
    })
}

/// What a client has asked for with an idempotency key, and has no answer to yet.
#[derive(Clone, Debug)]
struct Open {
    path: String,
    video: String,
    /// A server could not end it.
    is_doubtful: bool,
    /// When it was first asked for.
    since: Instant,
}

/// What came of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempted {
    /// An answer, or a refusal for good.
    Over,
    /// The server died, or was not there.
    Cut,
    /// Another attempt is under way, or the store is away.
    NotYet,
}

/// A client with what it knows.
#[derive(Debug)]
pub(super) struct Client {
    me: Person,
    book: Addresses,
    stock: Arc<Stock>,
    dice: Dice,
    record: Record,
    /// By idempotency key.
    open: BTreeMap<String, Open>,
    asked: u64,
}

impl Client {
    pub(super) fn new(me: Person, book: Addresses, stock: Arc<Stock>, dice: Dice) -> Self {
        let record = Record { client: me.place, ..Record::default() };
        Self { me, book, stock, dice, record, open: BTreeMap::new(), asked: 0 }
    }

    /// Asks until it is told to stop, then brings to an end what is open.
    pub(super) async fn live(mut self, stopped: watch::Receiver<bool>) -> Result<Record> {
        while !*stopped.borrow() {
            match self.dice.below(10) {
                0..=2 => {
                    let video = self.stock.shelved(&self.dice, false).to_owned();
                    self.plain(&video).await?;
                }
                3 => {
                    let video = self.stock.fresh().to_owned();
                    self.plain(&video).await?;
                }
                4 | 5 => {
                    let video = self.stock.shelved(&self.dice, true).to_owned();
                    self.keyed(video).await?;
                }
                6 => {
                    let video = self.stock.fresh().to_owned();
                    self.keyed(video).await?;
                }
                7 => self.repeat_something().await?,
                8 => {
                    let video = self.stock.shelved(&self.dice, true).to_owned();
                    self.look_up(&video).await?;
                }
                _ => {
                    let video = self.stock.fresh().to_owned();
                    self.look_up(&video).await?;
                }
            }
        }
        self.end().await?;
        Ok(self.record)
    }

    async fn ask(&mut self, key: String, path: &str, idempotency_key: Option<&str>) -> Result<Reply, Cut> {
        self.asked += 1;
        let reply = ask(&self.book, self.dice.below(8) as usize, &key, path, idempotency_key).await;
        if reply.as_ref().err() == Some(&Cut::Midway) {
            self.record.cut += 1;
        }
        reply
    }

    async fn ask_account(&mut self, path: &str, idempotency_key: Option<&str>) -> Result<Reply, Cut> {
        self.ask(self.me.account_key.clone(), path, idempotency_key).await
    }

    /// For credits, without an idempotency key: what is cut off may have been charged, once.
    async fn plain(&mut self, video: &str) -> Result<()> {
        let reply = self.ask_account(&format!("/api/v1/transcript?video_id={video}"), None).await;
        match reply {
            Err(Cut::Unsent) => {}
            Err(Cut::Midway) => self.record.credit(video).perhaps += 1,
            Ok(reply) if reply.status == 200 => self.paid(video, &reply)?,
            Ok(reply) => {
                self.refused(&reply)?;
                self.record.loose += u64::from(reply.status != 402);
            }
        }
        Ok(())
    }

    /// A charged answer was delivered.
    fn paid(&mut self, video: &str, reply: &Reply) -> Result<()> {
        let text = reply.text();
        ensure!(text.contains(&format!("This is {video}.")), "other words for {video}: {text}");
        self.record.told.insert(video.to_owned());
        if reply.headers.get("x-credits-remaining").is_none() {
            // The server does not know itself whether it was paid: it gave the answer all the same.
            self.record.credit(video).perhaps += 1;
            return Ok(());
        }
        self.record.credit(video).sure += 1;
        let left: u64 = reply.header("x-credits-remaining").parse()?;
        // The least and the most that can be spent or held at this moment.
        let (least, most) = self.record.spent();
        let most = most + self.record.loose;
        let gone = self.me.credits.checked_sub(left);
        ensure!(
            gone.is_some_and(|gone| (least..=most).contains(&gone)),
            "client {}: {left} credits are left of {}, where {least} to {most} are gone",
            self.me.place,
            self.me.credits
        );
        Ok(())
    }

    /// Whoever is refused is charged nothing; and nobody is refused without a reason.
    fn refused(&self, reply: &Reply) -> Result<()> {
        match reply.status.as_u16() {
            402 => {
                let (_, most) = self.record.spent();
                let most = most + self.record.loose;
                ensure!(most >= self.me.credits, "refused with credits left: {}", reply.text());
            }
            // The store is away, or work goes on that somebody else began.
            404 | 409 | 500 | 503 => {}
            status => bail!("{status}: {}", reply.text()),
        }
        Ok(())
    }

    /// With an idempotency key: charged once in the end, however often it is asked.
    async fn keyed(&mut self, video: String) -> Result<()> {
        let key = format!("client-{}-{}", self.me.place, self.asked);
        let path = format!("/api/v1/transcript?video_id={video}");
        self.open.insert(key.clone(), Open { path, video, is_doubtful: false, since: Instant::now() });
        // At once again: what was stored and not yet paid is paid by its repeat, as long as it is held.
        for _ in 0..ATTEMPTS {
            if self.attempt(&key).await? != Attempted::Cut {
                break;
            }
            tokio::time::sleep(BETWEEN_ATTEMPTS).await;
        }
        Ok(())
    }

    /// Asks once for what is open.
    async fn attempt(&mut self, key: &str) -> Result<Attempted> {
        let Some(Open { path, video, is_doubtful, since }) = self.open.get(key).cloned() else {
            return Ok(Attempted::Over);
        };
        let reply = match self.ask_account(&path, Some(key)).await {
            Err(Cut::Unsent) => return Ok(Attempted::Cut),
            Err(Cut::Midway) => {
                self.record.loose += 1;
                return Ok(Attempted::Cut);
            }
            Ok(reply) => reply,
        };
        match reply.status.as_u16() {
            200 => {
                if reply.headers.contains_key("idempotent-replayed") {
                    // What is left is told as it was when the credit was held. A server that could not find out
                    // whether the answer was stored has given the credit back; and one that died between storing and
                    // settling held it for a minute.
                    let is_doubtful = is_doubtful || since.elapsed() > HELD;
                    let tally = self.record.credit(&video);
                    *(if is_doubtful { &mut tally.perhaps } else { &mut tally.sure }) += 1;
                    self.record.told.insert(video);
                } else {
                    self.paid(&video, &reply)?;
                }
                let body = reply.body.to_vec();
                self.record.repeatable.push(Repeatable { path, key: key.to_owned(), body });
            }
            status @ (409 | 500 | 503) => {
                self.record.loose += 1;
                if let Some(open) = self.open.get_mut(key) {
                    open.is_doubtful |= status != 409;
                }
                return Ok(Attempted::NotYet);
            }
            // Nothing was stored under the key, so it is as if it had never been used.
            _ => self.refused(&reply)?,
        }
        self.open.remove(key);
        Ok(Attempted::Over)
    }

    /// An earlier request once more: one without an answer, or one that was answered.
    async fn repeat_something(&mut self) -> Result<()> {
        let open: Vec<String> = self.open.keys().cloned().collect();
        if !open.is_empty() && self.dice.chance(500) {
            let key = self.dice.pick(&open).clone();
            return self.attempt(&key).await.map(|_| ());
        }
        if !self.record.repeatable.is_empty() {
            let known = self.dice.pick(&self.record.repeatable).clone();
            self.repeat(&known).await?;
        }
        Ok(())
    }

    /// The same again, which was answered: the same answer, to the byte. Whether it came.
    async fn repeat(&mut self, known: &Repeatable) -> Result<bool> {
        let Ok(reply) = self.ask_account(&known.path, Some(&known.key)).await else { return Ok(false) };
        if matches!(reply.status.as_u16(), 500 | 503) {
            return Ok(false);
        }
        ensure!(reply.status == 200, "an answered request was refused: {}", reply.text());
        ensure!(reply.header("idempotent-replayed") == "true", "{} was answered anew", known.key);
        ensure!(reply.body == known.body, "{} was answered in another way", known.key);
        self.record.replayed += 1;
        Ok(true)
    }

    /// For the allowance of look-ups: only what is new is charged.
    async fn look_up(&mut self, video: &str) -> Result<()> {
        let key = self.me.lookup_key.clone();
        match self.ask(key, &format!("/api/transcript?v={video}"), None).await {
            Err(Cut::Unsent) => {}
            Err(Cut::Midway) => self.record.lookup(video).perhaps += 1,
            Ok(reply) => {
                ensure!(reply.status == 200, "Surface A answers in-band: {} {}", reply.status, reply.text());
                let body = reply.json();
                if body["available"] == true {
                    let words = format!("This is {video}.");
                    ensure!(body["transcript"][0]["text"] == words, "other words for {video}");
                    self.record.told.insert(video.to_owned());
                    if body["fromCache"] == false {
                        self.record.lookup(video).sure += 1;
                    }
                } else if goes_on(body["failureMessage"].as_str().unwrap_or_default()) {
                    self.record.lookup(video).perhaps += 1;
                }
            }
        }
        Ok(())
    }

    /// Everything that is open is asked for until it is answered, and much that was answered once more.
    async fn end(&mut self) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        while let Some(key) = self.open.keys().next().cloned() {
            if self.attempt(&key).await? != Attempted::Over {
                ensure!(Instant::now() < until, "client {}: {key} was never answered", self.me.place);
                tokio::time::sleep(Duration::from_millis(250)).await;
            }
        }
        for known in self.record.repeatable.clone().iter().rev().take(REPEATS_MAX) {
            while !self.repeat(known).await? {
                ensure!(Instant::now() < until, "client {}: no repeat came", self.me.place);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        let me = self.figure("/api/v1/me", self.me.account_key.clone(), "credits_remaining").await?;
        let used = self.figure("/api/keys/me", self.me.lookup_key.clone(), "used").await?;
        self.record.at_the_end = (me, used);
        Ok(())
    }

    async fn figure(&mut self, path: &str, key: String, name: &str) -> Result<u64> {
        match self.ask(key, path, None).await {
            Ok(reply) => match reply.json()[name].as_u64() {
                Some(figure) => Ok(figure),
                None => bail!("no {name} in {}", reply.text()),
            },
            Err(cut) => bail!("{path}: {cut:?}"),
        }
    }
}

/// Whether the work goes on for whoever asks next: it may still be charged, once.
fn goes_on(message: &str) -> bool {
    ["still being transcribed", "took too long"].iter().any(|text| message.contains(text))
}
