//! A name in the path of a request.

use axum::extract::{Path, rejection::PathRejection};

/// A name in a path, as handlers extract it.
pub(crate) type PathName = Result<Path<String>, PathRejection>;

/// The name, decoded. One that is not UTF-8 is empty, which is the name of nothing: the handler answers it as any
/// other unknown name, in the form of its API.
pub(crate) fn path_name(path: PathName) -> String {
    path.map(|Path(name)| name).unwrap_or_default()
}
