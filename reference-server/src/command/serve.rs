//! `verbatim serve`: the server.

use std::{
    io::{self, IsTerminal},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
#[cfg(feature = "otel")]
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinHandle};
use transcript_core::{
    Error, ErrorKind, Retry,
    accounts::mail::Mailer,
    retry::{Backoff, RetryPolicy, retry},
    video::Platform,
};
use verbatim::{JobHandle, Options, StorageOptions, Verbatim};

use super::{
    CommandError, default_data, operations, print,
    reload::SettingsReloader,
    service_builder::{AdminServiceBuilder, MetricsServiceBuilder, ServiceBuilder},
};
#[cfg(feature = "otel")]
use crate::traces;
use crate::{
    background,
    config::{FileMode, ListenAddress, OUTBOX_FOLDER, SearchAccess, SettingSources, Settings},
    log::{self, LogQueue},
    mail,
    metrics::{self, Metrics, MetricsSources},
    page::site::Site,
    response_cache::{ResponseCacheOptions, SharedCaching},
    routes::Readiness,
    serve::{
        self, ConnectionLimits, ControlSignals, CurrentService, Listener, StallTimeouts, connections_within,
        raise_file_limit, shutdown_signal,
    },
};

/// How long the stop waits until running fetches are archived and settled.
const DRAIN: Duration = Duration::from_secs(60);
/// How long the stop waits for a mail in transit; an interrupted mail is sent again.
const MAIL_DRAIN: Duration = Duration::from_secs(10);
/// How long the stop waits for operations of the admin API whose callers have disconnected.
const OPERATION_DRAIN: Duration = Duration::from_secs(10);
/// Grace of connections after the signal, in addition to the longest wait of a request.
const GRACE_BEYOND_WAIT: Duration = Duration::from_secs(5);

/// Serves until the stop signal.
pub(super) async fn run(settings: Settings, sources: SettingSources) -> Result<(), CommandError> {
    raise_trim_threshold();
    metrics::start_time();
    // From here on signals are handled, also while the storage opens.
    let no_signals = |error| CommandError::Fault(format!("cannot handle signals: {error}"));
    let (stop, control) =
        (shutdown_signal().map_err(no_signals)?, ControlSignals::new().map_err(no_signals)?);
    #[cfg(feature = "otel")]
    let (traces, tracer) =
        traces::start(&settings.log, Handle::current()).map_err(CommandError::Fault)?.unzip();
    let (log, log_level) = log::start(
        &settings.log,
        #[cfg(feature = "otel")]
        tracer,
    );
    let (listener, listen) = bind(&settings.server.listen, settings.server.socket_mode).await?;
    let address = listen.socket_address();
    let metrics_listener = bind_optional(settings.log.metrics).await?;
    let admin_listener = bind_optional(settings.server.admin.map(|address| address.0)).await?;
    let base_url = settings.server.base_url_at(address);
    let mailer = mail::mailer(&settings)?;
    let metrics = new_metrics(&settings);
    let options = settings.options(&base_url)?;
    let options = Options { observer: Some(Arc::clone(&metrics) as _), ..options };
    let mut stop = Box::pin(stop);
    let verbatim = tokio::select! {
        opened = open_when_reachable(options, settings.storage.start_timeout) => {
            opened.map_err(|error| settings.with_origin(error))?
        }
        () = &mut stop => return Ok(()),
    };
    let jobs = BackgroundJobs::start(&settings, &verbatim, &metrics, mailer)?;
    log_warnings(&settings, &verbatim).await;
    let limits = connection_limits(&settings);
    let builder = service_builder(address, &settings, &verbatim, &metrics, &log.log());
    let service = CurrentService::new(builder.build(&settings.server, &verbatim));
    let stop = delayed_stop(stop, &builder.readiness, settings.server.stop_delay);
    let (metrics_service, metrics_task) =
        metrics_listener.map(|bound| serve_metrics(bound, &builder, &verbatim, &settings)).unzip();
    let admin_stop = (stop.clone(), limits.grace);
    let (admin_service, admin_task) =
        admin_listener.map(|bound| serve_admin(bound, &builder, &verbatim, &settings, admin_stop)).unzip();
    let (verbatim_handle, current) = (verbatim.clone(), service.clone());
    let first_steps = first_steps(&base_url, &sources);
    let reloader = SettingsReloader {
        sources,
        settings,
        base_url,
        verbatim: verbatim_handle,
        builder,
        service: current,
        metrics_service,
        admin_service,
        log_level,
        metrics,
    };
    let reloads = tokio::spawn(reloader.run(control)).abort_handle();
    print_address(&listen, &first_steps);
    serve::serve(listener, service, limits, stop).await;
    shut_down(&verbatim, jobs, admin_task).await;
    [Some(reloads), metrics_task].iter().flatten().for_each(AbortHandle::abort);
    tracing::info!("stopped");
    #[cfg(feature = "otel")]
    if let Some(traces) = traces {
        traces.stop().await;
    }
    drop(log);
    Ok(())
}

