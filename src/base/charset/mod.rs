//! Encodings of text files: detects them, decodes texts, and encodes them again without loss.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, GB18030, GBK, UTF_8, UTF_16BE, UTF_16LE};

/// Number of bytes at the beginning that decide whether a file is binary.
pub const DETECTION_BYTES: usize = 8 << 10;

/// The encoding of a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charset {
    pub encoding: &'static Encoding,
    /// Length of the byte order mark in bytes.
    pub bom: usize,
}

impl Charset {
    /// UTF-8 without a byte order mark.
    pub const UTF8: Self = Self { encoding: UTF_8, bom: 0 };

    /// The name for users.
    #[must_use]
    pub fn name(self) -> String {
        match (self.encoding == UTF_8, self.bom) {
            (true, 0) => "UTF-8".into(),
            (true, _) => "UTF-8 with BOM".into(),
            (false, 0) if !self.is_ascii_compatible() => format!("{} without BOM", self.encoding.name()),
            (false, _) => self.encoding.name().into(),
        }
    }

    /// Whether the byte 0x0A always is a line feed.
    #[must_use]
    pub fn is_ascii_compatible(self) -> bool {
        self.encoding != UTF_16LE && self.encoding != UTF_16BE
    }

    /// The bytes of `text` with the byte order mark. `None` if the encoding lacks a character, or would decode
    /// to another one: encoders of the web write a yen sign as a backslash in Shift_JIS
    /// (encoding.spec.whatwg.org, "Shift_JIS encoder").
    #[must_use]
    pub fn encode(self, text: &str) -> Option<Vec<u8>> {
        let bytes = self.bytes_of(text)?;
        let comes_back = || {
            let (back, malformed) =
                self.encoding.decode_without_bom_handling(&bytes[self.bom.min(bytes.len())..]);
            !malformed && back == text
        };
        (self.encoding == UTF_8 || comes_back()).then_some(bytes)
    }

    fn bytes_of(self, text: &str) -> Option<Vec<u8>> {
        let utf16 = |bom: [u8; 2], bytes: fn(u16) -> [u8; 2]| {
            let mark = bom.into_iter().take(self.bom);
            mark.chain(text.encode_utf16().flat_map(bytes)).collect()
        };
        if self.encoding == UTF_16LE {
            return Some(utf16([0xFF, 0xFE], u16::to_le_bytes));
        }
        if self.encoding == UTF_16BE {
            return Some(utf16([0xFE, 0xFF], u16::to_be_bytes));
        }
        if self.encoding == UTF_8 && self.bom == 0 {
            return Some(text.as_bytes().to_vec());
        }
        let (bytes, _, unmappable) = self.encoding.encode(text);
        if unmappable {
            return None;
        }
        let bom: &[u8] = if self.bom > 0 { b"\xEF\xBB\xBF" } else { b"" };
        Some([bom, &bytes].concat())
    }

    /// The text of a whole file. `None` if encoding it would not return the same bytes.
    #[must_use]
    pub fn decode(self, bytes: &[u8]) -> Option<String> {
        self.view(bytes).map(Cow::into_owned)
    }

    /// Like [`Self::decode`], but without a copy if the bytes are already UTF-8.
    #[must_use]
    pub fn view(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        if self.encoding == UTF_8 {
            // Valid UTF-8 always encodes to the same bytes.
            return std::str::from_utf8(&bytes[self.bom..]).ok().map(Cow::Borrowed);
        }
        let (text, malformed) = self.encoding.decode_without_bom_handling(&bytes[self.bom..]);
        if malformed {
            return None;
        }
        let text = text.into_owned();
        (self.bytes_of(&text)? == bytes).then_some(Cow::Owned(text))
    }
}

/// The reason why a file is not text, for users: `an image (PNG)`, `binary data`.
#[must_use]
pub fn binary_kind(head: &[u8]) -> Option<&'static str> {
    const MAGIC: &[(&[u8], &str)] = &[
        (b"\x89PNG\r\n", "an image (PNG)"),
        (b"\xFF\xD8\xFF", "an image (JPEG)"),
        (b"GIF8", "an image (GIF)"),
        (b"%PDF-", "a PDF document"),
        (b"PK\x03\x04", "a ZIP archive"),
        (b"\x1F\x8B", "a gzip archive"),
        (b"\x7FELF", "a program (ELF)"),
        (b"SQLite format 3", "a SQLite database"),
        (b"BZh", "a bzip2 archive"),
        (b"\xFD7zXZ", "an xz archive"),
        (b"\x28\xB5\x2F\xFD", "a zstd archive"),
    ];
    if let Some((_, kind)) = MAGIC.iter().find(|(magic, _)| head.starts_with(magic)) {
        // A text may begin with the letters of these two signatures by chance.
        let by_chance = matches!(*kind, "an image (GIF)" | "a bzip2 archive");
        if !by_chance || std::str::from_utf8(head).is_err() || head.contains(&0) {
            return Some(kind);
        }
    }
    if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP") {
        return Some("an image (WebP)");
    }
    let utf32 = head.starts_with(b"\xFF\xFE\0\0") || head.starts_with(b"\0\0\xFE\xFF");
    if !utf32 && (head.starts_with(b"\xFF\xFE") || head.starts_with(b"\xFE\xFF")) {
        return None;
    }
    if detect_utf16(head).is_some() {
        return None;
    }
    let head = &head[..head.len().min(DETECTION_BYTES)];
    let control = head.iter().filter(|b| **b < 9 || (14..32).contains(*b) && **b != 0x1B).count();
    (utf32 || head.contains(&0) || control * 10 > head.len()).then_some("binary data")
}

