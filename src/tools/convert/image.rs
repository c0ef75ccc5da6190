//! Prepares a picture for models: checks it, decodes it completely, and makes it smaller if it is too large.
//!
//! Limits of providers, as documented in 2026-11:
//!
//! | API | bytes of one picture | pixels of a side | source |
//! | --- | --- | --- | --- |
//! | Anthropic Messages | 5 MB in base64 | 8000; 2000 with more than 20 pictures; scaled down from 1568 | docs.anthropic.com/en/docs/build-with-claude/vision |
//! | the same at Amazon | 3.75 MB | 8000 | docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html |
//! | OpenAI | 50 MB a request | no limit documented; scaled down to 2048 and less | platform.openai.com/docs/guides/images-vision |
//!
//! A conversation keeps its pictures, may contain many, and may continue with another model. The strictest
//! limits apply to every picture: [`MAX_SIDE_PIXELS`] and [`MAX_IMAGE_BYTES`]. A larger picture is scaled to
//! [`SCALED_SIDE_PIXELS`], beyond which providers reduce it anyway.

use std::io::{Cursor, Write};

use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder as _, ImageFormat, ImageReader, Limits};
use serde::{Deserialize, Serialize};

/// Maximal pixels of a side.
pub(crate) const MAX_SIDE_PIXELS: u32 = 2_000;
/// Maximal bytes of a picture for a model: 5 MB in base64.
pub(crate) const MAX_IMAGE_BYTES: usize = 3_750_000;
/// Longer side of a picture after scaling, in pixels.
pub(crate) const SCALED_SIDE_PIXELS: u32 = 1_568;
/// Maximal pixels of a picture that is decoded at all. This is checked before decoding, because a small file
/// may decode to a huge picture.
const MAX_PIXELS: u64 = 64_000_000;
/// Bytes that a decoder may use, so that scaling still fits into the process's memory limit.
const MAX_DECODER_BYTES: u64 = 560 << 20;

/// Properties of a picture: the first line of the converter's output, as JSON. The new bytes follow if it was
/// made smaller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ImageInfo {
    pub media_type: String,
    /// Its width in pixels.
    pub width: u32,
    pub height: u32,
    /// The new size, if it was too large.
    pub scaled: Option<ScaledImage>,
}

/// Size of a picture after scaling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ScaledImage {
    pub media_type: String,
    pub width: u32,
    pub height: u32,
}

/// The media type, if these bytes begin a picture that models accept.
pub(crate) fn media_type(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

fn format(media_type: &str) -> Option<ImageFormat> {
    Some(match media_type {
        "image/png" => ImageFormat::Png,
        "image/jpeg" => ImageFormat::Jpeg,
        "image/gif" => ImageFormat::Gif,
        "image/webp" => ImageFormat::WebP,
        _ => return None,
    })
}

/// Writes the properties of the picture, and the smaller picture if it was too large. It is always decoded: the
/// provider would refuse every later request of a conversation with a broken picture. Only the first frame of
/// an animation is decoded.
pub(super) fn write(bytes: &[u8], out: &mut dyn Write) -> Result<(), String> {
    let kind = media_type(bytes).ok_or("it is not a PNG, JPEG, GIF or WebP image")?;
    let mut reader = ImageReader::new(Cursor::new(bytes));
    reader.set_format(format(kind).ok_or("it is of no known format")?);
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_DECODER_BYTES);
    reader.limits(limits);
    let broken = |error: image::ImageError| format!("it cannot be decoded: {error}");
    let mut decoder = reader.into_decoder().map_err(broken)?;
    let (width, height) = decoder.dimensions();
    if width == 0 || height == 0 {
        return Err("it has no pixels".into());
    }
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        let most = MAX_PIXELS / 1_000_000;
        return Err(format!("it has {width}×{height} pixels; at most {most} million are decoded"));
    }
    if kind == "image/jpeg" && !has_jpeg_end(bytes) {
        return Err("it cannot be decoded; the file is incomplete".into());
    }
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let picture = DynamicImage::from_decoder(decoder).map_err(broken)?;
    let fits = width <= MAX_SIDE_PIXELS && height <= MAX_SIDE_PIXELS && bytes.len() <= MAX_IMAGE_BYTES;
    let mut made = None;
    if !fits {
        made = Some(scale(picture, orientation, kind)?);
    }
    let seen = ImageInfo {
        media_type: kind.into(),
        width,
        height,
        scaled: made.as_ref().map(|(scaled, _)| scaled.clone()),
    };
    let line = serde_json::to_string(&seen).map_err(|error| error.to_string())?;
    writeln!(out, "{line}").map_err(|error| error.to_string())?;
    out.write_all(made.as_ref().map_or(&[], |(_, bytes)| bytes)).map_err(|error| error.to_string())
}

