//! What must hold of all parsers together.

mod findings;
mod hostile;
mod recordings;
