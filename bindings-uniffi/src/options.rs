//! From the app's options to those of the facade.

use std::{path::PathBuf, sync::Arc, time::Duration};

use transcript_core::{supplier::SupplierKind, video::Platform};
use verbatim::{ChatModelOptions, Options, ServiceOptions, SpeechOptions, StorageOptions, SupplierOptions};

use crate::{
    error::{Failure, VerbatimError},
    ports::{
        ArchiveStore, ChatModel, DirectoryStore, Foreign, ForeignChatModel, ForeignSupplier, LedgerStore,
        Mailer, Supplier,
    },
    progress::Progress,
    unsaid::unsaid,
};

/// The longest that a time may be.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);
/// How long a store of the app's may take for one call, unless it is said.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a supplier of the app's may take, unless it is said.
const SUPPLIER_TIMEOUT: Duration = Duration::from_secs(300);
/// The tokens that a model of the app's takes, unless it is said.
const CONTEXT_TOKENS: u32 = 32_000;

/// How a supplier comes by its words.
#[uniffi::remote(Enum)]
pub enum SupplierKind {
    /// It reads captions that the platform has.
    Captions,
    /// It listens to the audio.
    Speech,
    /// It asks another service that has transcripts.
    Remote,
}

/// Where transcripts, keys and the ledger are kept.
#[derive(Clone, Debug, uniffi::Enum)]
pub enum Storage {
    /// In memory: gone with the process.
    Memory,
    /// In SQLite files in a folder of the app's, which is made where it is not there: `archive.db` for transcripts,
    /// `verbatim.db` for keys and the ledger.
    Folder {
        /// The folder.
        path: String,
    },
    /// Transcripts in one SQLite file, the rest in memory: for an app that sells nothing.
    ArchiveFile {
        /// The file.
        path: String,
    },
}

/// One who is asked for transcripts that are not archived.
#[derive(Clone, uniffi::Enum)]
pub enum SupplierChoice {
    /// A supplier of the library's: `youtube-captions`, `tiktok-captions`, `x-captions`, `verbatim-service`, or
    /// `speech-to-text`.
    BuiltIn {
        /// Its name.
        name: String,
    },
    /// One of the app's.
    Own {
        /// Its name, the `source` of its transcripts.
        name: String,
        /// The platforms that it covers; none: all.
        platforms: Vec<Platform>,
        /// How it comes by its words.
        kind: SupplierKind,
        /// The supplier.
        supplier: Arc<dyn Supplier>,
    },
}

/// A model behind an OpenAI-compatible service.
#[derive(Clone, uniffi::Record)]
pub struct ModelService {
    /// Where the service is, `/v1` included.
    pub base_url: String,
    /// Its model.
    pub model: String,
    /// Its key, where it wants one.
    #[uniffi(default = None)]
    pub api_key: Option<String>,
}

/// Another Verbatim server as a source of transcripts.
#[derive(Clone, uniffi::Record)]
pub struct ServerSource {
    /// Its address.
    pub base_url: String,
    /// A key of its look-up API: `vbk_…`.
    pub key: String,
}

/// Everything that can be chosen. The defaults keep nothing beyond the process, and ask the platforms directly.
#[derive(Clone, Default, uniffi::Record)]
pub struct TranscriptsOptions {
    /// Where everything is kept; none: in memory.
    #[uniffi(default = None)]
    pub storage: Option<Storage>,
    /// Who is asked, in order; none: the platforms themselves. An empty list asks nobody.
    #[uniffi(default = None)]
    pub suppliers: Option<Vec<SupplierChoice>>,
    /// An archive of the app's, in place of the storage's.
    #[uniffi(default = None)]
    pub archive: Option<Arc<dyn ArchiveStore>>,
    /// A ledger of the app's, in place of the storage's.
    #[uniffi(default = None)]
    pub ledger: Option<Arc<dyn LedgerStore>>,
    /// Keys and accounts of the app's, in place of the storage's.
    #[uniffi(default = None)]
    pub directory: Option<Arc<dyn DirectoryStore>>,
    /// Who sends the mails of registrations, for an app that has the service within its process; none: they wait.
    #[uniffi(default = None)]
    pub mailer: Option<Arc<dyn Mailer>>,
    /// A model of the app's, which answers questions.
    #[uniffi(default = None)]
    pub chat_model: Option<Arc<dyn ChatModel>>,
    /// How many tokens the app's model takes at once; none: 32,000.
    #[uniffi(default = None)]
    pub chat_context_tokens: Option<u32>,
    /// A model behind a service, which answers questions; none: the transcript's own passages are the answers.
    #[uniffi(default = None)]
    pub chat: Option<ModelService>,
    /// Who listens to videos without captions; the supplier `speech-to-text`. It needs ffmpeg, which phones lack.
    #[uniffi(default = None)]
    pub speech: Option<ModelService>,
    /// Another Verbatim server; the supplier `verbatim-service`.
    #[uniffi(default = None)]
    pub server: Option<ServerSource>,
    /// How long a caller waits for a new transcript; none: a day. Each call can have a shorter time of its own.
    #[uniffi(default = None)]
    pub wait: Option<Duration>,
    /// How long one request to a platform may take; none: 20 s.
    #[uniffi(default = None)]
    pub request_timeout: Option<Duration>,
    /// How often a request that failed in passing is repeated; none: twice.
    #[uniffi(default = None)]
    pub retries: Option<u32>,
    /// Proxies through which every request leaves, used in turn; none: directly.
    #[uniffi(default = [])]
    pub proxies: Vec<String>,
    /// A PEM file with root certificates that are trusted beside the system's.
    #[uniffi(default = None)]
    pub ca_file: Option<String>,
    /// The client identities as which YouTube is asked, in order; none: those built in.
    #[uniffi(default = [])]
    pub youtube_clients: Vec<String>,
    /// How long a supplier of the app's may take; none: 5 minutes.
    #[uniffi(default = None)]
    pub supplier_timeout: Option<Duration>,
    /// How long a store of the app's may take for one call; none: 5 s.
    #[uniffi(default = None)]
    pub store_timeout: Option<Duration>,
    /// The address that links to the watch page begin with; none: the built-in one.
    #[uniffi(default = None)]
    pub base_url: Option<String>,
    /// New transcripts a month for a key without a plan; none: the built-in figure.
    #[uniffi(default = None)]
    pub free_per_month: Option<u32>,
}

