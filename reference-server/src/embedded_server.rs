//! The server within a program that has its own HTTP server.

use std::{
    convert::Infallible,
    future::Future,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{BoxError, Router, body::Body, extract::ConnectInfo};
use bytes::Bytes;
use http::{Request, Response};
use ipnet::IpNet;
use transcript_core::{Error, Result, accounts::mail::Mailer};
use verbatim::{JobHandle, Verbatim};

use crate::{
    background,
    command::service_builder::ServiceBuilder,
    config::{ParseSetting, RawSettings, SearchAccess, ServerSettings},
    log::LogQueue,
    mail::mail_texts,
    metrics::Metrics,
    page::site::Site,
    response_cache::ResponseCacheOptions,
    serve::HttpService,
};

/// Address of a client whose address is not known.
const UNKNOWN: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Options of an [`EmbeddedServer`]. Everything else is in the options of its [`Verbatim`].
#[derive(Clone, Debug, smart_default::SmartDefault)]
pub struct EmbedOptions {
    /// Address at which the program listens; `None`: other machines reach it.
    ///
    /// At a loopback address only requests that name this machine, the host of the links or one of `allowed_hosts` are
    /// answered, so that no web page can let its own name point here.
    pub listen: Option<SocketAddr>,
    /// Host names that requests may name, such as `example.org` or `*.example.org`; empty, and other machines reach it:
    /// every name.
    pub allowed_hosts: Vec<String>,
    /// Networks whose forwarding headers are trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// Origins of pages that may call `/api/keys`, `/api/search`, `/api/v1/register` and `/mcp`, such as
    /// `https://app.example.org`.
    pub cors_origins: Vec<String>,
    /// Memory of all large bodies that are not shared, in bytes; a quarter is kept for requests of the v1 API.
    #[default(256 << 20)]
    pub body_memory: u64,
    /// How long cached responses are sent while the archive cannot be read.
    #[default(Duration::from_secs(60))]
    pub serve_stale: Duration,
    /// PEM file of certificates that the webhooks of accounts trust too.
    pub webhook_ca_file: Option<PathBuf>,
}

impl EmbedOptions {
    fn settings(&self, base_url: &str) -> Result<ServerSettings> {
        Ok(ServerSettings {
            base_url: Some(parse("base_url", base_url)?),
            trusted_proxies: self.trusted_proxies.clone(),
            allowed_hosts: parse_all("allowed_hosts", &self.allowed_hosts)?,
            cors_origins: parse_all("cors_origins", &self.cors_origins)?,
            ..ServerSettings::default()
        })
    }
}

/// The error with the name of the option in place of the setting, which a program does not have.
fn with_option_names(error: &Error) -> Error {
    let message = match error.message().strip_prefix("upstream.ca_file") {
        Some(rest) => format!("webhook_ca_file{rest}"),
        None => error.message().to_owned(),
    };
    error.clone().with_message(message)
}

fn parse_all<T: ParseSetting>(name: &str, values: &[String]) -> Result<Vec<T>> {
    values.iter().map(|value| parse(name, value)).collect()
}

fn parse<T: ParseSetting>(name: &str, value: &str) -> Result<T> {
    T::read(&RawSettings::Text(value.to_owned())).map_err(|_| {
        let shown = if T::SECRET { "it".to_owned() } else { format!("{value:?}") };
        Error::invalid(format!("{name}: {shown} is invalid: give {}", T::ALLOWED))
    })
}

/// Both APIs, the pages, the documentation and the MCP endpoint: what `verbatim serve` serves, without the listener.
///
/// It is a tower service, and [`EmbeddedServer::router`] is an axum router. Its paths are absolute (`/api/…`,
/// `/watch/…`, `/mcp`, `/health`), so it belongs at the root, beside the routes of the program. Not part of it are the
/// access log, limits of connections, the metrics and the admin API.
///
/// [`EmbeddedServer::start_work`] starts the work beside requests: without it, jobs and mails of accounts stay queued.
///
/// The addresses of clients, which limits depend on, come from [`ConnectInfo`]. Without it all clients count as one.
///
/// A clone is a handle to the same server.
///
/// ```
/// use std::net::SocketAddr;
///
/// use axum::{Router, routing::get};
/// use reference_server::{EmbedOptions, EmbeddedServer};
/// use verbatim::{Options, Verbatim};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut options = Options::default();
/// options.set_base_url("https://transcripts.example");
/// let verbatim = Verbatim::open(options).await?;
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// // On loopback, the server then refuses requests that name other hosts.
/// let embed = EmbedOptions { listen: Some(listener.local_addr()?), ..EmbedOptions::default() };
/// let server = EmbeddedServer::new(&verbatim, &embed)?;
/// let work = server.start_work(None)?;
/// let app = Router::new().route("/hello", get(|| async { "Hello." })).merge(server.router());
///
/// // Without a shutdown signal it never returns, and fetches end in the middle.
/// let shutdown = async {
///     if tokio::signal::ctrl_c().await.is_err() {
///         // Without signals the server runs until it is killed.
///         std::future::pending::<()>().await;
///     }
/// };
/// # let shutdown = async { drop(shutdown) };
/// let app = app.into_make_service_with_connect_info::<SocketAddr>();
/// axum::serve(listener, app).with_graceful_shutdown(shutdown).await?;
/// for job in work {
///     job.stop().await;
/// }
/// verbatim.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct EmbeddedServer {
    service: Arc<HttpService>,
    verbatim: Verbatim,
    metrics: Arc<Metrics>,
    webhook_ca_file: Option<PathBuf>,
    has_search: bool,
    warned: Arc<AtomicBool>,
}

