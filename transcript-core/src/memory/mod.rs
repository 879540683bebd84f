//! In-memory implementations of the storage ports.
