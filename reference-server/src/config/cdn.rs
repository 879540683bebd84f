//! Settings of shared caches in front of the server.

use std::{path::PathBuf, time::Duration};

use verbatim::PurgeHookOptions;

use super::value::{BaseUrl, Secret};

/// `cdn.*`
#[derive(Clone, Debug, smart_default::SmartDefault)]
pub(crate) struct CdnSettings {
    /// `cdn.max_age`: how long a shared cache may send a response without a request to the server; 0 turns it off.
    pub(crate) max_age: Duration,
    /// `cdn.stale_while_revalidate`: how long after that it may send it while it requests a new one.
    #[default(Duration::from_secs(60))]
    pub(crate) stale_while_revalidate: Duration,
    /// `cdn.stale_if_error`: how long after that it may send it while the server does not answer.
    #[default(Duration::from_secs(86_400))]
    pub(crate) stale_if_error: Duration,
    /// `cdn.purge_url`: address that is called with the surrogate keys of changed videos.
    pub(crate) purge_url: Option<BaseUrl>,
    /// `cdn.purge_secret`: sent to it as a bearer token.
    pub(crate) purge_secret: Option<Secret>,
}

impl CdnSettings {
    /// `Cache-Control` of a public response; `None` if shared caches may not store it.
    ///
    /// A browser requests each response again: a purge does not reach it.
    pub(crate) fn cache_control(&self) -> Option<String> {
        let seconds = |duration: Duration| duration.as_secs();
        (seconds(self.max_age) > 0).then(|| {
            format!(
                "public, max-age=0, s-maxage={}, stale-while-revalidate={}, stale-if-error={}",
                seconds(self.max_age),
                seconds(self.stale_while_revalidate),
                seconds(self.stale_if_error)
            )
        })
    }

    /// Options of the purge hook, if there is one.
    pub(crate) fn purge_hook(&self, ca_file: Option<PathBuf>) -> Option<PurgeHookOptions> {
        let url = self.purge_url.as_ref()?.as_str().to_owned();
        let secret = self.purge_secret.as_ref().map(|secret| secret.reveal().to_owned());
        Some(PurgeHookOptions { url, secret, ca_file })
    }

    /// Returns the warnings about these settings.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        let is_on = self.cache_control().is_some();
        let unpurged = (is_on && self.purge_url.is_none()).then_some(
            "cdn.purge_url is not set: a withdrawn transcript stays in shared caches until its time is over",
        );
        let exposed = self.purge_url.as_ref().is_some_and(BaseUrl::is_exposed) && self.purge_secret.is_some();
        let exposed = exposed.then_some("cdn.purge_url is http: the secret is sent unencrypted");
        unpurged.into_iter().chain(exposed).map(str::to_owned)
    }
}
