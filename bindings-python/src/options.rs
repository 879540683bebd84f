//! Conversion of Python keywords to the options of the facade.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use pyo3::{
    conversion::FromPyObjectOwned,
    exceptions::{PyOverflowError, PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyString, PyTuple},
};
use verbatim::{
    ChatModelOptions, CustomPorts, DatabaseOptions, EmbeddingsOptions, HttpOptions, Options, ProxyVariables,
    SpeechOptions, StorageOptions, SupplierOptions, YtDlpOptions, service::ServiceOptions,
};

use crate::{
    components::Components,
    events::PyObserver,
    exceptions::core_exception,
    ports::{self, PyChatModel, PyEmbedder, PySupplier, has_method},
};

/// The keyword arguments.
struct OptionKeywords<'a, 'py>(&'a Bound<'py, PyDict>);

impl<'py> OptionKeywords<'_, 'py> {
    /// The value of a keyword; `None` if it is missing or `None` in Python.
    fn value(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.0.get_item(name)?.filter(|value| !value.is_none()))
    }

    fn read<T>(&self, name: &str) -> PyResult<Option<T>>
    where
        T: FromPyObjectOwned<'py>,
    {
        let Some(value) = self.value(name)? else { return Ok(None) };
        extract::<T>(&value).map(Some).map_err(|error| with_keyword(name, error))
    }

    fn path(&self, name: &str) -> PyResult<Option<PathBuf>> {
        let path = self.value(name)?.map(|value| expand_user(&value)).transpose();
        path.map_err(|error| with_keyword(name, error))
    }

    fn seconds(&self, name: &str) -> PyResult<Option<Duration>> {
        let Some(seconds) = self.read::<f64>(name)? else { return Ok(None) };
        duration(name, seconds).map(Some)
    }

    fn texts(&self, name: &str) -> PyResult<Vec<String>> {
        match self.value(name)? {
            None => Ok(Vec::new()),
            Some(value) => match value.cast::<PyString>() {
                Ok(one) => Ok(vec![one.to_str()?.to_owned()]),
                Err(_) => value.extract().map_err(|error| with_keyword(name, error)),
            },
        }
    }
}

/// A number of seconds as a duration.
///
/// # Errors
/// `ValueError`, naming the keyword, if it is not above 0 and at most one day.
pub(crate) fn duration(name: &str, seconds: f64) -> PyResult<Duration> {
    let duration = Duration::try_from_secs_f64(seconds).ok();
    duration.filter(|wait| *wait <= DURATION_MAX && !wait.is_zero()).ok_or_else(|| {
        PyValueError::new_err(format!(
            "{name} must be a number of seconds greater than 0 and at most one day, not {seconds}"
        ))
    })
}

/// The value of an argument.
///
/// # Errors
/// `ValueError` for a number out of range, as for other values, and not Python's `OverflowError`.
pub(crate) fn extract<'py, T>(value: &Bound<'py, PyAny>) -> PyResult<T>
where
    T: FromPyObjectOwned<'py>,
{
    value.extract::<T>().map_err(|error| {
        let error: PyErr = error.into();
        match error.is_instance_of::<PyOverflowError>(value.py()) {
            true => PyValueError::new_err("the number is out of range"),
            false => error,
        }
    })
}

const DURATION_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Size limit of the in-memory archive.
const MEMORY_BYTES: u64 = 64 << 20;

/// The same exception, with the keyword in its message.
fn with_keyword(name: &str, error: PyErr) -> PyErr {
    Python::attach(|py| {
        let text = format!("{name}: {}", error.value(py));
        match error.is_instance_of::<PyTypeError>(py) {
            true => PyTypeError::new_err(text),
            false => PyValueError::new_err(text),
        }
    })
}

