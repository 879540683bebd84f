//! The gate of every storage call: it counts, delays, fails and crashes calls, and informs the oracle.

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
    fault_plan::{CallFault, CallResult, FaultPlan},
    oracle::Oracle,
};

/// The gate between an engine and its stores. It outlives the simulated processes.
#[derive(Debug)]
pub(crate) struct StoreGate {
    state: Mutex<GateState>,
    /// Notifies the driver that the process crashes now.
    crash: Notify,
    /// Whether the server behind this gate was killed: its calls then have no effect and no result.
    killed: watch::Sender<bool>,
    oracle: Arc<Oracle>,
    log: Arc<GateLog>,
}

/// Shared state of all gates of a world.
#[derive(Debug)]
struct GateLog {
    /// One line per event; `None` when tracing is off.
    trace: Mutex<Option<Vec<String>>>,
    /// Number of calls.
    calls: AtomicU64,
}

#[derive(Debug)]
struct GateState {
    faults: FaultPlan,
    calls: u64,
    /// Whether a planned fault was injected.
    fault_injected: bool,
    crash_at: Option<CrashPoint>,
    /// The name of the latest call.
    last: &'static str,
    /// Start of the current life, for the trace.
    started_at: Option<Instant>,
}

/// The storage call at which the process crashes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrashPoint {
    /// The number of the call.
    pub(crate) call: u64,
    /// Whether the call takes effect before the crash.
    pub(crate) after_effect: bool,
}

impl StoreGate {
    pub(crate) fn new(oracle: Arc<Oracle>, faults: FaultPlan, traced: bool) -> Self {
        let log = GateLog { trace: Mutex::new(traced.then(Vec::new)), calls: AtomicU64::new(0) };
        Self::with_log(oracle, faults, Arc::new(log), None)
    }

    fn with_log(
        oracle: Arc<Oracle>,
        faults: FaultPlan,
        log: Arc<GateLog>,
        started_at: Option<Instant>,
    ) -> Self {
        let state =
            GateState { faults, calls: 0, fault_injected: false, crash_at: None, last: "", started_at };
        let (crash, killed) = (Notify::new(), watch::Sender::new(false));
        Self { state: Mutex::new(state), crash, killed, oracle, log }
    }

    /// Another gate to the same stores with its own fault plan: for one of several servers.
    pub(crate) fn for_server(&self, faults: FaultPlan) -> Self {
        Self::with_log(Arc::clone(&self.oracle), faults, Arc::clone(&self.log), self.state().started_at)
    }

    /// Kills the server behind this gate: pending calls never return, and later ones have no effect.
    pub(crate) fn kill(&self) {
        self.killed.send_replace(true);
    }

    /// Waits until the server behind this gate was killed.
    pub(crate) async fn killed(&self) {
        // The sender lives as long as `self`.
        let _ = self.killed.subscribe().wait_for(|killed| *killed).await;
    }

