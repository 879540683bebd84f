//! `verbatim serve`: the service over HTTP.

use std::{io, net::SocketAddr, time::Duration};

use axum::middleware::from_fn_with_state;
use tokio::net::TcpListener;
use verbatim::Verbatim;

use super::{Failure, print};
use crate::{
    config::Settings,
    http::{self, Bounds, Front, signalled},
    log, mail,
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
    let log = log::start(&settings.log);
    // From here on a signal is heard, also while the storage is being opened.
    let stop = signalled().map_err(|error| Failure::Fault(format!("signals cannot be heard: {error}")))?;
    let wanted = settings.server.listen;
    let listener = TcpListener::bind(wanted).await.map_err(|error| cannot_listen(wanted, &error))?;
    let address = listener.local_addr().map_err(|error| cannot_listen(wanted, &error))?;
    let base_url = settings.server.base_url_at(address);
    let mailer = mail::mailer(&settings)?;
    let verbatim = Verbatim::open(wiring::options(&settings, base_url)?).await?;
    let (sender, sweep) = (verbatim.start_mail(mailer), verbatim.start_sweep());
    let given_away = settings.sandbox_warning();
    for warning in settings.warnings() {
        match given_away.as_ref() == Some(&warning) {
            true => tracing::warn!("{warning}"),
            false => tracing::info!("{warning}"),
        }
    }
    let app = App::new(
        verbatim.lookup().clone(),
        verbatim.accounts().clone(),
        verbatim.chat().clone(),
        verbatim.payments().clone(),
        verbatim.sandbox().cloned(),
    );
    let routes = router(app.clone(), &settings.server.cors_origins);
    let routes = routes.layer(from_fn_with_state(verbatim.clone(), asked_by_server));
    let front = Front::new(routes, settings.server.trusted_proxies.clone(), log.log()).with_ready(app);
    // An answer of a model may take longer than a transcript is waited for.
    let longest = match settings.chat.model {
        Some(_) => settings.limits.wait.max(settings.chat.timeout),
        None => settings.limits.wait,
    };
    let bounds = Bounds { grace: longest + GRACE_BEYOND_WAIT, ..Bounds::default() };
    let line = format!("verbatim {} listening on http://{address}\n", env!("CARGO_PKG_VERSION"));
    // Whoever started the server need not read it.
    if print(&line).is_err() {
        tracing::warn!("standard output is closed; {}", line.trim_end());
    }
    http::serve(listener, front, bounds, stop).await;
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
    tracing::info!("stopped");
    drop(log);
    Ok(())
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