/// Reads the options, and a number that identifies the engine to its custom suppliers. Adds the custom components.
///
/// # Errors
/// `TypeError`, `ValueError` or `InvalidInput`, naming the keyword.
pub(crate) fn read(keywords: &Bound<'_, PyDict>, components: &mut Components) -> PyResult<(Options, u64)> {
    static OWNERS: AtomicU64 = AtomicU64::new(1);
    let owner = OWNERS.fetch_add(1, Ordering::Relaxed);
    let py = keywords.py();
    let keywords = OptionKeywords(keywords);
    // A fetch of a service continues for repeated calls; a fetch of an interrupted script is cancelled.
    let detach_unpaid = keywords.read::<bool>("detach_unpaid")?.unwrap_or(false);
    let mut options = Options { detach_unpaid, ..Options::default() };
    storage(&keywords, &mut options, components)?;
    let upstream = &mut options.upstream;
    upstream.proxies = keywords.texts("proxies")?;
    upstream.ca_file = keywords.path("ca_file")?;
    environment(upstream);
    upstream.timeout = keywords.seconds("request_timeout")?.unwrap_or(upstream.timeout);
    upstream.retries = keywords.read::<u32>("retries")?.unwrap_or(upstream.retries);
    if let Some(concurrency) = keywords.read::<u32>("concurrency")? {
        if concurrency == 0 {
            return Err(PyValueError::new_err("concurrency must be at least 1"));
        }
        upstream.concurrency = concurrency;
        options.concurrency.youtube_captions = concurrency;
        options.concurrency.tiktok_captions = concurrency;
        options.concurrency.x_captions = concurrency;
        options.concurrency.verbatim_service = concurrency;
    }
    // A program waits for its result: the timeouts of the fetch itself apply.
    options.wait = keywords.seconds("timeout")?.unwrap_or(DURATION_MAX);
    options.youtube.clients = keywords.texts("youtube_clients")?;
    options.ytdlp = YtDlpOptions { program: keywords.path("ytdlp")? };
    if let Some((base_url, api_key)) = keywords.read::<(String, String)>("server")? {
        options.service = Some(ServiceOptions::new(base_url).with_key(api_key));
    }
    if let Some(speech) = keywords.read::<ModelOption>("speech")? {
        let (base_url, model, api_key) = speech;
        options.speech = Some(SpeechOptions { base_url, model, api_key, ..SpeechOptions::default() });
    }
    models(&keywords, &mut options, components)?;
    breaker(&keywords, &mut options)?;
    if let Some(hook) = keywords.value("on_event")? {
        if !hook.is_callable() {
            return Err(PyTypeError::new_err("on_event must be callable with one argument"));
        }
        options.observer = Some(Arc::new(PyObserver::new(hook, components)));
    }
    suppliers(&keywords, owner, &mut options, components)?;
    limits(&keywords, &mut options)?;
    options.check().map_err(|error| core_exception(py, &error))?;
    Ok((options, owner))
}

/// Reads the models of chat: of answers, and of the search for passages.
fn models(
    keywords: &OptionKeywords<'_, '_>,
    options: &mut Options,
    components: &mut Components,
) -> PyResult<()> {
    let chat = keywords.value("chat")?;
    if let Some(custom) = chat.as_ref().filter(|chat| has_method(chat, "complete")) {
        options.custom.chat_model = Some(Arc::new(PyChatModel::new(custom.clone(), components)?));
    } else if let Some((base_url, model, api_key)) = model_service(keywords, "chat", &CHAT_MODEL)? {
        options.chat = Some(ChatModelOptions { base_url, model, api_key, ..ChatModelOptions::default() });
    }
    let embeddings = keywords.value("embeddings")?;
    if let Some(custom) = embeddings.as_ref().filter(|embeddings| has_method(embeddings, "embed")) {
        options.custom.embedder = Some(Arc::new(PyEmbedder::new(custom.clone(), components)?));
    } else if let Some((base_url, model, api_key)) = model_service(keywords, "embeddings", &EMBEDDER)? {
        let service = EmbeddingsOptions { base_url, model, api_key, ..EmbeddingsOptions::default() };
        options.embeddings = Some(service);
    }
    Ok(())
}

/// A custom model: the name of its protocol, and what that requires.
type ModelProtocol = (&'static str, &'static str);

const CHAT_MODEL: ModelProtocol = ("ChatModel", "a method complete(messages, tokens_max)");
const EMBEDDER: ModelProtocol = ("EmbeddingModel", "a method embed(texts, purpose) and an attribute model");

/// Reads a model behind a service.
///
/// # Errors
/// `TypeError` if it is no tuple, with what a custom model needs: the caller may have passed an incomplete one.
fn model_service(
    keywords: &OptionKeywords<'_, '_>,
    keyword: &str,
    (class, parts): &ModelProtocol,
) -> PyResult<Option<ModelOption>> {
    if let Some(other) = keywords.value(keyword)?.filter(|value| value.cast::<PyTuple>().is_err()) {
        let kind = other.get_type();
        return Err(PyTypeError::new_err(format!(
            "{keyword} must be a tuple (base_url, model, api_key or None), or a \
             verbatim_transcripts.{class}, which has {parts}, not {kind}"
        )));
    }
    keywords.read::<ModelOption>(keyword)
}

/// The first cooldown of a breaker, if no keyword sets it.
///
/// The calls of a batch wait for it, so it must not be much longer than a call. Each trial that fails doubles it.
const BREAKER_COOLDOWN: Duration = Duration::from_millis(250);

