//! From the keywords of Python to the options of the facade.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use pyo3::{
    conversion::FromPyObjectOwned,
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyString},
};
use verbatim::{
    ChatModelOptions, Options, OwnParts, ServiceOptions, SpeechOptions, StorageOptions, SupplierOptions,
    YtDlpOptions,
};

use crate::{
    fault::of_core,
    ports::{PyChatModel, PyStore, PySupplier},
};

/// The keywords, all of them there.
struct Keywords<'a, 'py>(&'a Bound<'py, PyDict>);

impl<'py> Keywords<'_, 'py> {
    /// What was given for a keyword; none for None.
    fn given(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.0.get_item(name)?.filter(|value| !value.is_none()))
    }

    fn read<T>(&self, name: &str) -> PyResult<Option<T>>
    where
        T: FromPyObjectOwned<'py>,
    {
        let Some(value) = self.given(name)? else { return Ok(None) };
        value.extract::<T>().map(Some).map_err(|error| wrong(name, error.into()))
    }

    fn seconds(&self, name: &str) -> PyResult<Option<Duration>> {
        let Some(seconds) = self.read::<f64>(name)? else { return Ok(None) };
        match Duration::try_from_secs_f64(seconds).ok().filter(|wait| *wait <= LONGEST && !wait.is_zero()) {
            Some(wait) => Ok(Some(wait)),
            None => Err(PyValueError::new_err(format!(
                "{name} must be seconds, more than 0 and at most a day, not {seconds}"
            ))),
        }
    }

    fn texts(&self, name: &str) -> PyResult<Vec<String>> {
        match self.given(name)? {
            None => Ok(Vec::new()),
            Some(value) => match value.cast::<PyString>() {
                Ok(one) => Ok(vec![one.to_str()?.to_owned()]),
                Err(_) => value.extract().map_err(|error| wrong(name, error)),
            },
        }
    }
}

const LONGEST: Duration = Duration::from_secs(24 * 3_600);
/// How many bytes of transcripts are kept where no archive is named.
const MEMORY_BYTES: u64 = 64 << 20;

/// The same error, naming the keyword.
fn wrong(name: &str, error: PyErr) -> PyErr {
    Python::attach(|py| {
        let text = format!("{name}: {}", error.value(py));
        match error.is_instance_of::<PyTypeError>(py) {
            true => PyTypeError::new_err(text),
            false => PyValueError::new_err(text),
        }
    })
}

/// The options that the keywords name, and a number for whose they are, by which their suppliers know it.
///
/// # Errors
/// `TypeError`, `ValueError` or `InvalidInput`, naming the keyword.
pub(crate) fn read(keywords: &Bound<'_, PyDict>) -> PyResult<(Options, u64)> {
    static OWNERS: AtomicU64 = AtomicU64::new(1);
    let owner = OWNERS.fetch_add(1, Ordering::Relaxed);
    let py = keywords.py();
    let given = Keywords(keywords);
    // What a service began goes on for who asks again; a script that was interrupted wants no more.
    let outlives = given.read::<bool>("outlives")?.unwrap_or(false);
    let mut options = Options { outlives, ..Options::default() };
    storage(&given, &mut options)?;
    let upstream = &mut options.upstream;
    upstream.proxies = given.texts("proxies")?;
    upstream.ca_file = given.read::<PathBuf>("ca_file")?;
    upstream.timeout = given.seconds("request_timeout")?.unwrap_or(upstream.timeout);
    upstream.retries = given.read::<u32>("retries")?.unwrap_or(upstream.retries);
    if let Some(at_once) = given.read::<u32>("at_once")? {
        upstream.concurrency = at_once.max(1);
        options.at_once.youtube_captions = at_once;
        options.at_once.tiktok_captions = at_once;
        options.at_once.x_captions = at_once;
        options.at_once.verbatim_service = at_once;
    }
    // A program waits for its answer, as long as that takes: the whole work has its own end.
    options.wait = given.seconds("timeout")?.unwrap_or(LONGEST);
    options.youtube.clients = given.texts("youtube_clients")?;
    options.ytdlp = YtDlpOptions { program: given.read::<PathBuf>("ytdlp")? };
    if let Some((base_url, api_key)) = given.read::<(String, String)>("server")? {
        options.service = Some(ServiceOptions::new(base_url, api_key));
    }
    if let Some(speech) = given.read::<Model>("speech")? {
        options.speech = Some(SpeechOptions { api_key: speech.2, ..SpeechOptions::new(speech.0, speech.1) });
    }
    let chat = given.given("chat")?;
    if let Some(own) = chat.as_ref().filter(|chat| answers(chat, "complete")) {
        options.own.chat_model = Some(Arc::new(PyChatModel::new(own.clone())?));
    } else if let Some(chat) = given.read::<Model>("chat")? {
        options.chat = Some(ChatModelOptions { api_key: chat.2, ..ChatModelOptions::new(chat.0, chat.1) });
    }
    suppliers(&given, owner, &mut options)?;
    limits(&given, &mut options)?;
    options.check().map_err(|error| of_core(py, &error))?;
    Ok((options, owner))
}

