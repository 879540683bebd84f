//! Every setting: its name, its default, what it may be, and where its value came from.
//!
//! Values come from the defaults, then the settings file, then the environment, then the flags. A name
//! that no setting has, or a value that is wrong, stops the start with a sentence that names it.

mod chat;
mod layers;
mod limits;
mod log;
mod mail;
mod payment;
mod plans;
mod problem;
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

pub use chat::Chat;
pub use layers::{Origin, Raw};
pub use limits::{Absence, Limits};
pub use log::{Log, LogFormat, LogLevel};
pub(crate) use mail::OUTBOX_FOLDER;
pub use mail::{Mail, SmtpSecurity, SmtpUrl};
pub use payment::{Entitlement, KeySet, Payment, Till};
pub use plans::{PlanTerms, Plans, Price};
pub use problem::Problem;
pub use reader::Effective;
pub use server::{Server, WebOrigin};
pub use service::Service;
pub use speech::{Format, Speech};
pub use storage::{Storage, StoreUrl};
pub use suppliers::{SupplierName, Suppliers};
pub use upstream::{ProxyUrl, Upstream, X, Youtube, Ytdlp};
pub use value::{BaseUrl, Secret, SecretUrl, Setting};

use layers::Layers;
use reader::Reader;

/// Where settings are looked for.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The data folder.
    pub data: PathBuf,
    /// The settings file, where one is named.
    pub file: Option<PathBuf>,
    /// The variables of the environment.
    pub environment: Vec<(OsString, OsString)>,
    /// What flags set: the setting, the flag and its value.
    pub flags: Vec<(String, String, String)>,
}

/// Every setting, as it is in effect.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The data folder.
    pub data: PathBuf,
    /// Where the server listens, and whom it believes.
    pub server: Server,
    /// Where the databases are.
    pub storage: Storage,
    /// How the platforms are reached.
    pub upstream: Upstream,
    /// As whom YouTube is asked.
    pub youtube: Youtube,
    /// How X is asked.
    pub x: X,
    /// The yt-dlp program.
    pub ytdlp: Ytdlp,
    /// The other server that is asked.
    pub service: Service,
    /// The speech-to-text service.
    pub speech: Speech,
    /// Which suppliers are asked, in order.
    pub suppliers: Suppliers,
    /// The chat model.
    pub chat: Chat,
    /// The mail server.
    pub mail: Mail,
    /// The payment provider.
    pub payment: Payment,
    /// Who may sign entitlements.
    pub entitlement: Entitlement,
    /// Allowances and rates.
    pub limits: Limits,
    /// How long absences are remembered.
    pub absence: Absence,
    /// The plans of Surface B.
    pub plans: Plans,
    /// Logs and metrics.
    pub log: Log,
    /// Every setting by name, for the report.
    pub effective: Vec<Effective>,
}

impl Settings {
    /// Reads all settings.
    ///
    /// # Errors
    /// Everything that is wrong: a file that cannot be read, a name that no setting has, a wrong value.
    pub fn load(sources: Sources) -> Result<Self, Problem> {
        let mut layers = Layers::default();
        if let Some(file) = &sources.file {
            layers.add_file(file)?;
        }
        layers.add_environment(sources.environment)?;
        for (name, flag, value) in sources.flags {
            layers.add(name, Raw::Text(value), Origin::Flag(flag));
        }
        Self::read(&layers, &sources.data)
    }

    fn read(layers: &Layers, data: &Path) -> Result<Self, Problem> {
        let mut reader = Reader::new(layers);
        let server = Server::read(&mut reader);
        let storage = Storage::read(&mut reader, data);
        let upstream = Upstream::read(&mut reader);
        let youtube = Youtube::read(&mut reader);
        let x = X::read(&mut reader);
        let ytdlp = Ytdlp::read(&mut reader);
        let service = Service::read(&mut reader);
        let speech = Speech::read(&mut reader);
        let suppliers = Suppliers::read(&mut reader, &ytdlp, &service, &speech);
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
            chat: Chat::read(&mut reader),
            mail: Mail::read(&mut reader),
            payment: Payment::read(&mut reader),
            entitlement: Entitlement::read(&mut reader),
            limits: Limits::read(&mut reader),
            absence: Absence::read(&mut reader),
            plans: Plans::read(&mut reader),
            log: Log::read(&mut reader),
            effective: reader.finish()?,
        })
    }
}

#[cfg(test)]
mod tests;