/// Resolves when the listeners must refuse connections: `delay` after the stop signal.
fn delayed_stop(
    signal: impl Future<Output = ()> + Send + 'static,
    readiness: &Arc<Readiness>,
    delay: Duration,
) -> Shared<BoxFuture<'static, ()>> {
    let readiness = Arc::clone(readiness);
    let stop = async move {
        signal.await;
        readiness.stop();
        tokio::time::sleep(delay).await;
    };
    stop.boxed().shared()
}

/// Opens the stores, and waits at most `timeout` for database servers that cannot be reached yet.
async fn open_when_reachable(options: Options, timeout: Duration) -> Result<Verbatim, Error> {
    let is_remote = matches!(options.storage, StorageOptions::Postgres { .. });
    let policy = RetryPolicy {
        tries: u32::MAX,
        deadline: is_remote.then(|| tokio::time::Instant::now() + timeout),
        backoff: Backoff { first: Duration::from_millis(200), max: Duration::from_secs(2) },
    };
    let judge = |attempt, error: &Error| {
        if !is_remote || error.kind() != ErrorKind::Unavailable {
            return Retry::Never;
        }
        if attempt == 0 {
            tracing::warn!(%error, "waiting for the database");
        }
        Retry::Backoff
    };
    retry(policy, || 1.0, judge, |_| Verbatim::open(options.clone())).await
}

/// Jobs that run until the stop.
struct BackgroundJobs {
    mail: JobHandle,
    /// Jobs of accounts and their webhooks; payments, purges of shared caches, and compaction, as far as they are
    /// configured.
    others: Vec<JobHandle>,
}

impl BackgroundJobs {
    /// Starts the mail sender, and what else is configured.
    fn start(
        settings: &Settings,
        verbatim: &Verbatim,
        metrics: &Arc<Metrics>,
        mailer: Arc<dyn Mailer>,
    ) -> Result<Self, CommandError> {
        let hook = settings.cdn.purge_hook(settings.options.upstream.ca_file.clone());
        let counters = Arc::clone(metrics);
        let observer = Arc::new(move |videos, is_done| counters.count_purges(videos, is_done));
        let purges = hook.map(|hook| verbatim.start_purges(&hook, observer)).transpose()?;
        let compaction = settings.storage.compact_after.map(|age| {
            let counters = Arc::clone(metrics);
            verbatim.start_compaction(age, Arc::new(move |outcome| counters.count_compaction(outcome)))
        });
        let has_search = settings.server.search_access() != SearchAccess::Off;
        let ca_file = settings.options.upstream.ca_file.as_deref();
        let mut others = background::start(verbatim, metrics, ca_file, has_search)?;
        others.extend(purges.into_iter().chain(compaction));
        let languages = mail::mail_texts(&Site::from(&settings.pages).languages);
        Ok(Self { mail: background::start_mail(verbatim, metrics, languages, mailer), others })
    }
}

