//! Another Verbatim server that is asked for transcripts.

use std::time::Duration;

use super::{
    reader::Reader,
    value::{BaseUrl, Secret},
};

/// `service.*`
#[derive(Clone, Debug)]
pub struct Service {
    /// `service.base_url`: the server's address, to which `/api/…` is added.
    pub base_url: Option<BaseUrl>,
    /// `service.api_key`: a key of its look-up API.
    pub api_key: Option<Secret>,
    /// `service.timeout`: how long it may take to answer once.
    pub timeout: Duration,
}

impl Service {
    /// Reads the section.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let seconds = Duration::from_secs;
        let service = Self {
            base_url: reader.optional("service.base_url"),
            api_key: reader.optional("service.api_key"),
            timeout: reader.duration("service.timeout", seconds(60), seconds(1)..=seconds(600)),
        };
        let address = ("service.base_url", service.base_url.is_some());
        let key = ("service.api_key", service.api_key.is_some());
        reader.needs(address, key);
        reader.needs(key, address);
        service
    }
}