/// Reads when the circuit breaker of a supplier opens, and for how long.
fn breaker(keywords: &OptionKeywords<'_, '_>, options: &mut Options) -> PyResult<()> {
    let breaker = &mut options.breaker;
    breaker.failures = keywords.read::<u32>("breaker_threshold")?.unwrap_or(breaker.failures);
    breaker.cooldown_max = keywords.seconds("breaker_cooldown_max")?.unwrap_or(breaker.cooldown_max);
    let first = BREAKER_COOLDOWN.min(breaker.cooldown_max);
    breaker.cooldown = keywords.seconds("breaker_cooldown")?.unwrap_or(first);
    if breaker.cooldown > breaker.cooldown_max {
        return Err(PyValueError::new_err("breaker_cooldown is longer than breaker_cooldown_max"));
    }
    Ok(())
}

/// A variable of the environment that is set and not blank.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// Reads from the environment what no keyword sets: the settings of the command and the server first, then the
/// variables of other programs. The system's certificates are those of `SSL_CERT_FILE`, if it is set.
fn environment(upstream: &mut HttpOptions) {
    if upstream.proxies.is_empty() {
        let proxies = variable("VERBATIM_UPSTREAM__PROXY").unwrap_or_default();
        let proxies = proxies.split(',').map(str::trim).filter(|proxy| !proxy.is_empty());
        upstream.proxies = proxies.map(ToOwned::to_owned).collect();
    }
    if upstream.proxies.is_empty() {
        upstream.proxy_variables = environment_proxy();
    }
    upstream.ca_file = upstream.ca_file.take().or_else(environment_ca_file);
}

/// The proxy that the environment names, for platforms and servers.
pub(crate) fn environment_proxy() -> Option<ProxyVariables> {
    ProxyVariables::read(variable)
}

/// The additional root certificates that the environment names, for platforms and servers.
pub(crate) fn environment_ca_file() -> Option<PathBuf> {
    let bundle = || variable("REQUESTS_CA_BUNDLE").map(PathBuf::from).filter(|path| path.exists());
    variable("VERBATIM_UPSTREAM__CA_FILE").map(PathBuf::from).or_else(bundle)
}

/// The variables for certificates that name no file, as a sentence without its stop; `None` if there are none.
///
/// They are no error before a connection fails: a program may not need them. Additional certificates matter only for a
/// server that is not trusted; without those of the system no connection is possible.
pub(crate) fn missing_certificates(is_untrusted: bool) -> Option<String> {
    let missing = |name: &str| {
        let path = variable(name).filter(|path| !Path::new(path).exists())?;
        Some(format!("{name} names {path}, which does not exist"))
    };
    let uses_bundle = is_untrusted && variable("VERBATIM_UPSTREAM__CA_FILE").is_none();
    let bundle = uses_bundle.then(|| missing("REQUESTS_CA_BUNDLE")).flatten();
    let missing: Vec<_> = missing("SSL_CERT_FILE").into_iter().chain(bundle).collect();
    (!missing.is_empty()).then(|| missing.join("; "))
}

/// A model behind a service: base URL, model name and optional API key.
type ModelOption = (String, String, Option<String>);

/// Reads the limits and prices of the service; without a service there are none.
fn limits(keywords: &OptionKeywords<'_, '_>, options: &mut Options) -> PyResult<()> {
    match keywords.read::<String>("base_url")? {
        Some(base_url) => options.set_base_url(&base_url),
        // Without a server there are no watch pages.
        None => options.lookup.base_url.clear(),
    }
    let lookup = &mut options.lookup;
    let set = |name: &str, option: &mut u64| {
        keywords.read::<u64>(name).map(|value| value.into_iter().for_each(|value| *option = value))
    };
    set("free_per_month", &mut lookup.free_per_month)?;
    set("plus_per_day", &mut lookup.plus_per_day)?;
    set("service_per_day", &mut lookup.service_per_day)?;
    set("credits_per_transcript", &mut options.accounts.credits_per_transcript)?;
    set("credits_per_message", &mut options.accounts.credits_per_message)?;
    Ok(())
}