/// Prints the address once the server serves; on a terminal also the first steps.
fn print_address(address: &ListenAddress, first_steps: &str) {
    let scheme = if address.path().is_none() { "http://" } else { "" };
    let mut text = format!("verbatim {} listening on {scheme}{address}\n", env!("CARGO_PKG_VERSION"));
    if io::stdout().is_terminal() {
        text.push_str(first_steps);
    }
    // A closed standard output is not an error.
    if print(&text).is_err() {
        tracing::warn!("standard output is closed; {}", text.trim_end());
    }
}

/// What to try first, for a person who has started the server on a terminal.
fn first_steps(base_url: &str, sources: &SettingSources) -> String {
    let mut options = String::new();
    if default_data().ok().as_ref() != Some(&sources.data) {
        options.push_str(&format!(" --data {}", sources.data.display()));
    }
    if let Some(file) = &sources.file {
        options.push_str(&format!(" --config {}", file.display()));
    }
    format!(
        "
  Read a transcript:  {base_url}/
  Use the API:        {base_url}/docs
  Create an API key:  verbatim keys create{options}

Ctrl-C stops the server.
"
    )
}

/// Creates the builder of the service, with empty caches.
fn service_builder(
    address: SocketAddr,
    settings: &Settings,
    verbatim: &Verbatim,
    metrics: &Arc<Metrics>,
    log: &LogQueue,
) -> ServiceBuilder {
    let cache_options = ResponseCacheOptions {
        shared_caching: SharedCaching::new(&settings.cdn),
        stale_max: settings.storage.serve_stale,
    };
    let body_memory = settings.server.body_memory;
    let has_search = settings.server.search_access() == SearchAccess::Everyone;
    let site = Site { has_search, ..Site::from(&settings.pages) };
    let metrics = Arc::clone(metrics);
    ServiceBuilder::new(address, verbatim, body_memory, cache_options, metrics, log.clone())
        .with_site(site)
        .with_outbox_folder(settings.data.join(OUTBOX_FOLDER))
}

async fn bind_optional(
    requested: Option<SocketAddr>,
) -> Result<Option<(Listener, SocketAddr)>, CommandError> {
    let Some(requested) = requested else { return Ok(None) };
    let bound = Listener::bind_tcp(requested).await;
    bound.map(Some).map_err(|error| cannot_listen(&ListenAddress::Tcp(requested), &error))
}

async fn bind(requested: &ListenAddress, mode: FileMode) -> Result<(Listener, ListenAddress), CommandError> {
    Listener::bind(requested, mode).await.map_err(|error| cannot_listen(requested, &error))
}

/// Logs the warnings about the settings, and about the connections to databases.
async fn log_warnings(settings: &Settings, verbatim: &Verbatim) {
    if let Some(warning) = verbatim.connection_warning().await {
        tracing::warn!("{warning}");
    }
    let gravest = settings.free_sales_warning();
    for warning in settings.warnings() {
        match gravest.as_ref() == Some(&warning) {
            true => tracing::warn!("{warning}"),
            false => tracing::info!("{warning}"),
        }
    }
}

/// Returns the limits of connections, after the file limit of the process is raised.
fn connection_limits(settings: &Settings) -> ConnectionLimits {
    let server = &settings.server;
    let files = raise_file_limit();
    let connections = connections_within(files, server.connections);
    if connections < server.connections {
        tracing::warn!(
            file_limit = files,
            connections,
            setting = server.connections,
            "server.connections reduced to the file limit; raise the hard limit of open files"
        );
    } else {
        tracing::info!(file_limit = files, connections, "connection limit");
    }

    ConnectionLimits {
        connections: connections as usize,
        connections_per_network: server.connections_per_network,
        stall_timeouts: StallTimeouts { bytes_per_second: server.min_read_rate, ..StallTimeouts::default() },
        grace: settings.longest_request() + GRACE_BEYOND_WAIT,
        ..ConnectionLimits::default()
    }
}

