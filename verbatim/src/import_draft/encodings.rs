//! Files in other encodings than Unicode, as subtitle programs of the last decades wrote them.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{
    BIG5, Encoding, GBK, ISO_2022_JP, ISO_8859_4, UTF_16BE, UTF_16LE, WINDOWS_1250, WINDOWS_1252,
    WINDOWS_1257,
};
use transcript_core::transcript::LanguageTag;

/// Maximum length of an XML declaration in bytes; it has three attributes.
const DECLARATION_MAX: usize = 200;

/// Converts captions in another encoding than Unicode to UTF-8; also returns the name of the encoding.
///
/// UTF-8 with single damaged characters, and UTF-16 with a byte order mark, stay as they are. The encoding is the one
/// that XML declares. Else it is guessed from the frequency of letters and the language, as browsers guess it from
/// letters and domain for pages that name none.
pub(super) fn to_utf8<'a>(
    body: &'a [u8],
    language: Option<&LanguageTag>,
) -> (Cow<'a, [u8]>, Option<&'static str>) {
    let unchanged = (Cow::Borrowed(body), None);
    if matches!(body, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] | [0xEF, 0xBB, 0xBF, ..]) {
        return unchanged;
    }
    let decode = |encoding: &'static Encoding| {
        let text = encoding.decode_without_bom_handling_and_without_replacement(body)?;
        let converted: Cow<'_, [u8]> = Cow::Owned(text.into_owned().into_bytes());
        Some((converted, Some(encoding.name())))
    };
    if let Some(converted) = unmarked(body).and_then(decode) {
        return converted;
    }
    if !is_legacy(body) {
        return unchanged;
    }
    if let Some(converted) = declared(body).and_then(decode) {
        return converted;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(body, true);
    let guess = |domain: Option<&str>| detector.guess(domain.map(str::as_bytes), Utf8Detection::Deny);
    let domain = language.and_then(domain);
    let (expected, unnamed) = (guess(domain), guess(None));
    // The name of a language may be wrong where the letters are right: names of people in Central Europe in English
    // text, and the two scripts of Chinese.
    let is_certain = match domain {
        Some(WESTERN) => unnamed == WINDOWS_1250,
        Some(CHINA) => unnamed == BIG5,
        Some(TAIWAN) => unnamed == GBK,
        _ => false,
    };
    let expected = match expected {
        _ if is_certain => unnamed,
        // The detector knows few letters of these languages, and Estonian not at all.
        encoding if domain == Some(BALTIC) && (encoding == WINDOWS_1252 || encoding == ISO_8859_4) => {
            WINDOWS_1257
        }
        encoding => encoding,
    };
    decode(expected).or_else(|| decode(unnamed)).unwrap_or(unchanged)
}

/// Domain for the languages of the Baltic countries.
const BALTIC: &str = "lv";
/// Domain for Chinese in simplified characters.
const CHINA: &str = "cn";
/// Domain for Chinese in traditional characters.
const TAIWAN: &str = "tw";
/// Domain for the languages of Western Europe.
const WESTERN: &str = "de";

/// Whether a language names this script itself.
fn names_script(language: Option<&LanguageTag>, script: &str) -> bool {
    language.is_some_and(|language| language.as_str().split('-').any(|part| part == script))
}

/// The top-level domain whose legacy encodings are those of a language, if the detector knows one.
///
/// Subtitles are files of Windows, so languages of Central Europe have one whose pages were, too.
fn domain(language: &LanguageTag) -> Option<&'static str> {
    let is_written = |tag: &str| LanguageTag::from_canonical(tag).matches(language);
    Some(match language.primary() {
        "cs" | "hr" | "hu" | "pl" | "ro" | "sk" | "sl" => "cz",
        "sr" | "bs" if is_written("sr-Latn") || is_written("bs-Latn") => "cz",
        // Serbian is written in both scripts, and most files that name none are in Latin letters.
        "sr" if !names_script(Some(language), "Cyrl") => return None,
        "bg" | "be" | "kk" | "mk" | "ru" | "sr" | "uk" => "ru",
        "et" | "lt" | "lv" => BALTIC,
        "az" | "tr" => "tr",
        "ar" | "fa" | "ur" => "ae",
        "el" => "gr",
        "he" => "il",
        "is" | "fo" => "is",
        "ja" => "jp",
        "ko" => "kr",
        "th" => "th",
        "vi" => "vn",
        "zh" if is_written("zh-Hant") => TAIWAN,
        "zh" => CHINA,
        "ca" | "da" | "de" | "en" | "es" | "eu" | "fi" | "fr" | "ga" | "gl" | "it" | "nb" | "nl" | "nn"
        | "no" | "pt" | "sv" => WESTERN,
        _ => return None,
    })
}