/// Makes a smaller picture: PNG if it may have sharp edges or transparency, JPEG if it was one or would be too
/// large otherwise.
fn scale(
    mut picture: DynamicImage,
    orientation: Orientation,
    kind: &str,
) -> Result<(ScaledImage, Vec<u8>), String> {
    if picture.width() > SCALED_SIDE_PIXELS || picture.height() > SCALED_SIDE_PIXELS {
        picture = picture.resize(SCALED_SIDE_PIXELS, SCALED_SIDE_PIXELS, FilterType::Triangle);
    }
    // The orientation is stored in metadata, which the new picture does not contain.
    picture.apply_orientation(orientation);
    let (width, height) = (picture.width(), picture.height());
    let scaled = |media_type: &str| ScaledImage { media_type: media_type.into(), width, height };
    let failed = |error: image::ImageError| format!("it could not be made smaller: {error}");
    if kind != "image/jpeg" {
        let mut bytes = Vec::new();
        let picture = if picture.color().has_alpha() {
            picture.to_rgba8().into()
        } else {
            DynamicImage::from(picture.to_rgb8())
        };
        picture.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png).map_err(failed)?;
        if bytes.len() <= MAX_IMAGE_BYTES {
            return Ok((scaled("image/png"), bytes));
        }
    }
    let picture = blend_on_white(picture);
    for quality in [85, 60, 30] {
        let mut bytes = Vec::new();
        picture.write_with_encoder(JpegEncoder::new_with_quality(&mut bytes, quality)).map_err(failed)?;
        if bytes.len() <= MAX_IMAGE_BYTES {
            return Ok((scaled("image/jpeg"), bytes));
        }
    }
    Err("it could not be made small enough".into())
}

/// Removes transparency, which JPEG does not support.
fn blend_on_white(picture: DynamicImage) -> DynamicImage {
    if !picture.color().has_alpha() {
        return picture.to_rgb8().into();
    }
    let mut pixels = picture.to_rgba8();
    for pixel in pixels.pixels_mut() {
        let [red, green, blue, alpha] = pixel.0.map(u32::from);
        let over = |color: u32| u8::try_from((color * alpha + 255 * (255 - alpha)) / 255).unwrap_or(u8::MAX);
        pixel.0 = [over(red), over(green), over(blue), u8::MAX];
    }
    DynamicImage::from(pixels).to_rgb8().into()
}

/// Whether the pixel data of a JPEG has an end marker. The decoder invents missing data, but providers refuse
/// such a picture.
fn has_jpeg_end(bytes: &[u8]) -> bool {
    let mut at = 2;
    while let Some(&[0xFF, marker, high, low]) = bytes.get(at..at + 4).and_then(|head| head.first_chunk()) {
        match marker {
            // A fill byte.
            0xFF => at += 1,
            // Start of the pixel data.
            0xDA => return memchr::memmem::find(&bytes[at..], b"\xFF\xD9").is_some(),
            // Markers without a length.
            0x01 | 0xD0..=0xD8 => at += 2,
            _ => at += 2 + usize::from(u16::from_be_bytes([high, low])),
        }
    }
    false
}

#[cfg(test)]
pub(crate) mod tests {
    use image::{Rgba, RgbaImage};

    use super::*;

    /// A picture of this size and format, with edges and transparency.
    pub(crate) fn sample(format: ImageFormat, width: u32, height: u32) -> Vec<u8> {
        let pixels = RgbaImage::from_fn(width, height, |x, y| {
            Rgba([
                (x % 256) as u8,
                (y % 256) as u8,
                ((x / 8 + y / 8) % 2 * 255) as u8,
                if x > 3 { 255 } else { 9 },
            ])
        });
        let picture = DynamicImage::from(pixels);
        let picture = if format == ImageFormat::Jpeg { picture.to_rgb8().into() } else { picture };
        let mut bytes = Vec::new();
        picture.write_to(&mut Cursor::new(&mut bytes), format).unwrap();
        bytes
    }

