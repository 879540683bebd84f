//! What Verbatim reaches over HTTP: the platforms' captions.