/// Reads the stores of transcripts, and of keys and accounts.
fn storage(
    keywords: &OptionKeywords<'_, '_>,
    options: &mut Options,
    components: &mut Components,
) -> PyResult<()> {
    let mut places = [None, None];
    for (keyword, place) in ["archive", "ledger"].into_iter().zip(&mut places) {
        let Some(value) = keywords.value(keyword)? else { continue };
        *place = match read_place(keyword, &value)? {
            Some(found) => Some(found),
            None if keyword == "archive" => {
                options.custom.archive = Some(ports::archive(value, components)?);
                None
            }
            None => {
                options.custom.ledger = Some(ports::ledger(value, components)?);
                None
            }
        };
    }
    if let Some(custom) = keywords.value("directory")? {
        options.custom.directory = Some(ports::directory(custom, components)?);
    }
    let [archive, ledger] = places;
    options.storage = match (archive.unwrap_or(Place::Memory), ledger) {
        (Place::Memory, None | Some(Place::Memory)) => StorageOptions::BoundedMemory(MEMORY_BYTES),
        (Place::File(archive), None) => StorageOptions::ArchiveFile(archive),
        (Place::File(archive), Some(Place::File(main))) => StorageOptions::Files { main, archive },
        (Place::Postgres(archive), None) => StorageOptions::ArchivePostgres(DatabaseOptions::new(archive)),
        (Place::Postgres(archive), Some(Place::Postgres(main))) => StorageOptions::Postgres {
            main: DatabaseOptions::new(main),
            archive: DatabaseOptions::new(archive),
        },
        _ => {
            return Err(PyValueError::new_err(
                "archive and ledger must both be files, or both PostgreSQL databases",
            ));
        }
    };
    Ok(())
}

/// Where a store is.
enum Place {
    Memory,
    File(PathBuf),
    Postgres(String),
}

/// Reads the place of a store: a path, in which `~` is the home folder, or a URL. `None` for another object.
///
/// # Errors
/// `ValueError` for another URL.
fn read_place(keyword: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<Place>> {
    // A URL can contain a password: the message has none.
    let invalid = || {
        PyValueError::new_err(format!(
            "{keyword} must be a path, ':memory:', 'sqlite:///FILE', 'postgresql://…' or a custom store"
        ))
    };
    let is_path = value.hasattr("__fspath__")?;
    let Ok(text) = value.cast::<PyString>() else {
        return if is_path { expand_user(value).map(|path| Some(Place::File(path))) } else { Ok(None) };
    };
    let path = match text.to_str()?.split_once("://") {
        Some(("postgres" | "postgresql", _)) => {
            return Ok(Some(Place::Postgres(text.to_str()?.to_owned())));
        }
        Some(("sqlite", "" | "/:memory:" | ":memory:")) => return Ok(Some(Place::Memory)),
        Some(("sqlite", path)) => {
            let path = path.strip_prefix('/').ok_or_else(invalid)?;
            check_not_absolute(path)?;
            path
        }
        Some(_) => return Err(invalid()),
        None => text.to_str()?,
    };
    match path {
        "" => Err(invalid()),
        ":memory:" => Ok(Some(Place::Memory)),
        path => expand_user(PyString::new(value.py(), path).as_any()).map(|path| Some(Place::File(path))),
    }
}

/// Refuses a path that a server's URL means from the root folder, if it would create folders in the working folder.
fn check_not_absolute(path: &str) -> PyResult<()> {
    let Some((folder, _)) = path.split_once('/').filter(|(folder, _)| !folder.is_empty()) else {
        return Ok(());
    };
    if Path::new("/").join(folder).is_dir() && !Path::new(folder).exists() {
        return Err(PyValueError::new_err(format!(
            "sqlite:///{path} is a path in the working folder, which has no folder {folder:?}: write four slashes for \
             /{path}"
        )));
    }
    Ok(())
}

/// A path with the home folder in place of `~`.
///
/// # Errors
/// `TypeError` if it is none.
pub(crate) fn expand_user(path: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    path.py().import("os.path")?.call_method1("expanduser", (path,))?.extract()
}

/// As [`expand_user`]; `None` for `None`.
///
/// # Errors
/// As [`expand_user`].
pub(crate) fn optional_path(path: &Bound<'_, PyAny>) -> PyResult<Option<PathBuf>> {
    if path.is_none() { Ok(None) } else { expand_user(path).map(Some) }
}

/// Reads the suppliers: names, and Python objects.
fn suppliers(
    keywords: &OptionKeywords<'_, '_>,
    owner: u64,
    options: &mut Options,
    components: &mut Components,
) -> PyResult<()> {
    let Some(list) = keywords.value("suppliers")? else {
        options.add_named_sources();
        return Ok(());
    };
    if list.cast::<PyString>().is_ok() {
        return Err(PyTypeError::new_err("suppliers must be a list of names and suppliers, not a str"));
    }
    options.suppliers = SupplierOptions::none();
    for item in list.try_iter()? {
        let item = item?;
        if let Ok(name) = item.cast::<PyString>() {
            let name = name.to_str()?;
            if !options.suppliers.add([name]) {
                return Err(PyValueError::new_err(format!("unknown supplier {name:?}")));
            }
        } else {
            let custom = Arc::new(PySupplier::new(owner, item, components)?);
            let CustomPorts { suppliers, .. } = &mut options.custom;
            options.suppliers.add_custom(custom.as_ref());
            suppliers.push(custom);
        }
    }
    Ok(())
}
