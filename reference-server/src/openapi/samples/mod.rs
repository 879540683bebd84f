//! Code samples of every operation, and of the guides, in curl, Python, JavaScript and Rust. The tests run all of them.
//!
//! Values that the reader must supply (a key, the token of a mail, an order) are environment variables.

mod calls;
mod curl;
mod guide_calls;
mod javascript;
mod python;
mod rust;

use serde_json::{Value, json};

use calls::{CALLS, SampleBody, SampleCall, SampleParameter};
use guide_calls::GUIDE_CALLS;

/// Adds the samples (`x-codeSamples`) to the operations, for a service at this address.
pub(super) fn add(paths: &mut Value, base_url: &str) {
    let base_url = base_url.trim_end_matches('/');
    let items = paths.as_object_mut().into_iter().flatten();
    for (path, item) in items {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            let id = operation["operationId"].as_str().unwrap_or_default();
            let Some(call) = CALLS.iter().find(|call| call.operation == id) else { continue };
            let request = SampleRequest { call, method: method.to_ascii_uppercase(), base_url, path };
            operation["x-codeSamples"] = request.samples();
        }
    }
}

/// Samples of the guides by name, for a service at this address.
pub(super) fn guides(paths: &Value, base_url: &str) -> Value {
    let base_url = base_url.trim_end_matches('/');
    let samples = |call: &SampleCall| {
        paths.as_object()?.iter().find_map(|(path, item)| {
            let is_called = |operation: &Value| operation["operationId"] == call.operation;
            let (method, _) = item.as_object()?.iter().find(|(_, operation)| is_called(operation))?;
            Some(SampleRequest { call, method: method.to_ascii_uppercase(), base_url, path }.samples())
        })
    };
    GUIDE_CALLS.iter().filter_map(|(name, call)| Some(((*name).to_owned(), samples(call)?))).collect()
}

/// Call with its method and address.
struct SampleRequest<'a> {
    call: &'a SampleCall,
    method: String,
    base_url: &'a str,
    path: &'a str,
}

impl SampleRequest<'_> {
    /// The samples in all languages.
    fn samples(&self) -> Value {
        json!([
            { "lang": "Shell", "label": "curl", "source": curl::source(self) },
            { "lang": "Python", "label": "Python", "source": python::source(self) },
            { "lang": "JavaScript", "label": "JavaScript", "source": javascript::source(self) },
            { "lang": "Rust", "label": "Rust", "source": rust::source(self) }
        ])
    }

    /// Address without the query; `render` formats the path parameters.
    fn address(&self, render: impl Fn(SampleParameter) -> String) -> String {
        let mut address = format!("{}{}", self.base_url, self.path);
        for (name, value) in self.call.path {
            address = address.replace(&format!("{{{name}}}"), &render(*value));
        }
        address
    }

    /// Whether the method is GET, the default of all clients.
    fn is_get(&self) -> bool {
        self.method == "GET"
    }
}