/// An encoding whose text is valid UTF-8 but no text: UTF-16 without a byte order mark, and ISO-2022-JP.
fn unmarked(body: &[u8]) -> Option<&'static Encoding> {
    // The numbers, times and line ends of captions have a zero byte each in UTF-16.
    let zeros = |first: usize| body.iter().skip(first).step_by(2).filter(|&&byte| byte == 0).count();
    let (even, odd) = (zeros(0), zeros(1));
    if even.max(odd) * 8 >= body.len() && even.min(odd) * 8 < even.max(odd) {
        return Some(if odd > even { UTF_16LE } else { UTF_16BE });
    }
    let has_kanji = || body.windows(3).any(|bytes| matches!(bytes, b"\x1b$B" | b"\x1b$@"));
    (body.is_ascii() && has_kanji()).then_some(ISO_2022_JP)
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
        let (read, name) = to_utf8(&bytes, None);
        assert_eq!(std::str::from_utf8(&read), Ok(text));
        assert_eq!(name, Some(encoding.name()));
    }

    #[test]
    fn to_utf8_legacy_text_is_converted() {
        use encoding_rs::{EUC_KR, GBK, SHIFT_JIS, WINDOWS_1250, WINDOWS_1251, WINDOWS_1252, WINDOWS_1253};
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
    fn to_utf8_language_helps_to_guess() {
        use encoding_rs::{WINDOWS_874, WINDOWS_1251, WINDOWS_1254};
        const TRADITIONAL: &str = "這是中文字幕,我們今天講橋樑的歷史";
        const SIMPLIFIED: &str = "这是中文字幕,我们今天讲桥梁的历史";
        const SERBIAN: &str = "Gde si bio juče? Čekao sam te ceo dan.\r\nZnaš da ne mogu više ovako da živim.\r\n\
                               Šta ćeš da radiš sada, đavole?\r\nDođi kući, večera je gotova.";
        const LITHUANIAN: &str = "Kur buvai vakar? Laukiau tavęs visą dieną.\r\nAš daugiau taip negaliu gyventi.\r\n\
                                  Pasakyk man, kas atsitiko, žinai.";
        const CZECH_NAMES: &str = "Hello, I'm Jiří from Plzeň.\r\nDvořák and Lech Wałęsa were in Łódź.";
        const CYRILLIC: &str = "Где си био јуче? Чекао сам те цео дан.";
        for (language, text, encoding) in [
            ("et", "Hašimiidi, Šveitsi, režiimis", WINDOWS_1257),
            ("lt", "Neįmanoma atidaryti", WINDOWS_1257),
            ("lt", LITHUANIAN, WINDOWS_1257),
            ("en", CZECH_NAMES, WINDOWS_1250),
            ("th", "สวัสดี", WINDOWS_874),
            ("tr", "Dosya açılamadı", WINDOWS_1254),
            ("ja", "日本語", encoding_rs::SHIFT_JIS),
            ("zh-TW", "這是字幕", BIG5),
            // A language that names no script may have either.
            ("zh", TRADITIONAL, BIG5),
            ("zh-CN", TRADITIONAL, BIG5),
            ("zh", SIMPLIFIED, GBK),
            ("zh-Hans", SIMPLIFIED, GBK),
            ("sr", SERBIAN, WINDOWS_1250),
            ("sr-RS", SERBIAN, WINDOWS_1250),
            ("sr-Latn", SERBIAN, WINDOWS_1250),
            ("sr-Cyrl", CYRILLIC, WINDOWS_1251),
            ("sr", CYRILLIC, WINDOWS_1251),
            // A wrong language costs nothing where its encodings cannot be those of the text.
            ("th", "Съешь же ещё этих мягких французских булок", WINDOWS_1251),
        ] {
            let text = format!("1\r\n00:00:01,000 --> 00:00:02,000\r\n{text}\r\n");
            let (bytes, _, is_lossy) = encoding.encode(&text);
            assert!(!is_lossy);
            let language = LanguageTag::parse(language).unwrap();
            let (read, name) = to_utf8(&bytes, Some(&language));
            assert_eq!((std::str::from_utf8(&read), name), (Ok(text.as_str()), Some(encoding.name())));
        }
    }

    #[test]
    fn to_utf8_text_without_mark_is_converted() {
        let jis = b"1\n00:00:01,000 --> 00:00:02,000\n\x1b$B$3$l\x1b(B\n";
        let (read, name) = to_utf8_owned(jis);
        assert_eq!((read.lines().last(), name), (Some("これ"), Some("ISO-2022-JP")));
        let text = "1\r\n00:00:01,000 --> 00:00:02,000\r\n这是中文字幕\r\n";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(to_utf8_owned(&little), (text.to_owned(), Some("UTF-16LE")));
        assert_eq!(to_utf8_owned(&big), (text.to_owned(), Some("UTF-16BE")));
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
            check(&format!("<?xml version=\"1.0\" encoding=\"{label}\"?><tt>{text}"), WINDOWS_1252);
        }
    }

    fn to_utf8_owned(body: &[u8]) -> (String, Option<&'static str>) {
        let (read, name) = to_utf8(body, None);
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
            b"\x1b[1mbold\x1b[0m",
            b"a \0 zero byte of a broken file",
            b"",
        ] {
            assert_eq!(to_utf8(body, None), (Cow::Borrowed(body), None), "{body:?}");
        }
    }
}