/// A time that was given: more than nothing, and at most a day.
fn time(name: &str, given: Option<Duration>, otherwise: Duration) -> Result<Duration, VerbatimError> {
    match given {
        None => Ok(otherwise),
        Some(time) if !time.is_zero() && time <= LONGEST => Ok(time),
        Some(_) => Err(Failure::invalid(format!("{name} must be more than 0 and at most a day"))),
    }
}

/// The facade's options, and the folder of the files.
///
/// # Errors
/// `InvalidInput`, naming the option that is wrong.
pub(crate) fn read(
    given: TranscriptsOptions,
    progress: Arc<Progress>,
) -> Result<(Options, Option<PathBuf>), VerbatimError> {
    let mut options = Options { outlives: false, observer: Some(progress), ..Options::default() };
    options.wait = time("wait", given.wait, LONGEST)?;
    let upstream = &mut options.upstream;
    upstream.timeout = time("request_timeout", given.request_timeout, upstream.timeout)?;
    upstream.retries = given.retries.unwrap_or(upstream.retries);
    upstream.proxies.clone_from(&given.proxies);
    upstream.ca_file = given.ca_file.clone().map(PathBuf::from);
    options.youtube.clients.clone_from(&given.youtube_clients);
    options.service = given.server.as_ref().map(|server| ServiceOptions::new(&server.base_url, &server.key));
    options.speech = given.speech.as_ref().map(|speech| SpeechOptions {
        api_key: speech.api_key.clone(),
        ..SpeechOptions::new(&speech.base_url, &speech.model)
    });
    options.chat = given.chat.as_ref().map(|chat| ChatModelOptions {
        api_key: chat.api_key.clone(),
        ..ChatModelOptions::new(&chat.base_url, &chat.model)
    });
    if let Some(base_url) = &given.base_url {
        options.set_base_url(base_url);
    }
    if let Some(free) = given.free_per_month {
        options.lookup.free_per_month = free.into();
    }
    let folder = storage(given.storage.as_ref(), &mut options)?;
    own(given, &mut options)?;
    options.check()?;
    Ok((options, folder))
}

/// Where everything is kept; the folder that may have to be made.
fn storage(given: Option<&Storage>, options: &mut Options) -> Result<Option<PathBuf>, VerbatimError> {
    let path = |path: &String| match path.is_empty() {
        false => Ok(PathBuf::from(path)),
        true => Err(Failure::invalid("storage: the path is empty")),
    };
    match given {
        None | Some(Storage::Memory) => Ok(None),
        Some(Storage::ArchiveFile { path: file }) => {
            options.storage = StorageOptions::ArchiveFile(path(file)?);
            Ok(None)
        }
        Some(Storage::Folder { path: folder }) => {
            let folder = path(folder)?;
            let (main, archive) = (folder.join("verbatim.db"), folder.join("archive.db"));
            options.storage = StorageOptions::Files { main, archive };
            Ok(Some(folder))
        }
    }
}

/// What the app brings along.
fn own(given: TranscriptsOptions, options: &mut Options) -> Result<(), VerbatimError> {
    let patience = time("store_timeout", given.store_timeout, STORE_TIMEOUT)?;
    let parts = &mut options.own;
    parts.archive = given.archive.map(|store| Arc::new(Foreign::new("archive", store, patience)) as _);
    parts.ledger = given.ledger.map(|store| Arc::new(Foreign::new("ledger", store, patience)) as _);
    parts.directory = given.directory.map(|store| Arc::new(Foreign::new("directory", store, patience)) as _);
    if let Some(model) = given.chat_model {
        let tokens = given.chat_context_tokens.unwrap_or(CONTEXT_TOKENS).max(1);
        parts.chat_model = Some(Arc::new(ForeignChatModel::new(model, tokens)));
    }
    let patience = time("supplier_timeout", given.supplier_timeout, SUPPLIER_TIMEOUT)?;
    let Some(list) = given.suppliers else {
        options.add_named_sources();
        return Ok(());
    };
    options.suppliers = SupplierOptions::none();
    for choice in list {
        match choice {
            SupplierChoice::BuiltIn { name } => {
                if !options.suppliers.add([name.as_str()]) {
                    return Err(Failure::invalid(format!("there is no supplier {name:?}")));
                }
            }
            SupplierChoice::Own { name, platforms, kind, supplier } => {
                if name.is_empty() {
                    return Err(Failure::invalid("a supplier must have a name"));
                }
                let platforms = if platforms.is_empty() { Platform::ALL.to_vec() } else { platforms };
                let own = Arc::new(ForeignSupplier::new(supplier, name, platforms, kind, patience));
                options.suppliers.add_own(own.as_ref());
                options.own.suppliers.push(own);
            }
        }
    }
    Ok(())
}

unsaid!(SupplierChoice, ModelService, ServerSource, TranscriptsOptions);
