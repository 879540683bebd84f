//! What must hold of all parsers together.

mod hostile;
mod recordings;
