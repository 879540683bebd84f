//! Acceptance tests of Verbatim that cross crates, and the replay proxy that they use.
