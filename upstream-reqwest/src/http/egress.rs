//! The ways out for programs that make their requests themselves.

use std::{path::PathBuf, time::Duration};

use super::{Http, HttpFault, exits::resolving_names};

/// A way out, as another program can take it.
#[derive(Clone)]
pub(crate) struct Egress {
    place: usize,
    /// The proxy's address, with its credentials; none where requests leave directly.
    pub(crate) proxy: Option<String>,
    /// Root certificates to trust beside the system's.
    pub(crate) ca_file: Option<PathBuf>,
}

impl Egress {
    /// Which way out it is, for requests of ours that must leave through the same.
    pub(crate) fn place(&self) -> usize {
        self.place
    }
}

impl Http {
    /// The way out whose turn it is to ask this platform, which is named by the first of its hosts.
    ///
    /// # Errors
    /// [`HttpFault::Resting`] while the platform may be asked through none.
    pub(crate) fn egress(&self, platform: &'static str) -> Result<Egress, HttpFault> {
        let place = self.exits.take_turn(platform);
        let place = place.map_err(|left| HttpFault::Resting { left, asked: false })?;
        let proxy = self.options.proxies.get(place).map(|proxy| resolving_names(proxy));
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

impl std::fmt::Debug for Egress {
    /// Without the proxy's address, which may hold credentials.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Egress").field("place", &self.place).finish_non_exhaustive()
    }
}
