//! Pictures and PDFs for tests, generated here, so that no licence applies to them.

use std::io::Cursor;

use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use lopdf::content::{Content, Operation};
use lopdf::{Document, Object, Stream, dictionary};

/// A picture of this size that differs for each seed.
pub fn picture(format: ImageFormat, width: u32, height: u32, seed: u8) -> Vec<u8> {
    let pixels = RgbImage::from_fn(width, height, |x, y| Rgb([x as u8 ^ seed, y as u8, seed]));
    let mut bytes = Vec::new();
    DynamicImage::from(pixels).write_to(&mut Cursor::new(&mut bytes), format).expect("a picture");
    bytes
}

/// A picture that hardly compresses: about three bytes per pixel.
pub fn noise(width: u32, height: u32, mut state: u32) -> Vec<u8> {
    let pixels = RgbImage::from_fn(width, height, |_, _| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        let [red, green, blue, _] = state.to_le_bytes();
        Rgb([red, green, blue])
    });
    let mut bytes = Vec::new();
    DynamicImage::from(pixels).write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png).expect("a picture");
    bytes
}

/// A PDF with these texts on its pages.
pub fn pdf(pages: &[&str]) -> Vec<u8> {
    let mut document = Document::with_version("1.5");
    let tree = document.new_object_id();
    let font =
        document.add_object(dictionary! { "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Courier" });
    let resources = document.add_object(dictionary! { "Font" => dictionary! { "F1" => font } });
    let mut kids: Vec<Object> = Vec::new();
    for text in pages {
        let operations = vec![
            Operation::new("BT", vec![]),
            Operation::new("Tf", vec!["F1".into(), 12.into()]),
            Operation::new("Td", vec![50.into(), 700.into()]),
            Operation::new("Tj", vec![Object::string_literal(*text)]),
            Operation::new("ET", vec![]),
        ];
        let content = Content { operations }.encode().expect("a page");
        let content = document.add_object(Stream::new(dictionary! {}, content));
        let page = dictionary! {
            "Type" => "Page", "Parent" => tree, "Contents" => content, "Resources" => resources
        };
        kids.push(document.add_object(page).into());
    }
    let count = i64::try_from(pages.len()).expect("few pages");
    let size: Vec<Object> = vec![0.into(), 0.into(), 595.into(), 842.into()];
    let root = dictionary! { "Type" => "Pages", "Kids" => kids, "Count" => count, "MediaBox" => size };
    document.objects.insert(tree, Object::Dictionary(root));
    let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => tree });
    document.trailer.set("Root", catalog);
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).expect("a PDF");
    bytes
}