/// Minimal number of characters to recognise UTF-16 without a byte order mark.
const MIN_UTF16_CHARS: usize = 4;

/// UTF-16 without a byte order mark: every second byte of most characters is zero, and all of them occur in
/// texts. Arrays of two-byte numbers rarely look like this.
fn detect_utf16(bytes: &[u8]) -> Option<&'static Encoding> {
    let sample = &bytes[..bytes.len().min(DETECTION_BYTES)];
    memchr::memchr(0, sample)?;
    let units = sample.len() / 2;
    if units < MIN_UTF16_CHARS || bytes.len() <= DETECTION_BYTES && !bytes.len().is_multiple_of(2) {
        return None;
    }
    [(UTF_16LE, u16::from_le_bytes as fn([u8; 2]) -> u16), (UTF_16BE, u16::from_be_bytes)]
        .into_iter()
        .find_map(|(encoding, unit)| {
            let (pairs, _) = sample.as_chunks::<2>();
            let narrow = pairs.iter().filter(|pair| unit(**pair) < 0x100).count();
            let is_text = |found: Result<char, std::char::DecodeUtf16Error>| match found {
                Ok(c) => {
                    !c.is_control() && c != '\u{fffe}' && c != '\u{ffff}' || matches!(c, '\t' | '\n' | '\r')
                }
                Err(_) => false,
            };
            // A sample may end with half a surrogate pair.
            let last = pairs.last().is_some_and(|pair| unit(*pair) & 0xFC00 == 0xD800);
            let whole = &pairs[..units - usize::from(last && bytes.len() > DETECTION_BYTES)];
            let all = || char::decode_utf16(whole.iter().map(|pair| unit(*pair))).all(is_text);
            (narrow * 10 >= units * 7 && all()).then_some(encoding)
        })
}

/// How much of a file some bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Whole,
    /// Its beginning, whose last character may be incomplete.
    Beginning,
}

/// Detects the encoding of a text: by its byte order mark, otherwise UTF-8 if valid, otherwise by its
/// characters.
#[must_use]
pub fn detect(bytes: &[u8], extent: Extent) -> Charset {
    match bytes {
        [0xEF, 0xBB, 0xBF, ..] => return Charset { encoding: UTF_8, bom: 3 },
        [0xFF, 0xFE, ..] => return Charset { encoding: UTF_16LE, bom: 2 },
        [0xFE, 0xFF, ..] => return Charset { encoding: UTF_16BE, bom: 2 },
        _ => {}
    }
    if let Some(encoding) = detect_utf16(bytes) {
        return Charset { encoding, bom: 0 };
    }
    match std::str::from_utf8(bytes) {
        Ok(_) => return Charset::UTF8,
        Err(e) if extent == Extent::Beginning && e.error_len().is_none() => return Charset::UTF8,
        Err(_) => {}
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, extent == Extent::Whole);
    let guessed = Charset { encoding: detector.guess(None, Utf8Detection::Deny), bom: 0 };
    // GBK and GB18030 decode equally, but only GB18030 can encode characters of four bytes
    // (encoding.spec.whatwg.org, "gb18030 encoder").
    let larger = Charset { encoding: GB18030, bom: 0 };
    if guessed.encoding == GBK && guessed.view(bytes).is_none() && larger.view(bytes).is_some() {
        return larger;
    }
    guessed
}

/// The text of a whole file. Bytes that are invalid in its encoding become replacement characters.
#[must_use]
pub fn decode_lossy(bytes: &[u8]) -> Cow<'_, str> {
    let (charset, text) = text_of(bytes);
    text.unwrap_or_else(|| charset.encoding.decode_without_bom_handling(&bytes[charset.bom..]).0)
}

