//! Settings of another Verbatim server, used as a supplier.

use std::time::Duration;

use super::{
    reader::SettingsReader,
    value::{BaseUrl, Secret},
};

/// `service.*`
#[derive(Clone, Debug)]
pub struct ServiceSettings {
    /// `service.base_url`: address of the server; `/api/…` is appended.
    pub base_url: Option<BaseUrl>,
    /// `service.api_key`: API key of its lookup API.
    pub api_key: Option<Secret>,
    /// `service.timeout`: timeout of one response.
    pub timeout: Duration,
}

impl ServiceSettings {
    /// Reads the section.
    pub fn read(reader: &mut SettingsReader<'_>) -> Self {
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