/// Stops the background tasks after the last request, and waits for the operations of the admin listener.
///
/// With the time for requests this takes at most what the settings' warning about the stop assumes.
async fn shut_down(verbatim: &Verbatim, jobs: BackgroundJobs, admin: Option<JoinHandle<()>>) {
    let BackgroundJobs { mail, others } = jobs;
    for job in others {
        job.stop().await;
    }
    if tokio::time::timeout(MAIL_DRAIN, mail.stop()).await.is_err() {
        tracing::warn!("mail interrupted; it is sent again after the next start");
    }
    if let Some(admin) = admin {
        admin.await.ok();
    }
    if tokio::time::timeout(DRAIN, verbatim.close()).await.is_err() {
        tracing::warn!("work did not end in time; its leases and holds expire");
    }
}

/// Creates the metrics with zeros for the configured suppliers.
fn new_metrics(settings: &Settings) -> Arc<Metrics> {
    let metrics = Metrics::default();
    for platform in Platform::ALL {
        for supplier in settings.options.suppliers.for_platform(platform) {
            metrics.expect(supplier, platform);
        }
    }
    Arc::new(metrics)
}

/// Serves the metrics until the returned task is aborted, also while the server stops.
fn serve_metrics(
    (listener, address): (Listener, SocketAddr),
    main: &ServiceBuilder,
    verbatim: &Verbatim,
    settings: &Settings,
) -> ((MetricsServiceBuilder, CurrentService), AbortHandle) {
    tracing::info!("metrics are served at http://{address}/metrics");
    let ServiceBuilder { app, readiness, metrics, log, .. } = main.clone();
    let sources = MetricsSources { metrics, verbatim: verbatim.clone(), app, readiness, log: log.clone() };
    let builder = MetricsServiceBuilder { address, routes: serve::metrics::router(sources), log };
    let service = CurrentService::new(builder.build(settings));
    let serve = serve::metrics::serve(listener, service.clone(), Duration::ZERO, std::future::pending());
    ((builder, service), tokio::spawn(serve).abort_handle())
}

/// Serves the admin API. The returned task ends after the stop, with the last operation.
fn serve_admin(
    (listener, address): (Listener, SocketAddr),
    main: &ServiceBuilder,
    verbatim: &Verbatim,
    settings: &Settings,
    (stop, grace): (impl Future<Output = ()> + Send + 'static, Duration),
) -> ((AdminServiceBuilder, CurrentService), JoinHandle<()>) {
    tracing::info!("the admin API is served at http://{address}/admin");
    let (body_budget, log) = (main.app.body_budget.clone(), main.log.clone());
    let bodies = Arc::clone(&main.app.bodies);
    let operations = operations(settings, verbatim);
    let builder = AdminServiceBuilder { address, body_budget, bodies, operations: operations.clone(), log };
    let service = CurrentService::new(builder.build(settings, verbatim));
    let serve = serve::metrics::serve(listener, service.clone(), grace, stop);
    let task = async move {
        serve.await;
        if tokio::time::timeout(OPERATION_DRAIN, operations.wait_until_idle()).await.is_err() {
            tracing::warn!("admin operations interrupted; the audit log has no result of them");
        }
    };
    ((builder, service), tokio::spawn(task))
}

/// Raises glibc's trim threshold.
///
/// The bodies of one statement take half a megabyte, which glibc returns to the system when it is free and requests
/// again, page by page, for the next statement. Freeing a larger block once raises the threshold to twice its size.
/// Other allocators are not affected.
fn raise_trim_threshold() {
    const BLOCK: usize = 1 << 20;
    drop(std::hint::black_box(vec![0_u8; BLOCK]));
}

fn cannot_listen(address: &ListenAddress, error: &io::Error) -> CommandError {
    let why = match error.kind() {
        io::ErrorKind::AddrInUse => match address {
            ListenAddress::Tcp(_) => "the address is in use by another program; port 0 selects a free port",
            ListenAddress::Unix(_) => {
                "another program listens at it; give another path, or stop that program"
            }
        }
        .to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::AddrNotAvailable => "this machine does not have the address".to_owned(),
        _ => error.to_string(),
    };
    CommandError::Fault(format!("cannot listen at {address}: {why}"))
}
