//! Options of the app, converted into those of the facade.

use std::{path::PathBuf, sync::Arc, time::Duration};

#[cfg(feature = "chat")]
use transcript_core::chat::CONTEXT_TOKENS_DEFAULT;
#[cfg(feature = "local-service")]
use transcript_core::memory::{MemoryDirectory, MemoryLedger};
use transcript_core::{supplier::SupplierKind, video::Platform};
#[cfg(feature = "service")]
use verbatim::service::ServiceOptions;
#[cfg(feature = "chat-model")]
use verbatim::{ChatModelOptions, EmbeddingsOptions};
use verbatim::{Options, StorageOptions, SupplierOptions};

#[cfg(feature = "chat")]
use crate::ports::{ChatModel, EmbeddingModel, ForeignChatModel, ForeignEmbedder};
#[cfg(feature = "local-service")]
use crate::ports::{DirectoryStore, LedgerStore, Mailer};
use crate::{
    error::{Failure, FailureKind, VerbatimError},
    ports::{ArchiveStore, ForeignStore, ForeignSupplier, Supplier},
    progress::Progress,
};

/// Maximum of all timeouts.
const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Default of `store_timeout`.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);
/// Default of `supplier_timeout`.
const SUPPLIER_TIMEOUT: Duration = Duration::from_secs(300);
/// Default of `chat_timeout`.
#[cfg(feature = "chat")]
const CHAT_TIMEOUT: Duration = Duration::from_secs(60);

/// How a supplier obtains transcripts.
#[uniffi::remote(Enum)]
pub enum SupplierKind {
    /// From captions of the platform.
    Captions,
    /// By speech recognition.
    Speech,
    /// From another service that has transcripts.
    Remote,
}

/// Storage of transcripts, keys and the ledger.
#[derive(Clone, Debug, uniffi::Enum)]
pub enum Storage {
    /// In memory: lost when the process ends.
    Memory,
    /// In SQLite files in a folder, created if it does not exist.
    ///
    /// `archive.db` has the transcripts, `verbatim.db` the keys and the ledger.
    Folder {
        /// The folder.
        path: String,
    },
    /// Transcripts in one SQLite file, everything else in memory.
    ///
    /// For an app without a service in its process: a pause loses queued mails and the replies for idempotency keys.
    /// Keys, accounts and credits stay until the process ends.
    ArchiveFile {
        /// The file.
        path: String,
    },
}

/// A supplier of transcripts that are not archived.
#[derive(Clone, uniffi::Enum)]
pub enum SupplierSpec {
    /// A built-in supplier: `youtube-captions`, `tiktok-captions`, `x-captions`, `verbatim-service`, or
    /// `speech-to-text`.
    BuiltIn {
        /// Its name.
        name: String,
    },
    /// A supplier of the app.
    Custom {
        /// Its name, the `source` of its transcripts.
        name: String,
        /// The platforms that it covers; empty: all.
        platforms: Vec<Platform>,
        /// How it obtains transcripts.
        kind: SupplierKind,
        /// The supplier.
        supplier: Arc<dyn Supplier>,
    },
}

/// A model of an OpenAI-compatible service.
#[derive(Clone, uniffi::Record)]
#[uniffi::export(Debug)]
pub struct ModelService {
    /// Address of the service, including `/v1`.
    pub base_url: String,
    /// Name of the model.
    pub model: String,
    /// API key, if the service requires one.
    #[uniffi(default = None)]
    pub api_key: Option<String>,
}

/// Another Verbatim server as a supplier.
#[derive(Clone, uniffi::Record)]
#[uniffi::export(Debug)]
pub struct RemoteServer {
    /// Address of the server.
    pub base_url: String,
    /// API key of its lookup API: `vbk_…`.
    pub key: String,
}

