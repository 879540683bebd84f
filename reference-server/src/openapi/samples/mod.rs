//! Every operation as a call that can be copied: in curl, Python and JavaScript. The tests run all of them.
//!
//! What the reader must bring along (a key, the token of a mail, an order) is taken from the environment.

mod calls;
mod curl;
mod javascript;
mod python;

use serde_json::{Value, json};

use calls::{Body, CALLS, Call, Given};

/// Adds the samples to the operations of the paths (`x-codeSamples`), for a service at this address.
pub(super) fn add(paths: &mut Value, base_url: &str) {
    let base_url = base_url.trim_end_matches('/');
    let items = paths.as_object_mut().into_iter().flatten();
    for (path, item) in items {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            let id = operation["operationId"].as_str().unwrap_or_default();
            let Some(call) = CALLS.iter().find(|call| call.operation == id) else { continue };
            let request = Request { call, method: method.to_ascii_uppercase(), base_url, path };
            operation["x-codeSamples"] = json!([
                { "lang": "Shell", "label": "curl", "source": curl::source(&request) },
                { "lang": "Python", "label": "Python", "source": python::source(&request) },
                { "lang": "JavaScript", "label": "JavaScript", "source": javascript::source(&request) }
            ]);
        }
    }
}

/// One call, and where it goes.
struct Request<'a> {
    call: &'a Call,
    method: String,
    base_url: &'a str,
    path: &'a str,
}

impl Request<'_> {
    /// The address without a query, each part of the path that is given put in by `given`.
    fn address(&self, given: impl Fn(Given) -> String) -> String {
        let mut address = format!("{}{}", self.base_url, self.path);
        for (name, value) in self.call.path {
            address = address.replace(&format!("{{{name}}}"), &given(*value));
        }
        address
    }

    /// Whether it is a GET, which needs not be said.
    fn is_get(&self) -> bool {
        self.method == "GET"
    }
}
