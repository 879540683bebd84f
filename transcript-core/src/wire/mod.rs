//! The JSON of both surfaces, to the letter of the specification; shared by server and clients.

pub mod frame;
pub mod lookup;
mod problem;
pub mod segments;
pub mod v1;

pub use problem::Problem;