/// All options. By default everything is stored in memory, and requests go to the platforms directly.
#[derive(Clone, Default, uniffi::Record)]
#[uniffi::export(Debug)]
pub struct TranscriptsOptions {
    /// Storage; `None`: in memory.
    #[uniffi(default = None)]
    pub storage: Option<Storage>,
    /// Suppliers in order; `None`: those of the platforms. An empty list: the archive only.
    #[uniffi(default = None)]
    pub suppliers: Option<Vec<SupplierSpec>>,
    /// Archive of the app, instead of the storage's.
    #[uniffi(default = None)]
    pub archive: Option<Arc<dyn ArchiveStore>>,
    /// Ledger of the app, instead of the storage's.
    #[cfg(feature = "local-service")]
    #[uniffi(default = None)]
    pub ledger: Option<Arc<dyn LedgerStore>>,
    /// Directory of keys and accounts of the app, instead of the storage's.
    #[cfg(feature = "local-service")]
    #[uniffi(default = None)]
    pub directory: Option<Arc<dyn DirectoryStore>>,
    /// Mailer of the app for registrations of the service in the process; `None`: mails stay queued.
    #[cfg(feature = "local-service")]
    #[uniffi(default = None)]
    pub mailer: Option<Arc<dyn Mailer>>,
    /// Chat model of the app.
    #[cfg(feature = "chat")]
    #[uniffi(default = None)]
    pub chat_model: Option<Arc<dyn ChatModel>>,
    /// Context size of the app's chat model in tokens; `None`: 32,000.
    #[cfg(feature = "chat")]
    #[uniffi(default = None)]
    pub chat_context_tokens: Option<u32>,
    /// Timeout of an answer of a chat model; `None`: 60 s.
    #[cfg(feature = "chat")]
    #[uniffi(default = None)]
    pub chat_timeout: Option<Duration>,
    /// Chat model of a service; `None`: answers consist of passages of the transcript.
    #[cfg(feature = "chat-model")]
    #[uniffi(default = None)]
    pub chat: Option<ModelService>,
    /// Embedding model of the app, by which chat finds passages that mean the same as the question.
    #[cfg(feature = "chat")]
    #[uniffi(default = None)]
    pub embedding_model: Option<Arc<dyn EmbeddingModel>>,
    /// Embedding model of a service; `None`: passages are found by their words.
    #[cfg(feature = "chat-model")]
    #[uniffi(default = None)]
    pub embeddings: Option<ModelService>,
    /// Speech recognition for videos without captions: the supplier `speech-to-text`.
    ///
    /// It requires ffmpeg, which mobile systems do not have.
    #[uniffi(default = None)]
    pub speech: Option<ModelService>,
    /// Another Verbatim server: the supplier `verbatim-service`.
    #[cfg(feature = "service")]
    #[uniffi(default = None)]
    pub server: Option<RemoteServer>,
    /// Maximum wait of a caller for a new transcript; `None`: a day. Each call can have a shorter timeout.
    #[uniffi(default = None)]
    pub wait: Option<Duration>,
    /// Timeout of one request to a platform; `None`: 20 s.
    #[uniffi(default = None)]
    pub request_timeout: Option<Duration>,
    /// Retries after a transient failure of a request; `None`: 2.
    #[uniffi(default = None)]
    pub retries: Option<u32>,
    /// Proxies of all requests, used in rotation; empty: a direct connection.
    #[uniffi(default = [])]
    pub proxies: Vec<String>,
    /// PEM file with root certificates that are trusted in addition to the system's.
    #[uniffi(default = None)]
    pub ca_file: Option<String>,
    /// Client identities for requests to YouTube, in order; empty: the built-in ones.
    #[uniffi(default = [])]
    pub youtube_clients: Vec<String>,
    /// Timeout of a supplier of the app; `None`: 5 minutes.
    #[uniffi(default = None)]
    pub supplier_timeout: Option<Duration>,
    /// Timeout of one call of a store of the app; `None`: 5 s.
    #[uniffi(default = None)]
    pub store_timeout: Option<Duration>,
    /// Base URL of links to the watch page: `http` or `https`; empty: no links; `None`: the built-in one.
    #[cfg(feature = "local-service")]
    #[uniffi(default = None)]
    pub base_url: Option<String>,
    /// New transcripts per month for a key without a plan; `None`: the built-in number.
    #[cfg(feature = "local-service")]
    #[uniffi(default = None)]
    pub free_per_month: Option<u32>,
}

/// A timeout option: more than 0 and at most a day.
fn timeout(name: &str, value: Option<Duration>, default: Duration) -> Result<Duration, VerbatimError> {
    match value {
        None => Ok(default),
        Some(timeout) if !timeout.is_zero() && timeout <= TIMEOUT_MAX => Ok(timeout),
        Some(_) => Err(Failure::invalid_input(format!("{name} must be more than 0 and at most a day"))),
    }
}

/// Checks a base URL of links, to which a path is added; an empty one means no links.
#[cfg(feature = "local-service")]
fn check_base_url(address: &str) -> Result<(), VerbatimError> {
    if address.is_empty() {
        return Ok(());
    }
    let (scheme, rest) = address.split_once("://").unwrap_or_default();
    let is_http = ["http", "https"].iter().any(|name| scheme.eq_ignore_ascii_case(name));
    let host = rest.split('/').next().unwrap_or_default();
    let is_forbidden = |letter: char| letter.is_whitespace() || letter.is_control() || "?#".contains(letter);
    if !is_http
        || host.is_empty()
        || host.starts_with(':')
        || host.contains('@')
        || rest.contains(is_forbidden)
    {
        return Err(Failure::invalid_input(
            "base_url must be http:// or https:// with a host, without a query or a user name",
        ));
    }
    Ok(())
}