    /// Number of calls through all gates of the world.
    pub(crate) fn calls(&self) -> u64 {
        self.log.calls.load(Ordering::Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the fault plan and resets the call counter.
    pub(crate) fn set_faults(&self, faults: FaultPlan) {
        let mut state = self.state();
        state.faults = faults;
        state.calls = 0;
        state.fault_injected = false;
    }

    /// Whether the planned fault of the n-th call was injected.
    pub(crate) fn fault_injected(&self) -> bool {
        self.state().fault_injected
    }

    /// The name of the latest call.
    pub(crate) fn last_call(&self) -> &'static str {
        self.state().last
    }

    /// Starts a life, with a crash at the given storage call from now, if any.
    pub(crate) fn begin_life(&self, crash: Option<CrashPoint>) {
        let mut state = self.state();
        let calls = state.calls;
        state.crash_at = crash.map(|point| CrashPoint { call: calls + point.call, ..point });
        state.started_at = Some(Instant::now());
    }

    /// Ends a life; no time passes until the next one.
    pub(crate) fn end_life(&self) {
        self.state().started_at = None;
        self.trace(|| "a life has ended".to_owned());
    }

    /// Waits until a storage call crashes the process.
    pub(crate) async fn crashed(&self) {
        self.crash.notified().await;
    }

    /// Adds a line to the trace.
    pub(crate) fn trace(&self, line: impl FnOnce() -> String) {
        let at = self.state().started_at.map_or(Duration::ZERO, |started_at| started_at.elapsed());
        if let Some(trace) = &mut *self.log.trace.lock().unwrap_or_else(PoisonError::into_inner) {
            trace.push(format!("{:>10.3} {}", at.as_secs_f64(), line()));
        }
    }

    /// Removes and returns the trace so far.
    pub(crate) fn take_trace(&self) -> Vec<String> {
        let mut trace = self.log.trace.lock().unwrap_or_else(PoisonError::into_inner);
        trace.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Performs one storage call. `on_effect` receives the effect before the caller does.
    pub(crate) async fn pass<T: Send + 'static>(
        &self,
        call: &'static str,
        what: impl FnOnce() -> String + Send,
        work: impl Future<Output = Result<T>> + Send + 'static,
        on_effect: impl FnOnce(&Oracle, &T) + Send + 'static,
    ) -> Result<T> {
        tokio::select! {
            biased;
            () = self.killed() => std::future::pending().await,
            result = self.pass_alive(call, what, work, on_effect) => result,
        }
    }

    async fn pass_alive<T: Send + 'static>(
        &self,
        call: &'static str,
        what: impl FnOnce() -> String + Send,
        work: impl Future<Output = Result<T>> + Send + 'static,
        on_effect: impl FnOnce(&Oracle, &T) + Send + 'static,
    ) -> Result<T> {
        let (number, call_fault, crash) = self.draw(call);
        self.trace(|| format!("#{number} {call} {} {call_fault:?}", what()));
        if crash.is_some_and(|point| !point.after_effect) {
            self.die().await;
        }
        let result = match call_fault.effect {
            true => {
                let (oracle, before) = (Arc::clone(&self.oracle), call_fault.before);
                let effect = async move {
                    wait(before).await;
                    let result = work.await;
                    if let Ok(value) = &result {
                        on_effect(&oracle, value);
                        oracle.step(call);
                    }
                    result
                };
                Some(match call_fault.unstoppable && !call_fault.before.is_zero() {
                    true => tokio::spawn(effect).await.expect("a memory store must not panic"),
                    false => effect.await,
                })
            }
            false => {
                wait(call_fault.before).await;
                None
            }
        };
        if crash.is_some() {
            self.die().await;
        }
        wait(call_fault.after).await;
        if !matches!(call_fault.end, CallResult::Answer) {
            self.oracle
                .reach(format_args!("{call} fails {}", if call_fault.effect { "after" } else { "before" }));
        }
        match (call_fault.end, result) {
            (CallResult::Answer, Some(result)) => {
                self.trace(|| format!("#{number} {}", if result.is_ok() { "done" } else { "refused" }));
                result
            }
            (CallResult::Fault(error), _) => {
                self.trace(|| format!("#{number} failed"));
                Err(error)
            }
            (CallResult::Hang, _) | (CallResult::Answer, None) => std::future::pending().await,
        }
    }

    fn draw(&self, call: &'static str) -> (u64, CallFault, Option<CrashPoint>) {
        self.log.calls.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state();
        state.calls += 1;
        state.last = call;
        let number = state.calls;
        let call_fault = state.faults.call_fault(number, call);
        state.fault_injected |= !matches!(call_fault.end, CallResult::Answer);
        let crash = state.crash_at.filter(|point| point.call == number);
        (number, call_fault, crash)
    }

    async fn die(&self) {
        self.trace(|| "the process crashes".to_owned());
        self.crash.notify_one();
        std::future::pending().await
    }
}

/// Sleeps; a zero duration does not yield to the runtime.
async fn wait(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}
