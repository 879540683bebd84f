//! `verbatim serve`: the service over HTTP.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::middleware::{from_fn, from_fn_with_state};
#[cfg(feature = "otel")]
use tokio::runtime::Handle;
use tokio::{net::TcpListener, task::AbortHandle};
use transcript_core::{accounts::mail::RunningSender, video::Platform};
use verbatim::{Options, RunningSweep, Verbatim};

use super::{Failure, print};
#[cfg(feature = "otel")]
use crate::traces;
use crate::{
    config::Settings,
    http::{self, Bounds, Front, signalled},
    log::{self, Log},
    mail,
    metrics::{self, Metrics, Sources},
    ready::{self, Readiness},
    routes::{App, asked_by_server, router},
    wiring,
};

/// How long what was begun may take to be archived and settled once the server has stopped answering.
const DRAIN: Duration = Duration::from_secs(60);
/// How long a mail that is on its way may take to get there: it is sent again when it is cut off.
const MAIL_DRAIN: Duration = Duration::from_secs(10);
/// How much longer than a request waits for a transcript its connection lives on after the signal.
const GRACE_BEYOND_WAIT: Duration = Duration::from_secs(5);

/// Serves until it is told to stop.
pub(super) async fn run(settings: Settings) -> Result<(), Failure> {
    keep_a_little_memory();
    metrics::began();
    #[cfg(feature = "otel")]
    let (traces, tracer) = traces::start(&settings.log, Handle::current()).map_err(Failure::Fault)?.unzip();
    let log = log::start(
        &settings.log,
        #[cfg(feature = "otel")]
        tracer,
    );
    // From here on a signal is heard, also while the storage is being opened.
    let stop = signalled().map_err(|error| Failure::Fault(format!("signals cannot be heard: {error}")))?;
    let (listener, address) = bind(settings.server.listen).await?;
    let figures = match settings.log.metrics {
        Some(wanted) => Some(bind(wanted).await?),
        None => None,
    };
    let base_url = settings.server.base_url_at(address);
    let mailer = mail::mailer(&settings)?;
    let metrics = expecting(&settings);
    let options = wiring::options(&settings, base_url)?;
    let verbatim = Verbatim::open(Options { observer: Some(Arc::clone(&metrics) as _), ..options }).await?;
    let (sender, sweep) = (verbatim.start_mail(mailer), verbatim.start_sweep());
    warn(&settings);
    let app = App::new(
        verbatim.lookup().clone(),
        verbatim.accounts().clone(),
        verbatim.chat().clone(),
        verbatim.payments().clone(),
        verbatim.sandbox().cloned(),
    );
    let routes = router(app.clone(), &settings.server.cors_origins);
    let readiness = Readiness::new(verbatim.clone());
    let routes = routes.layer(from_fn_with_state(verbatim.clone(), asked_by_server));
    let routes = routes.merge(ready::router(Arc::clone(&readiness))).layer(from_fn(metrics::matched));
    let front = Front::new(routes, settings.server.trusted_proxies.clone(), log.log());
    let front = front.with_ready(app.clone()).with_metrics(Arc::clone(&metrics));
    let seen = Arc::clone(&readiness);
    let sources = Sources { metrics, verbatim: verbatim.clone(), app, readiness: seen, log: log.log() };
    let figures = figures.map(|bound| tell_figures(bound, sources, &log.log()));
    let line = format!("verbatim {} listening on http://{address}\n", env!("CARGO_PKG_VERSION"));
    // Whoever started the server need not read it.
    if print(&line).is_err() {
        tracing::warn!("standard output is closed; {}", line.trim_end());
    }
    let delay = settings.server.stop_delay;
    let stop = async move {
        stop.await;
        readiness.stop();
        tokio::time::sleep(delay).await;
    };
    http::serve(listener, front, bounds(&settings), stop).await;
    end(&verbatim, sender, sweep).await;
    if let Some(figures) = figures {
        figures.abort();
    }
    tracing::info!("stopped");
    #[cfg(feature = "otel")]
    if let Some(traces) = traces {
        traces.stop().await;
    }
    drop(log);
    Ok(())
}

async fn bind(wanted: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    let listener = TcpListener::bind(wanted).await.map_err(|error| cannot_listen(wanted, &error))?;
    let address = listener.local_addr().map_err(|error| cannot_listen(wanted, &error))?;
    Ok((listener, address))
}

/// Tells what an operator should know of the settings.
fn warn(settings: &Settings) {
    let given_away = settings.sandbox_warning();
    for warning in settings.warnings() {
        match given_away.as_ref() == Some(&warning) {
            true => tracing::warn!("{warning}"),
            false => tracing::info!("{warning}"),
        }
    }
}

fn bounds(settings: &Settings) -> Bounds {
    // An answer of a model may take longer than a transcript is waited for.
    let longest = match settings.chat.model {
        Some(_) => settings.limits.wait.max(settings.chat.timeout),
        None => settings.limits.wait,
    };
    Bounds { grace: longest + GRACE_BEYOND_WAIT, ..Bounds::default() }
}

/// Ends what runs beside the requests, once these have ended.
async fn end(verbatim: &Verbatim, sender: RunningSender, sweep: Option<RunningSweep>) {
    if let Some(sweep) = sweep {
        sweep.stop().await;
    }
    if tokio::time::timeout(MAIL_DRAIN, sender.stop()).await.is_err() {
        tracing::warn!("a mail that was on its way was cut off; it is sent again after the next start");
    }
    if tokio::time::timeout(DRAIN, verbatim.close()).await.is_err() {
        tracing::warn!(
            "work that was under way did not end in time; its leases and holds expire by themselves"
        );
    }
}

/// Nothing counted yet, of the suppliers that are configured.
fn expecting(settings: &Settings) -> Arc<Metrics> {
    let metrics = Metrics::default();
    for platform in Platform::ALL {
        for supplier in settings.suppliers.of(platform) {
            metrics.expect(supplier.as_str(), platform);
        }
    }
    Arc::new(metrics)
}

/// Serves the figures until the returned task is aborted, also while the server stops: it tells so.
fn tell_figures((listener, address): (TcpListener, SocketAddr), sources: Sources, log: &Log) -> AbortHandle {
    tracing::info!("figures for Prometheus are at http://{address}/metrics");
    let (routes, log) = (metrics::router(sources), log.clone());
    let serve = async move { metrics::serve(listener, routes, &log, std::future::pending()).await };
    tokio::spawn(serve).abort_handle()
}

/// The bodies of one statement are half a megabyte. glibc gives as much back to the system whenever it is free,
/// and asks for it again for the next statement, page by page. From a larger block that was given back it
/// learns to keep twice that. To other allocators this says nothing.
fn keep_a_little_memory() {
    const BLOCK: usize = 1 << 20;
    drop(std::hint::black_box(vec![0_u8; BLOCK]));
}

fn cannot_listen(address: SocketAddr, error: &io::Error) -> Failure {
    let why = match error.kind() {
        io::ErrorKind::AddrInUse => "another program listens there already".to_owned(),
        io::ErrorKind::PermissionDenied => "this user may not listen there".to_owned(),
        io::ErrorKind::AddrNotAvailable => "this machine has no such address".to_owned(),
        _ => error.to_string(),
    };
    Failure::Fault(format!("cannot listen at {address}: {why}"))
}
