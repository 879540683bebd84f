//! The ways out for programs that make their requests themselves.

use std::{path::PathBuf, time::Duration};

use super::{Http, HttpFault};

/// A way out, as another program can take it.
#[derive(Clone)]
pub(crate) struct Egress {
    place: usize,
    /// The proxy's address, with its credentials; none where requests leave directly.
    pub(crate) proxy: Option<String>,
    /// Root certificates to trust beside the system's.
    pub(crate) ca_file: Option<PathBuf>,
}

impl Http {
    /// The way out whose turn it is to ask this platform, which is named by the first of its hosts.
    ///
    /// # Errors
    /// [`HttpFault::Resting`] while the platform may be asked through none.
    pub(crate) fn egress(&self, platform: &'static str) -> Result<Egress, HttpFault> {
        let place = self.exits.take_turn(platform)?;
        let proxy = self.options.proxies.get(place).map(|proxy| named_by_the_proxy(proxy.trim()));
        Ok(Egress { place, proxy, ca_file: self.options.ca_file.clone() })
    }

    /// Says that a platform distrusts a way out, so that another comes first. Returns whether there is one.
    pub(crate) fn egress_distrusted(&self, egress: &Egress) -> bool {
        self.exits.distrusted(egress.place, None);
        self.exits.has_fresh(egress.place)
    }

    /// Lets nobody ask a platform through a way out for a while.
    pub(crate) fn egress_silenced(&self, egress: &Egress, platform: &'static str, time: Duration) {
        self.exits.silence(egress.place, platform, time);
    }
}

/// A proxy's address by which the proxy resolves names, as everywhere.
fn named_by_the_proxy(address: &str) -> String {
    match address.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("socks5") => format!("socks5h://{rest}"),
        _ => address.to_owned(),
    }
}

impl std::fmt::Debug for Egress {
    /// Without the proxy's address, which may hold credentials.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Egress").field("place", &self.place).finish_non_exhaustive()
    }
}
