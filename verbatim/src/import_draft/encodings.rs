//! Files in other encodings than Unicode, as subtitle programs of the last decades wrote them.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::Encoding;

/// Maximum length of an XML declaration in bytes; it has three attributes.
const DECLARATION_MAX: usize = 200;

/// Converts captions in another encoding than Unicode to UTF-8; also returns the name of the encoding.
///
/// UTF-8 with single damaged characters, and UTF-16 with a byte order mark, stay as they are. The encoding is the one
/// that XML declares. Else it is guessed from the frequency of letters, as browsers do it for pages that name none.
pub(super) fn to_utf8(body: &[u8]) -> (Cow<'_, [u8]>, Option<&'static str>) {
    let unchanged = (Cow::Borrowed(body), None);
    if matches!(body, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] | [0xEF, 0xBB, 0xBF, ..]) || !is_legacy(body) {
        return unchanged;
    }
    let decode = |encoding: &'static Encoding| {
        let text = encoding.decode_without_bom_handling_and_without_replacement(body)?;
        let converted: Cow<'_, [u8]> = Cow::Owned(text.into_owned().into_bytes());
        Some((converted, Some(encoding.name())))
    };
    if let Some(converted) = declared(body).and_then(decode) {
        return converted;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(body, true);
    decode(detector.guess(None, Utf8Detection::Deny)).unwrap_or(unchanged)
}

/// The encoding that the declaration of an XML document names: `<?xml version="1.0" encoding="ISO-8859-1"?>`.
///
/// Text in UTF-16 has no declaration that can be read here.
fn declared(body: &[u8]) -> Option<&'static Encoding> {
    let declaration = body.trim_ascii_start().strip_prefix(b"<?xml")?;
    let end = declaration.iter().take(DECLARATION_MAX).position(|&byte| byte == b'>')?;
    let declaration = std::str::from_utf8(declaration.get(..end)?).ok()?;
    let (_, value) = declaration.split_once("encoding")?;
    let value = value.trim_start().strip_prefix('=')?.trim_start();
    let label = value.split(['"', '\'']).nth(1)?;
    // That of HTML for bytes that are no text is none of captions.
    let is_usable = |encoding: &&'static Encoding| {
        encoding.is_ascii_compatible() && *encoding != encoding_rs::X_USER_DEFINED
    };
    Encoding::for_label(label.as_bytes()).filter(is_usable)
}

/// Whether more bytes are invalid as UTF-8 than valid beyond ASCII.
///
/// Text in another encoding has few valid sequences: each needs a byte of the second half of the alphabet that is
/// followed by the right number of symbols.
fn is_legacy(body: &[u8]) -> bool {
    let (mut valid, mut invalid) = (0, 0);
    for chunk in body.utf8_chunks() {
        valid += chunk.valid().bytes().filter(|byte| !byte.is_ascii()).count();
        invalid += chunk.invalid().len();
    }
    invalid > valid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, encoding: &'static Encoding) {
        let (bytes, _, is_lossy) = encoding.encode(text);
        assert!(!is_lossy);
        let (read, name) = to_utf8(&bytes);
        assert_eq!(std::str::from_utf8(&read), Ok(text));
        assert_eq!(name, Some(encoding.name()));
    }

    #[test]
    fn to_utf8_legacy_text_is_converted() {
        use encoding_rs::{
            BIG5, EUC_KR, GBK, SHIFT_JIS, WINDOWS_1250, WINDOWS_1251, WINDOWS_1252, WINDOWS_1253,
        };
        let cue = |text: &str| format!("1\r\n00:00:01,000 --> 00:00:02,000\r\n{text}\r\n");
        check(&cue("Déjà vu : l’été à Évian, ça coûte 5 €"), WINDOWS_1252);
        check(&cue("Größe und Übermaß – „schön“"), WINDOWS_1252);
        check(&cue("Zażółć gęślą jaźń, powiedziała święta"), WINDOWS_1250);
        check(&cue("Съешь же ещё этих мягких французских булок"), WINDOWS_1251);
        check(&cue("Η γρήγορη αλεπού πηδάει πάνω από τον σκύλο"), WINDOWS_1253);
        check(&cue("これは日本語の字幕です。ありがとう"), SHIFT_JIS);
        check(&cue("这是中文字幕,我们今天讲桥梁的历史"), GBK);
        check(&cue("這是中文字幕,我們今天講橋樑的歷史"), BIG5);
        check(&cue("이것은 한국어 자막입니다 감사합니다"), EUC_KR);
    }

    #[test]
    fn to_utf8_declared_encoding_is_used() {
        for (label, bytes, text, name) in [
            ("ISO-8859-1", &b"na\xEFve"[..], "naïve", "windows-1252"),
            ("windows-1254", b"\xFEey", "şey", "windows-1254"),
            ("iso-8859-4", b"na\xEFve", "naīve", "ISO-8859-4"),
        ] {
            let xml = format!("<?xml version='1.0' encoding = \"{label}\" ?><tt>");
            let (read, found) = to_utf8_owned(&[xml.as_bytes(), bytes].concat());
            assert_eq!((read, found), (format!("{xml}{text}"), Some(name)));
        }
        // A declaration that is wrong is not used, nor an encoding in which it could not be read.
        for label in ["UTF-8", "UTF-16", "nothing"] {
            let text = "Déjà vu : l’été à Évian, ça coûte 5 €";
            check(
                &format!("<?xml version=\"1.0\" encoding=\"{label}\"?><tt>{text}"),
                encoding_rs::WINDOWS_1252,
            );
        }
    }

    fn to_utf8_owned(body: &[u8]) -> (String, Option<&'static str>) {
        let (read, name) = to_utf8(body);
        (String::from_utf8(read.into_owned()).unwrap(), name)
    }

    #[test]
    fn to_utf8_unicode_stays() {
        for body in [
            &b"plain"[..],
            "Déjà vu".as_bytes(),
            b"caf\xC3\xA9 and \xFF",
            b"\xEF\xBB\xBFcaf\xE9",
            b"\xFF\xFEh\0\xE9\0",
            b"\xFE\xFF\0h\0\xE9",
            b"",
        ] {
            assert_eq!(to_utf8(body), (Cow::Borrowed(body), None), "{body:?}");
        }
    }
}
