//! Decodes the text of a file with hooks. People write such files with editors of every system.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};

/// The text of a file: by its byte order mark, as UTF-16 if its first character has a zero byte, as UTF-8, and
/// otherwise by its characters.
///
/// # Errors
/// The bytes are no text in the encoding that they seem to have.
pub(super) fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, String> {
    if let Some((encoding, length)) = Encoding::for_bom(bytes) {
        return decode_as(encoding, &bytes[length..]);
    }
    // JSON and TOML begin with an ASCII character, so UTF-16 has a zero byte there.
    match bytes {
        [0, 1..=0xFF, ..] => return decode_as(UTF_16BE, bytes),
        [1..=0xFF, 0, ..] => return decode_as(UTF_16LE, bytes),
        _ => {}
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Ok(text.into());
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    decode_as(detector.guess(None, Utf8Detection::Deny), bytes)
}

fn decode_as<'b>(encoding: &'static Encoding, bytes: &'b [u8]) -> Result<Cow<'b, str>, String> {
    let text = encoding.decode_without_bom_handling_and_without_replacement(bytes);
    text.ok_or_else(|| format!("the content is not valid {}", encoding.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_common_encodings_are_decoded() {
        let text = "{\"a\": \"prüfe\"}";
        let wide = |unit: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(unit).collect::<Vec<u8>>();
        let with_mark = |mark: &[u8], bytes: Vec<u8>| [mark, &bytes].concat();
        for bytes in [
            text.as_bytes().to_vec(),
            with_mark(b"\xEF\xBB\xBF", text.as_bytes().to_vec()),
            wide(u16::to_le_bytes),
            wide(u16::to_be_bytes),
            with_mark(b"\xFF\xFE", wide(u16::to_le_bytes)),
            with_mark(b"\xFE\xFF", wide(u16::to_be_bytes)),
            b"{\"a\": \"pr\xFCfe\"}".to_vec(),
        ] {
            assert_eq!(decode(&bytes).as_deref(), Ok(text), "{bytes:?}");
        }
        let chinese = "{\"a\": \"这是一个测试文件，检查所有的命令\"}";
        assert_eq!(decode(&encoding_rs::GBK.encode(chinese).0).as_deref(), Ok(chinese));
        assert!(decode(b"\xFF\xFE{\0\x00\xD8").is_err(), "half a character");
        assert_eq!(decode(b"").as_deref(), Ok(""));
    }
}