/// A model behind a service: its address, its name and perhaps a key.
type Model = (String, String, Option<String>);

/// What the service gives whom; none of it where there is no service.
fn limits(given: &Keywords<'_, '_>, options: &mut Options) -> PyResult<()> {
    if let Some(base_url) = given.read::<String>("base_url")? {
        options.set_base_url(&base_url);
    }
    let lookup = &mut options.lookup;
    let set = |name: &str, place: &mut u64| {
        given.read::<u64>(name).map(|value| value.into_iter().for_each(|value| *place = value))
    };
    set("free_per_month", &mut lookup.free_per_month)?;
    set("plus_per_day", &mut lookup.plus_per_day)?;
    set("service_per_day", &mut lookup.service_per_day)?;
    set("credits_per_transcript", &mut options.accounts.credits_per_transcript)?;
    set("credits_per_message", &mut options.accounts.credits_per_message)?;
    Ok(())
}

/// Where transcripts are kept, and keys and accounts.
fn storage(given: &Keywords<'_, '_>, options: &mut Options) -> PyResult<()> {
    let archive = given.given("archive")?;
    if let Some(own) = archive.as_ref().filter(|archive| answers(archive, "find")) {
        options.own.archive = Some(Arc::new(PyStore::new(own.clone(), "archive")));
    }
    let archive = archive.filter(|archive| !answers(archive, "find"));
    let archive = archive.map(|archive| place("archive", &archive)).transpose()?;
    let ledger = given.given("ledger")?;
    if let Some(own) = ledger.as_ref().filter(|ledger| answers(ledger, "hold")) {
        options.own.ledger = Some(Arc::new(PyStore::new(own.clone(), "ledger")));
    }
    let ledger = ledger.filter(|ledger| !answers(ledger, "hold"));
    let ledger = ledger.map(|ledger| place("ledger", &ledger)).transpose()?;
    if let Some(own) = given.given("directory")? {
        if !answers(&own, "owner") {
            return Err(PyTypeError::new_err("a directory must have the methods of verbatim.Directory"));
        }
        options.own.directory = Some(Arc::new(PyStore::new(own, "directory")));
    }
    options.storage = match (archive, ledger) {
        (Some(archive), Some(main)) => StorageOptions::Files { main, archive },
        (Some(archive), None) => StorageOptions::ArchiveFile(archive),
        (None, None) => StorageOptions::MemoryUpTo(MEMORY_BYTES),
        (None, Some(_)) => {
            return Err(PyValueError::new_err("a ledger in a file needs an archive in a file"));
        }
    };
    Ok(())
}

/// Whether an object has a method of this name.
fn answers(object: &Bound<'_, PyAny>, method: &str) -> bool {
    object.getattr(method).is_ok_and(|method| method.is_callable())
        // Texts have a `find`, too.
        && object.cast::<PyString>().is_err()
}

/// The file that `sqlite:///…` or a path names.
fn place(keyword: &str, value: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    let wrong =
        || PyValueError::new_err(format!("{keyword} must be 'sqlite:///FILE', a path, or None, not {value}"));
    let Ok(text) = value.cast::<PyString>() else {
        return value.extract().map_err(|_| {
            PyTypeError::new_err(format!("{keyword} must be 'sqlite:///FILE', a path, or None"))
        });
    };
    let text = text.to_str()?;
    let path = match text.split_once("://") {
        Some(("sqlite", path)) => path.strip_prefix('/').ok_or_else(wrong)?,
        Some(_) => return Err(wrong()),
        None => text,
    };
    if path.is_empty() { Err(wrong()) } else { Ok(PathBuf::from(path)) }
}

/// Who is asked: names, and Python objects.
fn suppliers(given: &Keywords<'_, '_>, owner: u64, options: &mut Options) -> PyResult<()> {
    let Some(list) = given.given("suppliers")? else {
        options.add_named_sources();
        return Ok(());
    };
    if list.cast::<PyString>().is_ok() {
        return Err(PyTypeError::new_err("suppliers must be a list of names and suppliers, not one text"));
    }
    options.suppliers = SupplierOptions::none();
    for item in list.try_iter()? {
        let item = item?;
        if let Ok(name) = item.cast::<PyString>() {
            let name = name.to_str()?;
            if !options.suppliers.add([name]) {
                return Err(PyValueError::new_err(format!("there is no supplier {name:?}")));
            }
        } else {
            let own = Arc::new(PySupplier::new(owner, item)?);
            let OwnParts { suppliers, .. } = &mut options.own;
            options.suppliers.add_own(own.as_ref());
            suppliers.push(own);
        }
    }
    Ok(())
}
