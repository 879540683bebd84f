//! The gate that every storage call passes: it counts, delays, fails, crashes, and tells the oracle.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    time::Instant,
};
use transcript_core::Result;

use super::{
    oracle::Oracle,
    weather::{End, Fate, Weather},
};

/// The gate between an engine and its stores. It outlives the lives of the processes.
#[derive(Debug)]
pub(crate) struct Gate {
    state: Mutex<State>,
    /// Tells the driver that the process dies now.
    crash: Notify,
    /// Whether whoever comes this way has died: nothing that it still does reaches the stores, or anybody.
    ended: watch::Sender<bool>,
    oracle: Arc<Oracle>,
    diary: Arc<Diary>,
}

/// What all gates of a world have in common.
#[derive(Debug)]
struct Diary {
    /// What happened, line by line; none when nobody asked for it.
    trace: Mutex<Option<Vec<String>>>,
    /// How many calls were made.
    calls: AtomicU64,
}

#[derive(Debug)]
struct State {
    weather: Weather,
    calls: u64,
    /// Whether the call that is counted in `calls` met the weather's trouble.
    troubled: bool,
    crash_at: Option<CrashPoint>,
    /// The name of the latest call.
    last: &'static str,
    /// When the present life began, for the trace.
    began: Option<Instant>,
}

/// The storage call at which the process dies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrashPoint {
    /// The call's number.
    pub(crate) call: u64,
    /// Whether it took effect before the end.
    pub(crate) after_effect: bool,
}

impl Gate {
    pub(crate) fn new(oracle: Arc<Oracle>, weather: Weather, traced: bool) -> Self {
        let diary = Diary { trace: Mutex::new(traced.then(Vec::new)), calls: AtomicU64::new(0) };
        Self::of(oracle, weather, Arc::new(diary), None)
    }

    fn of(oracle: Arc<Oracle>, weather: Weather, diary: Arc<Diary>, began: Option<Instant>) -> Self {
        let state = State { weather, calls: 0, troubled: false, crash_at: None, last: "", began };
        let (crash, ended) = (Notify::new(), watch::Sender::new(false));
        Self { state: Mutex::new(state), crash, ended, oracle, diary }
    }

    /// Another gate to the same stores, with weather of its own: for one server of several.
    pub(crate) fn beside(&self, weather: Weather) -> Self {
        Self::of(Arc::clone(&self.oracle), weather, Arc::clone(&self.diary), self.state().began)
    }

    /// Whoever comes this way dies: its calls that are under way are never answered, and no other takes effect.
    pub(crate) fn end(&self) {
        self.ended.send_replace(true);
    }

    /// Waits until whoever comes this way has died.
    pub(crate) async fn ended(&self) {
        // The sender is ours, so it is there.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// How many calls were made, through all gates of the world.
    pub(crate) fn calls(&self) -> u64 {
        self.diary.calls.load(Ordering::Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the weather; calls are counted anew.
    pub(crate) fn set_weather(&self, weather: Weather) {
        let mut state = self.state();
        state.weather = weather;
        state.calls = 0;
        state.troubled = false;
    }

    /// Whether the planned trouble of the n-th call came.
    pub(crate) fn troubled(&self) -> bool {
        self.state().troubled
    }

    /// The name of the latest call.
    pub(crate) fn last_call(&self) -> &'static str {
        self.state().last
    }

    /// A life begins, and dies at this many storage calls from now, if at any.
    pub(crate) fn begin_life(&self, crash: Option<CrashPoint>) {
        let mut state = self.state();
        let calls = state.calls;
        state.crash_at = crash.map(|point| CrashPoint { call: calls + point.call, ..point });
        state.began = Some(Instant::now());
    }

    /// A life has ended: no time passes until the next one.
    pub(crate) fn end_life(&self) {
        self.state().began = None;
        self.trace(|| "a life has ended".to_owned());
    }

    /// Waits until a storage call kills the process.
    pub(crate) async fn crashed(&self) {
        self.crash.notified().await;
    }

    /// Adds a line to the trace.
    pub(crate) fn trace(&self, line: impl FnOnce() -> String) {
        let at = self.state().began.map_or(Duration::ZERO, |began| began.elapsed());
        if let Some(trace) = &mut *self.diary.trace.lock().unwrap_or_else(PoisonError::into_inner) {
            trace.push(format!("{:>10.3} {}", at.as_secs_f64(), line()));
        }
    }

    /// The trace so far, which begins anew.
    pub(crate) fn take_trace(&self) -> Vec<String> {
        let mut trace = self.diary.trace.lock().unwrap_or_else(PoisonError::into_inner);
        trace.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// One storage call. `told` hears of an effect before anyone else does.
    pub(crate) async fn pass<T: Send + 'static>(
        &self,
        call: &'static str,
        what: impl FnOnce() -> String + Send,
        work: impl Future<Output = Result<T>> + Send + 'static,
        told: impl FnOnce(&Oracle, &T) + Send + 'static,
    ) -> Result<T> {
        tokio::select! {
            biased;
            () = self.ended() => std::future::pending().await,
            result = self.pass_alive(call, what, work, told) => result,
        }
    }

    async fn pass_alive<T: Send + 'static>(
        &self,
        call: &'static str,
        what: impl FnOnce() -> String + Send,
        work: impl Future<Output = Result<T>> + Send + 'static,
        told: impl FnOnce(&Oracle, &T) + Send + 'static,
    ) -> Result<T> {
        let (number, fate, crash) = self.draw(call);
        self.trace(|| format!("#{number} {call} {} {fate:?}", what()));
        if crash.is_some_and(|point| !point.after_effect) {
            self.die().await;
        }
        let result = match fate.effect {
            true => {
                let (oracle, before) = (Arc::clone(&self.oracle), fate.before);
                let effect = async move {
                    wait(before).await;
                    let result = work.await;
                    if let Ok(value) = &result {
                        told(&oracle, value);
                        oracle.step(call);
                    }
                    result
                };
                Some(match fate.unstoppable && !fate.before.is_zero() {
                    true => tokio::spawn(effect).await.expect("a store in memory does not panic"),
                    false => effect.await,
                })
            }
            false => {
                wait(fate.before).await;
                None
            }
        };
        if crash.is_some() {
            self.die().await;
        }
        wait(fate.after).await;
        if !matches!(fate.end, End::Answer) {
            self.oracle.reach(format_args!("{call} fails {}", if fate.effect { "after" } else { "before" }));
        }
        match (fate.end, result) {
            (End::Answer, Some(result)) => {
                self.trace(|| format!("#{number} {}", if result.is_ok() { "done" } else { "refused" }));
                result
            }
            (End::Fault(error), _) => {
                self.trace(|| format!("#{number} failed"));
                Err(error)
            }
            (End::Hang, _) | (End::Answer, None) => std::future::pending().await,
        }
    }

    fn draw(&self, call: &'static str) -> (u64, Fate, Option<CrashPoint>) {
        self.diary.calls.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state();
        state.calls += 1;
        state.last = call;
        let number = state.calls;
        let fate = state.weather.fate(number, call);
        state.troubled |= !matches!(fate.end, End::Answer);
        let crash = state.crash_at.filter(|point| point.call == number);
        (number, fate, crash)
    }

    async fn die(&self) {
        self.trace(|| "the process dies".to_owned());
        self.crash.notify_one();
        std::future::pending().await
    }
}

/// Waits, without an await when there is nothing to wait for.
async fn wait(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}
