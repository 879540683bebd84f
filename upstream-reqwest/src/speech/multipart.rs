//! The multipart body of a transcription request (RFC 7578). No I/O.

use bytes::{BufMut as _, Bytes, BytesMut};

/// A form with these fields and one file. `boundary` must not occur in any of them.
pub(super) fn form(
    boundary: &str,
    fields: &[(&str, &str)],
    file_name: &str,
    media_type: &str,
    file: &[u8],
) -> Bytes {
    let texts: usize = fields.iter().map(|(name, value)| name.len() + value.len() + 128).sum();
    let mut body = BytesMut::with_capacity(file.len() + texts + 512);
    for (name, value) in fields {
        body.put_slice(
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
                .as_bytes(),
        );
    }
    body.put_slice(
        format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{file_name}\"\r\n\
             Content-Type: {media_type}\r\n\r\n"
        )
        .as_bytes(),
    );
    body.put_slice(file);
    body.put_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    body.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_has_fields_before_file() {
        let body =
            form("b0", &[("model", "m"), ("response_format", "json")], "a.ogg", "audio/ogg", b"\x00\xFF");
        let expect: &[u8] = b"--b0\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n\
            --b0\r\nContent-Disposition: form-data; name=\"response_format\"\r\n\r\njson\r\n\
            --b0\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.ogg\"\r\nContent-Type: audio/ogg\r\n\r\n\
            \x00\xFF\r\n--b0--\r\n";
        assert_eq!(body, expect);
    }
}
