//! The native part of the Python package `verbatim`: a thin layer over the facade. No rule lives in it.
//!
//! The package's own Python modules are beside it, in `python/verbatim`; they are what people import.

use pyo3::prelude::*;

mod batch;
mod client;
mod conformance;
mod desk;
mod document;
mod ends;
mod engine;
mod fault;
mod memory;
mod opener;
mod options;
mod pages;
mod pending;
mod ports;
mod raised;
mod runtime;
mod segment;
mod transcript;

/// What the package `verbatim` is made of; import that one.
#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use crate::{
        batch::Batch,
        client::Server,
        conformance::{_cases, _content_digest, _run_case},
        desk::Desk,
        ends::{_after_fork, _after_fork_in_child, _at_exit, _before_fork},
        engine::Engine,
        memory::MemoryStore,
        pages::{_plain_cues, Pages},
        pending::Pending,
        ports::Ask,
        segment::{Segment, Segments},
        transcript::Transcript,
    };

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let sequence = module.py().import("collections.abc")?.getattr("Sequence")?;
        for class in ["Segments", "Transcript"] {
            sequence.call_method1("register", (module.getattr(class)?,))?;
        }
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
