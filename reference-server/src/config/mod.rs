//! Settings: name, default, bounds and origin of each.
//!
//! Sources override each other in this order: defaults, settings file, environment, flags. An unknown name or an
//! invalid value stops the start with a sentence that names it.

mod cdn;
mod errors;
mod layers;
mod listen;
mod log;
mod mail;
mod options;
mod pages;
mod payment;
mod reader;
mod reload;
mod report;
mod server;
mod storage;
mod suppliers;
mod table;
mod value;

use std::{ffi::OsString, path::PathBuf};

#[cfg(feature = "speech")]
use verbatim::SpeechOptions;
#[cfg(feature = "chat-model")]
use verbatim::{ChatModelOptions, EmbeddingsOptions};
use verbatim::{EntitlementOptions, Options, StripeOptions, service::ServiceOptions};

pub(crate) use cdn::CdnSettings;
pub(crate) use errors::ConfigErrors;
pub(crate) use layers::{RawSettings, SettingOrigin};
pub(crate) use listen::{FileMode, ListenAddress};
pub(crate) use log::{LogFormat, LogSettings};
pub(crate) use mail::{MailSettings, OUTBOX_FOLDER, SmtpSecurity, SmtpUrl};
pub(crate) use pages::{PageIndex, PageLink, PageSettings};
use payment::{JwkSet, PriceSetting};
pub(crate) use reader::EffectiveSetting;
pub(crate) use reload::ReloadedSettings;
pub(crate) use server::{HostPattern, SearchAccess, ServerSettings, WebOrigin};
pub(crate) use storage::{StorageSettings, StoreUrl};
use value::ProxyUrl;
pub(crate) use value::{BaseUrl, ParseSetting, Secret, is_loopback_host, without_final_dot};

use layers::SettingLayers;
use reader::SettingsReader;
use table::SECTIONS;

/// The setting of the listening address.
const LISTEN: &str = "server.listen";

/// Sources of the settings.
#[derive(Clone, Debug)]
pub(crate) struct SettingSources {
    /// The data folder.
    pub(crate) data: PathBuf,
    /// The settings file, if any.
    pub(crate) file: Option<PathBuf>,
    /// The environment variables.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Settings from flags: setting, flag and value.
    pub(crate) flags: Vec<(String, String, String)>,
}

/// All effective settings.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The data folder.
    pub(crate) data: PathBuf,
    /// The HTTP server.
    pub(crate) server: ServerSettings,
    /// Shared caches in front of the server.
    pub(crate) cdn: CdnSettings,
    /// The databases.
    pub(crate) storage: StorageSettings,
    /// The mail server.
    pub(crate) mail: MailSettings,
    /// The web pages.
    pub(crate) pages: PageSettings,
    /// Logs, metrics and traces.
    pub(crate) log: LogSettings,
    /// `checkout.sandbox`: whether the sandbox checkout is open to callers on this machine.
    ///
    /// If unset, it is open while the listening address and links are of this machine and `server.trusted_proxies` is
    /// empty.
    pub(crate) sandbox: Option<bool>,
    /// Options of the library, without storage and base address (see `Settings::options`).
    pub(crate) options: Options,
    /// All settings by name, for the report.
    pub(crate) effective: Vec<EffectiveSetting>,
    /// The values as given, for a reload.
    layers: SettingLayers,
    // These options are used only if the setting that enables them is set.
    #[cfg(feature = "speech")]
    speech: SpeechOptions,
    service: ServiceOptions,
    #[cfg(feature = "chat-model")]
    chat: ChatModelOptions,
    #[cfg(feature = "chat-model")]
    embeddings: EmbeddingsOptions,
    #[cfg(feature = "chat-model")]
    embedding_model: Option<PathBuf>,
    stripe: StripeOptions,
    entitlement: EntitlementOptions,
}

impl Settings {
    /// Reads all settings.
    ///
    /// # Errors
    /// All errors: an unreadable file, unknown names, invalid values.
    pub(crate) fn load(sources: SettingSources) -> Result<Self, ConfigErrors> {
        let mut layers = SettingLayers::default();
        if let Some(file) = &sources.file {
            layers.add_file(file)?;
        }
        layers.add_environment(sources.environment)?;
        for (name, flag, value) in sources.flags {
            layers.add(name, RawSettings::Text(value), SettingOrigin::Flag(flag));
        }
        Self::read(&layers, sources.data)
    }

    /// Reads the address of a running server, `server.listen`, alone.
    ///
    /// The other settings may be invalid, and so may the file if the environment has the address: it may be edited
    /// while the server runs.
    ///
    /// # Errors
    /// An invalid address, or an unreadable file that may have it.
    pub(crate) fn listen_address(sources: SettingSources) -> Result<ListenAddress, ConfigErrors> {
        let mut layers = SettingLayers::default();
        layers.add_environment(sources.environment)?;
        if let (None, Some(file)) = (layers.find(LISTEN), &sources.file) {
            layers.add_file(file)?;
        }
        let layers = SettingLayers::default().replaced_by(&layers, |name| name == LISTEN);
        let mut reader = SettingsReader::new(&layers);
        let mut listen = ServerSettings::default().listen;
        reader.begin(LISTEN);
        reader.value(&mut listen);
        reader.finish()?;
        Ok(listen)
    }

    fn read(layers: &SettingLayers, data: PathBuf) -> Result<Self, ConfigErrors> {
        let mut reader = SettingsReader::new(layers);
        let mut settings = Self::new(data);
        for section in &SECTIONS {
            for setting in section.settings {
                reader.begin(setting.name);
                (setting.read)(&mut reader, &mut settings);
            }
            (section.check)(&mut reader, &mut settings);
        }
        settings.effective = reader.finish()?;
        settings.layers = layers.clone();
        Ok(settings)
    }

    /// The defaults.
    fn new(data: PathBuf) -> Self {
        Self {
            server: ServerSettings::default(),
            cdn: CdnSettings::default(),
            storage: StorageSettings::new(&data),
            mail: MailSettings::default(),
            pages: PageSettings::default(),
            log: LogSettings::default(),
            sandbox: None,
            options: Options::default(),
            effective: Vec::new(),
            layers: SettingLayers::default(),
            #[cfg(feature = "speech")]
            speech: SpeechOptions::default(),
            service: ServiceOptions::new(""),
            #[cfg(feature = "chat-model")]
            chat: ChatModelOptions::default(),
            #[cfg(feature = "chat-model")]
            embeddings: EmbeddingsOptions::default(),
            #[cfg(feature = "chat-model")]
            embedding_model: None,
            stripe: StripeOptions::default(),
            entitlement: EntitlementOptions::default(),
            data,
        }
    }
}

#[cfg(test)]
mod tests;
