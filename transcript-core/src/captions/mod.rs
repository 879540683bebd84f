//! Caption formats in, segments out: pure, and never a panic.
