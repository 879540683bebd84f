//! Names in the path of a request.

use axum::extract::{Path, rejection::PathRejection};

/// A name in a path, or a pair of names, as handlers extract them.
pub(crate) type PathName<T = String> = Result<Path<T>, PathRejection>;

/// The name or names, decoded. One that is not UTF-8 is empty, which is the name of nothing: the handler answers it as
/// any other unknown name, in the form of its API.
pub(crate) fn path_name<T: Default>(path: PathName<T>) -> T {
    path.map(|Path(name)| name).unwrap_or_default()
}
