//! Entry points of the fuzz targets (feature `fuzzing`): the parsers of responses, without a request.

pub use crate::{
    chat::fuzzing as chat, instagram::fuzzing as instagram, service::fuzzing as service,
    short_links::fuzzing as short_links, speech::fuzzing as speech, stripe::fuzzing as stripe,
    tiktok::fuzzing as tiktok, x::fuzzing as x, youtube::fuzzing as youtube, ytdlp::fuzzing as ytdlp,
};