    pub(crate) const FORMATS: [(ImageFormat, &str); 4] = [
        (ImageFormat::Png, "image/png"),
        (ImageFormat::Jpeg, "image/jpeg"),
        (ImageFormat::Gif, "image/gif"),
        (ImageFormat::WebP, "image/webp"),
    ];

    fn decode(bytes: &[u8]) -> Result<(ImageInfo, Vec<u8>), String> {
        let mut out = Vec::new();
        write(bytes, &mut out)?;
        let end = out.iter().position(|byte| *byte == b'\n').unwrap();
        Ok((serde_json::from_slice(&out[..end]).unwrap(), out[end + 1..].to_vec()))
    }

    #[test]
    fn image_within_limits_is_unchanged() {
        for (format, kind) in FORMATS {
            let (seen, made) = decode(&sample(format, 40, 30)).unwrap();
            assert_eq!((seen.media_type.as_str(), seen.width, seen.height), (kind, 40, 30));
            assert_eq!((seen.scaled, made.len()), (None, 0), "{kind}");
        }
    }

    #[test]
    fn oversized_image_is_scaled_with_aspect_ratio() {
        for (format, kind) in FORMATS {
            let (seen, made) = decode(&sample(format, 2_100, 21)).unwrap();
            let scaled = seen.scaled.expect("scaled");
            let expected = if kind == "image/jpeg" { "image/jpeg" } else { "image/png" };
            assert_eq!((scaled.width, scaled.media_type.as_str()), (SCALED_SIDE_PIXELS, expected), "{kind}");
            assert!((15..=16).contains(&scaled.height), "{scaled:?}");
            let (again, rest) = decode(&made).unwrap();
            assert_eq!((again.width, again.height, rest.len()), (scaled.width, scaled.height, 0));
        }
    }

    #[test]
    fn scaled_image_keeps_exif_orientation() {
        let plain = sample(ImageFormat::Jpeg, 2_100, 21);
        // An EXIF segment with one entry: orientation 6, a rotation by 90 degrees.
        let exif =
            b"\xFF\xE1\0\x22Exif\0\0MM\0\x2A\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
        let turned = [&plain[..2], exif, &plain[2..]].concat();
        let (seen, made) = decode(&turned).unwrap();
        let scaled = seen.scaled.expect("scaled");
        assert_eq!(
            (scaled.height, decode(&made).unwrap().0.height),
            (SCALED_SIDE_PIXELS, SCALED_SIDE_PIXELS)
        );
    }

    #[test]
    fn image_decompression_bomb_is_refused_before_decoding() {
        let mut bomb = sample(ImageFormat::Png, 4, 4);
        // The size is in the first chunk, after signature, length and name; the checksum follows.
        bomb[16..20].copy_from_slice(&60_000_u32.to_be_bytes());
        bomb[20..24].copy_from_slice(&60_000_u32.to_be_bytes());
        let sum = png_checksum(&bomb[12..29]);
        bomb[29..33].copy_from_slice(&sum.to_be_bytes());
        let why = decode(&bomb).unwrap_err();
        assert!(why.contains("60000×60000"), "{why}");
        let mut bomb = sample(ImageFormat::Gif, 4, 4);
        bomb[6..10].copy_from_slice(&[0xFF; 4]);
        let why = decode(&bomb).unwrap_err();
        assert!(why.contains("65535×65535"), "{why}");
    }

    /// The checksum of a PNG chunk.
    fn png_checksum(bytes: &[u8]) -> u32 {
        let step = |sum: u32, byte: &u8| {
            (0..8)
                .fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xEDB8_8320 & (sum & 1).wrapping_neg()))
        };
        !bytes.iter().fold(u32::MAX, step)
    }

    #[test]
    fn broken_image_is_reported_as_error() {
        for (format, kind) in FORMATS {
            let whole = sample(format, 64, 48);
            let cut = &whole[..whole.len() * 2 / 3];
            let why = decode(cut).expect_err(kind);
            assert!(why.contains("decoded"), "{kind}: {why}");
            // A truncated picture never makes the decoder hang or panic.
            for end in (0..whole.len()).step_by(whole.len() / 40 + 1) {
                let _ = decode(&whole[..end]);
            }
            for at in (0..whole.len()).step_by(whole.len() / 60 + 1) {
                let mut bent = whole.clone();
                bent[at] ^= 0x55;
                let _ = decode(&bent);
            }
        }
        assert!(decode(b"BM not ours").unwrap_err().contains("not a PNG"));
    }
}
