//! Properties of picture conversion for any input. The fuzz target and its corpus check them.

use std::io::Cursor;

use image::ImageReader;

use super::image::{self as picture, ImageInfo, MAX_IMAGE_BYTES, MAX_SIDE_PIXELS};

/// Pixel count above which a run costs too much. Pictures that are refused for their size are still checked.
const MAX_CHEAP_PIXELS: u64 = 4_000_000;
const MAX_PIXELS: u64 = 64_000_000;

/// The bytes are a picture. It is refused with a reason, or described correctly. If it was too large for
/// models, the smaller picture is within the limits.
///
/// # Panics
/// If a property does not hold.
pub fn picture(data: &[u8]) {
    let size = ImageReader::new(Cursor::new(data)).with_guessed_format().ok();
    let size = size.and_then(|reader| reader.into_dimensions().ok());
    let pixels = size.map(|(width, height)| u64::from(width) * u64::from(height));
    if pixels.is_some_and(|pixels| (MAX_CHEAP_PIXELS..=MAX_PIXELS).contains(&pixels)) {
        return;
    }
    let mut out = Vec::new();
    let result = picture::write(data, &mut out);
    if let Err(why) = result {
        assert!(!why.is_empty() && out.is_empty(), "a refusal without a reason, or with a picture: {why:?}");
        return;
    }
    assert!(pixels.is_none_or(|pixels| pixels <= MAX_PIXELS), "{size:?} was decoded");
    let (seen, made) = read(&out);
    assert_eq!(picture::media_type(data), Some(seen.media_type.as_str()));
    assert!(seen.width > 0 && seen.height > 0, "{seen:?}");
    let fits = |width: u32, height: u32, bytes: usize| {
        width <= MAX_SIDE_PIXELS && height <= MAX_SIDE_PIXELS && bytes <= MAX_IMAGE_BYTES
    };
    assert_eq!(seen.scaled.is_none(), fits(seen.width, seen.height, data.len()), "{seen:?}");
    let Some(scaled) = seen.scaled else {
        assert!(made.is_empty(), "a picture that fits was converted again");
        return;
    };
    assert!(fits(scaled.width, scaled.height, made.len()), "{scaled:?} of {} bytes", made.len());
    let mut out = Vec::new();
    picture::write(made, &mut out).expect("what was made can be decoded");
    let (again, rest) = read(&out);
    assert_eq!(
        (&again.media_type, again.width, again.height),
        (&scaled.media_type, scaled.width, scaled.height)
    );
    assert!(again.scaled.is_none() && rest.is_empty(), "what was made small is small");
}

/// The first line of the answer, and the bytes after it.
fn read(out: &[u8]) -> (ImageInfo, &[u8]) {
    let end = out.iter().position(|byte| *byte == b'\n').expect("a line");
    (serde_json::from_slice(&out[..end]).expect("JSON"), &out[end + 1..])
}
