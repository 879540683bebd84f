//! A link in, the words of its video out: the facade over Verbatim's parts.
