//! Caption formats in, segments out: pure, and never a panic.

/// The version of the parsers, stored with each transcript that they made.
pub const PARSER_VERSION: u32 = 1;