impl EmbeddedServer {
    /// Creates the server over an open [`Verbatim`], with empty caches.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`], naming the invalid option.
    pub fn new(verbatim: &Verbatim, options: &EmbedOptions) -> Result<Self> {
        let settings = options.settings(&verbatim.lookup().options().base_url)?;
        let address = options.listen.unwrap_or_else(|| (UNKNOWN, 0).into());
        let cache_options = ResponseCacheOptions { shared_caching: None, stale_max: options.serve_stale };
        let (metrics, log) = (Arc::new(Metrics::default()), LogQueue::silent());
        let counters = Arc::clone(&metrics);
        let builder =
            ServiceBuilder::new(address, verbatim, options.body_memory, cache_options, counters, log);
        Ok(Self {
            service: Arc::new(builder.build(&settings, verbatim)),
            verbatim: verbatim.clone(),
            metrics,
            webhook_ca_file: options.webhook_ca_file.clone(),
            has_search: settings.search_access() != SearchAccess::Off,
            warned: Arc::default(),
        })
    }

    /// Starts the work beside requests: jobs of accounts and their webhooks, payments if anything is for sale, the
    /// search index, and with a mailer the mails of accounts. A program calls it once for all clones.
    ///
    /// Without it jobs, events and mails stay queued, and a payment whose event is lost is never fulfilled. Drop of a
    /// handle stops its work. Not part of it are [`Verbatim::start_purges`] and
    /// [`Verbatim::start_compaction`].
    ///
    /// # Errors
    /// [`EmbedOptions::webhook_ca_file`] cannot be read.
    pub fn start_work(&self, mailer: Option<Arc<dyn Mailer>>) -> Result<Vec<JobHandle>> {
        let ca_file = self.webhook_ca_file.as_deref();
        let mut work = background::start(&self.verbatim, &self.metrics, ca_file, self.has_search)
            .map_err(|error| with_option_names(&error))?;
        let languages = || mail_texts(&Site::default().languages);
        let start = |mailer| background::start_mail(&self.verbatim, &self.metrics, languages(), mailer);
        work.extend(mailer.map(start));
        Ok(work)
    }

    /// An axum router that answers every path which no other route of the program answers.
    ///
    /// Only one router of a program can have such a fallback.
    pub fn router(&self) -> Router {
        Router::new().fallback_service(self.clone())
    }

    /// Answers a request of the client at this address.
    ///
    /// The address is that of the connection: forwarding headers of trusted proxies are read here.
    pub async fn answer<B>(&self, request: Request<B>, peer: IpAddr) -> Response<Body>
    where
        B: hyper::body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        self.service.answer(request, peer).await.map(Body::new)
    }

    /// The address of the connection, as axum adds it to a request.
    fn peer<B>(&self, request: &Request<B>) -> IpAddr {
        if let Some(ConnectInfo(address)) = request.extensions().get::<ConnectInfo<SocketAddr>>() {
            return address.ip();
        }
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "requests have no client address, so all clients share their limits: serve with \
                 into_make_service_with_connect_info::<SocketAddr>()"
            );
        }
        UNKNOWN
    }
}

impl<B> tower::Service<Request<B>> for EmbeddedServer
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (server, peer) = (self.clone(), self.peer(&request));
        Box::pin(async move { Ok(server.answer(request, peer).await) })
    }
}

#[cfg(test)]
mod tests;
