//! Settings: name, default, bounds and origin of each.
//!
//! Sources override each other in this order: defaults, settings file, environment, flags. An unknown name or an
//! invalid value stops the start with a sentence that names it.

mod chat;
mod errors;
mod layers;
mod limits;
mod log;
mod mail;
mod payment;
mod plans;
mod reader;
mod report;
mod server;
mod service;
mod speech;
mod storage;
mod suppliers;
mod upstream;
mod value;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

pub use chat::ChatSettings;
pub use errors::ConfigErrors;
pub use layers::{RawSettings, SettingOrigin};
pub use limits::{AbsenceSettings, LimitSettings};
pub use log::{LogFormat, LogLevel, LogSettings};
pub(crate) use mail::OUTBOX_FOLDER;
pub use mail::{MailSettings, SmtpSecurity, SmtpUrl};
pub use payment::{EntitlementSettings, JwkSet, PaymentBackend, PaymentSettings};
pub use plans::{PlanSettings, PlanTermSettings, PriceSetting};
pub use reader::EffectiveSetting;
pub use server::{ServerSettings, WebOrigin};
pub use service::ServiceSettings;
pub use speech::{SpeechFormat, SpeechSettings};
pub use storage::{StorageSettings, StoreUrl};
pub use suppliers::{SupplierName, SupplierSettings};
pub use upstream::{ProxyUrl, UpstreamSettings, XSettings, YouTubeSettings, YtDlpSettings};
pub use value::{BaseUrl, ParseSetting, Secret, SecretUrl};

use layers::SettingLayers;
use reader::SettingsReader;

/// Sources of the settings.
#[derive(Clone, Debug)]
pub struct SettingSources {
    /// The data folder.
    pub data: PathBuf,
    /// The settings file, if any.
    pub file: Option<PathBuf>,
    /// The environment variables.
    pub environment: Vec<(OsString, OsString)>,
    /// Settings from flags: setting, flag and value.
    pub flags: Vec<(String, String, String)>,
}

/// All effective settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The data folder.
    pub data: PathBuf,
    /// The HTTP server.
    pub server: ServerSettings,
    /// The databases.
    pub storage: StorageSettings,
    /// Requests to platforms.
    pub upstream: UpstreamSettings,
    /// The YouTube client.
    pub youtube: YouTubeSettings,
    /// The X client.
    pub x: XSettings,
    /// The yt-dlp program.
    pub ytdlp: YtDlpSettings,
    /// Another Verbatim server.
    pub service: ServiceSettings,
    /// The speech-to-text service.
    pub speech: SpeechSettings,
    /// Suppliers of each platform, in order.
    pub suppliers: SupplierSettings,
    /// The chat model.
    pub chat: ChatSettings,
    /// The mail server.
    pub mail: MailSettings,
    /// The payment provider.
    pub payment: PaymentSettings,
    /// Verification of entitlements.
    pub entitlement: EntitlementSettings,
    /// Allowances and rate limits.
    pub limits: LimitSettings,
    /// How long absences are stored.
    pub absence: AbsenceSettings,
    /// The plans of the v1 API.
    pub plans: PlanSettings,
    /// Logs, metrics and traces.
    pub log: LogSettings,
    /// All settings by name, for the report.
    pub effective: Vec<EffectiveSetting>,
}

impl Settings {
    /// Reads all settings.
    ///
    /// # Errors
    /// All errors: an unreadable file, unknown names, invalid values.
    pub fn load(sources: SettingSources) -> Result<Self, ConfigErrors> {
        let mut layers = SettingLayers::default();
        if let Some(file) = &sources.file {
            layers.add_file(file)?;
        }
        layers.add_environment(sources.environment)?;
        for (name, flag, value) in sources.flags {
            layers.add(name, RawSettings::Text(value), SettingOrigin::Flag(flag));
        }
        Self::read(&layers, &sources.data)
    }

    fn read(layers: &SettingLayers, data: &Path) -> Result<Self, ConfigErrors> {
        let mut reader = SettingsReader::new(layers);
        let server = ServerSettings::read(&mut reader);
        let storage = StorageSettings::read(&mut reader, data);
        let upstream = UpstreamSettings::read(&mut reader);
        let youtube = YouTubeSettings::read(&mut reader);
        let x = XSettings::read(&mut reader);
        let ytdlp = YtDlpSettings::read(&mut reader);
        let service = ServiceSettings::read(&mut reader);
        let speech = SpeechSettings::read(&mut reader);
        let suppliers = SupplierSettings::read(&mut reader, &ytdlp, &service, &speech);
        Ok(Self {
            data: data.to_owned(),
            server,
            storage,
            upstream,
            youtube,
            x,
            ytdlp,
            service,
            speech,
            suppliers,
            chat: ChatSettings::read(&mut reader),
            mail: MailSettings::read(&mut reader),
            payment: PaymentSettings::read(&mut reader),
            entitlement: EntitlementSettings::read(&mut reader),
            limits: LimitSettings::read(&mut reader),
            absence: AbsenceSettings::read(&mut reader),
            plans: PlanSettings::read(&mut reader),
            log: LogSettings::read(&mut reader),
            effective: reader.finish()?,
        })
    }
}

#[cfg(test)]
mod tests;
