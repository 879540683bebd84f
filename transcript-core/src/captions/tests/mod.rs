//! Tests that apply to all parsers.

mod findings;
mod hostile;
mod recordings;