/// The charset of a whole file and its text; `None` for the text if encoding it would not return the same
/// bytes. Plain UTF-8 is scanned only once for both.
#[must_use]
pub fn text_of(bytes: &[u8]) -> (Charset, Option<Cow<'_, str>>) {
    let has_mark = matches!(bytes, [0xEF, 0xBB, 0xBF, ..] | [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..]);
    if !has_mark
        && detect_utf16(bytes).is_none()
        && let Ok(text) = std::str::from_utf8(bytes)
    {
        return (Charset::UTF8, Some(Cow::Borrowed(text)));
    }
    let charset = detect(bytes, Extent::Whole);
    (charset, charset.view(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoded_text_is_encoded_back_byte_for_byte() {
        let gbk = encoding_rs::GBK.encode("第一行：你好，世界。这是一个测试文件。\n第二行\n").0.into_owned();
        let rare =
            encoding_rs::GB18030.encode("第一行：你好，世界。这是一个测试文件。\u{20000}\n").0.into_owned();
        let latin = b"caf\xe9 cr\xe8me na\xefve fa\xe7ade\n".to_vec();
        for (bytes, name, text) in [
            (b"plain\n".to_vec(), "UTF-8", Some("plain\n")),
            ("é ü\n".as_bytes().to_vec(), "UTF-8", Some("é ü\n")),
            (b"\xEF\xBB\xBFx\n".to_vec(), "UTF-8 with BOM", Some("x\n")),
            (b"\xFF\xFEa\0\n\0".to_vec(), "UTF-16LE", Some("a\n")),
            (b"\xFE\xFF\0a\0\n".to_vec(), "UTF-16BE", Some("a\n")),
            (b"\xFF\xFEa\0\n".to_vec(), "UTF-16LE", None),
            (b"h\0i\0!\0\n\0".to_vec(), "UTF-16LE without BOM", Some("hi!\n")),
            (b"\0h\0i\0!\0\r\0\n".to_vec(), "UTF-16BE without BOM", Some("hi!\r\n")),
            (b"\xFF\xFE\0\xD8a\0".to_vec(), "UTF-16LE", None),
            (gbk, "GBK", Some("第一行：你好，世界。这是一个测试文件。\n第二行\n")),
            (rare, "gb18030", Some("第一行：你好，世界。这是一个测试文件。\u{20000}\n")),
            (latin, "windows-1252", Some("café crème naïve façade\n")),
        ] {
            let charset = detect(&bytes, Extent::Whole);
            assert_eq!(text_of(&bytes), (charset, charset.view(&bytes)));
            assert_eq!(
                (charset.name().as_str(), charset.decode(&bytes).as_deref()),
                (name, text),
                "{bytes:?}"
            );
        }
    }

    #[test]
    fn unencodable_character_is_refused_by_charset() {
        let charset = Charset { encoding: encoding_rs::GBK, bom: 0 };
        assert_eq!(charset.encode("ok 你").map(|b| b.len()), Some(5));
        assert_eq!(Charset { encoding: encoding_rs::WINDOWS_1252, bom: 0 }.encode("你"), None);
        let japanese = Charset { encoding: encoding_rs::SHIFT_JIS, bom: 0 };
        assert_eq!(japanese.encode("ｱ\\日").map(|b| b.len()), Some(4));
        assert_eq!((japanese.encode("1 \u{a5}"), japanese.encode("\u{203e}")), (None, None));
    }

    #[test]
    fn binary_content_is_detected_by_kind() {
        for (bytes, expected) in [
            (&b"text\n"[..], None),
            (b"", None),
            (b"GIF8 is a word", None),
            (b"\x1b[31mred\x1b[0m", None),
            (b"\xFF\xFEa\0", None),
            (b"\x89PNG\r\n\x1a\n", Some("an image (PNG)")),
            (b"%PDF-1.7 text", Some("a PDF document")),
            (b"a\0b", Some("binary data")),
            (b"h\0e\0l\0l\0\xe9\0\n\0", None),
            (b"\0h\0e\0l\0l\0\n", None),
            // Two-byte numbers; an odd length; half a surrogate pair.
            (b"\x01\0\x02\0A\0B\0C\0D\0", Some("binary data")),
            (b"h\0e\0l\0l\0o", Some("binary data")),
            (b"h\0e\0l\0l\0o\0\0\xd8", Some("binary data")),
            (b"a\0\0\0b\0\0\0c\0\0\0", Some("binary data")),
            (b"\x01\x02\x03\x04abc", Some("binary data")),
            (b"\xFF\xFE\0\0a\0\0\0", Some("binary data")),
        ] {
            assert_eq!(binary_kind(bytes), expected, "{bytes:?}");
        }
    }
}
