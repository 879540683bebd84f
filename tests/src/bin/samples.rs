//! The Rust samples of the documentation: `samples NAME` runs one.
//!
//! A test of the samples compares the included file with the documentation.

#[expect(clippy::print_stdout, reason = "samples print the response")]
mod samples {
    include!("../../samples/rust_samples.inc");
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The client of this workspace has TLS without a provider of cryptography. An error means that it has one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    samples::run(&std::env::args().nth(1).unwrap_or_default())
}