/// Converts into the options of the facade; the path is the folder to create for storage files.
///
/// # Errors
/// `InvalidInput` with the name of the invalid option.
pub(crate) fn convert(
    given: TranscriptsOptions,
    progress: Arc<Progress>,
) -> Result<(Options, Option<PathBuf>), VerbatimError> {
    let mut options = Options { detach_unpaid: false, observer: Some(progress), ..Options::default() };
    options.wait = timeout("wait", given.wait, TIMEOUT_MAX)?;
    #[cfg(feature = "upstream")]
    {
        let upstream = &mut options.upstream;
        upstream.timeout = timeout("request_timeout", given.request_timeout, upstream.timeout)?;
        upstream.retries = given.retries.unwrap_or(upstream.retries);
        upstream.proxies.clone_from(&given.proxies);
        upstream.ca_file = given.ca_file.clone().map(PathBuf::from);
    }
    options.youtube.clients.clone_from(&given.youtube_clients);
    #[cfg(feature = "service")]
    {
        let server = given.server.as_ref();
        options.service = server.map(|server| ServiceOptions::new(&server.base_url).with_key(&server.key));
    }
    if given.speech.is_some() {
        return Err(Failure::error(
            FailureKind::Unsupported,
            "this build cannot transcribe audio: it lacks the feature speech, or is not for Unix",
        ));
    }
    #[cfg(feature = "chat-model")]
    {
        let chat_timeout = timeout("chat_timeout", given.chat_timeout, CHAT_TIMEOUT)?;
        options.chat = given.chat.as_ref().map(|chat| ChatModelOptions {
            base_url: chat.base_url.clone(),
            model: chat.model.clone(),
            api_key: chat.api_key.clone(),
            timeout: chat_timeout,
            ..ChatModelOptions::default()
        });
        options.embeddings = given.embeddings.as_ref().map(|service| EmbeddingsOptions {
            base_url: service.base_url.clone(),
            model: service.model.clone(),
            api_key: service.api_key.clone(),
            ..EmbeddingsOptions::default()
        });
    }
    #[cfg(feature = "local-service")]
    {
        if let Some(base_url) = &given.base_url {
            check_base_url(base_url)?;
            options.set_base_url(base_url);
        }
        if let Some(free) = given.free_per_month {
            options.lookup.free_per_month = free.into();
        }
    }
    let folder = set_storage(given.storage.as_ref(), &mut options)?;
    set_custom_ports(given, &mut options)?;
    options.check()?;
    Ok((options, folder))
}

/// Sets the storage and returns the folder to create.
fn set_storage(given: Option<&Storage>, options: &mut Options) -> Result<Option<PathBuf>, VerbatimError> {
    let path = |path: &String| match path.is_empty() {
        false => Ok(PathBuf::from(path)),
        true => Err(Failure::invalid_input("storage: the path is empty")),
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

/// Sets the ports that the app implements, and the suppliers.
fn set_custom_ports(given: TranscriptsOptions, options: &mut Options) -> Result<(), VerbatimError> {
    let store_timeout = timeout("store_timeout", given.store_timeout, STORE_TIMEOUT)?;
    let ports = &mut options.custom;
    ports.archive =
        given.archive.map(|store| Arc::new(ForeignStore::new("archive", store, store_timeout)) as _);
    #[cfg(feature = "local-service")]
    {
        ports.ledger =
            given.ledger.map(|store| Arc::new(ForeignStore::new("ledger", store, store_timeout)) as _);
        ports.directory =
            given.directory.map(|store| Arc::new(ForeignStore::new("directory", store, store_timeout)) as _);
    }
    #[cfg(feature = "local-service")]
    if matches!(options.storage, StorageOptions::ArchiveFile(_)) {
        // Stores of this object: those of the facade are lost with a pause, which closes the file.
        ports.ledger.get_or_insert_with(|| Arc::new(MemoryLedger::default()));
        ports.directory.get_or_insert_with(|| Arc::new(MemoryDirectory::default()));
    }
    #[cfg(feature = "chat")]
    if let Some(model) = given.chat_model {
        let tokens = given.chat_context_tokens.unwrap_or(CONTEXT_TOKENS_DEFAULT).max(1);
        ports.chat_model = Some(Arc::new(ForeignChatModel::new(model, tokens)));
        ports.chat_timeout = Some(timeout("chat_timeout", given.chat_timeout, CHAT_TIMEOUT)?);
    }
    #[cfg(feature = "chat")]
    if let Some(model) = given.embedding_model {
        ports.embedder = Some(Arc::new(ForeignEmbedder::new(model)?));
    }
    let supplier_timeout = timeout("supplier_timeout", given.supplier_timeout, SUPPLIER_TIMEOUT)?;
    let Some(specs) = given.suppliers else {
        options.add_named_sources();
        return Ok(());
    };
    options.suppliers = SupplierOptions::none();
    for spec in specs {
        match spec {
            SupplierSpec::BuiltIn { name } => {
                if !options.suppliers.add([name.as_str()]) {
                    return Err(Failure::invalid_input(format!("unknown supplier {name:?}")));
                }
            }
            SupplierSpec::Custom { name, platforms, kind, supplier } => {
                if name.is_empty() {
                    return Err(Failure::invalid_input("a supplier must have a name"));
                }
                let platforms = if platforms.is_empty() { Platform::ALL.to_vec() } else { platforms };
                let custom =
                    Arc::new(ForeignSupplier::new(supplier, name, platforms, kind, supplier_timeout));
                options.suppliers.add_custom(custom.as_ref());
                options.custom.suppliers.push(custom);
            }
        }
    }
    Ok(())
}

transcript_core::debug_fields!(SupplierSpec {});
transcript_core::debug_fields!(ModelService {});
transcript_core::debug_fields!(RemoteServer {});
transcript_core::debug_fields!(TranscriptsOptions {});
