//! Native module of the Python package `verbatim_transcripts`: a thin layer over the facade, without rules.
//!
//! The Python modules in `python/verbatim_transcripts` are the public API.

use pyo3::prelude::*;

mod archive_search;
mod batch;
mod components;
mod conformance;
mod connection;
mod data;
mod document;
mod engine;
mod events;
mod exception_cause;
mod exceptions;
mod jobs;
mod languages;
mod lazy_open;
mod lifecycle;
mod memory;
mod metadata;
mod options;
mod pages;
mod pending;
mod ports;
mod runtime;
mod segment;
mod transcript;
mod video_list;
mod word;
mod wording;

/// Private classes and functions of the package `verbatim_transcripts`; import the package instead.
#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use crate::{
        archive_search::SearchParams,
        batch::Batch,
        conformance::{_cases, _content_digest, _run_case},
        connection::Connection,
        data::_linked_video,
        engine::{_check_call, Engine},
        events::_deliver_events,
        jobs::_verify_webhook,
        lifecycle::{_after_fork, _after_fork_in_child, _at_exit, _before_fork},
        memory::MemoryStore,
        pages::{_parse_raw_timedtext, PageTransport},
        pending::{_mark_loop_thread, PendingCall},
        ports::SupplyRequest,
        segment::{Segment, Segments},
        transcript::Transcript,
        video_list::_list_address,
        video_list::_search_address,
    };

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let sequence = module.py().import("collections.abc")?.getattr("Sequence")?;
        for class in ["Segment", "Segments", "Transcript"] {
            sequence.call_method1("register", (module.getattr(class)?,))?;
        }
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
