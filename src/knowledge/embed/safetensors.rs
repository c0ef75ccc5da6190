//! Reads one table of numbers from a safetensors file: 8 bytes length, a JSON header, then the data.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

/// Maximum bytes of the header.
const MAX_HEADER_BYTES: u64 = 8 << 20;
/// Maximum bytes of one tensor: a vocabulary of 250,000 words with 512 numbers each.
const MAX_TENSOR_BYTES: u64 = 1 << 30;

/// A tensor as 32-bit numbers.
#[derive(Debug, PartialEq)]
pub(super) struct Tensor {
    pub shape: Vec<usize>,
    pub values: Vec<f32>,
}

#[derive(Deserialize)]
struct TensorInfo {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (u64, u64),
}

/// Reads the tensor with this name; `None` if the file has none.
///
/// # Errors
/// The file could not be read, or it is damaged; the text is for users.
pub(super) fn read_tensor(path: &Path, name: &str) -> Result<Option<Tensor>, String> {
    let mut file = File::open(path).map_err(|error| error.to_string())?;
    let mut length = [0; 8];
    file.read_exact(&mut length).map_err(|_| "the file is too short".to_owned())?;
    let header_bytes = u64::from_le_bytes(length);
    if header_bytes > MAX_HEADER_BYTES {
        return Err("its header is too long".into());
    }
    let mut header = vec![0; header_bytes as usize];
    file.read_exact(&mut header).map_err(|_| "its header is cut".to_owned())?;
    let header: Value = serde_json::from_slice(&header).map_err(|_| "its header is not JSON".to_owned())?;
    let Some(info) = header.get(name) else { return Ok(None) };
    let info =
        TensorInfo::deserialize(info).map_err(|error| format!("the tensor {name} is damaged: {error}"))?;
    let (start, end) = info.data_offsets;
    let bytes = end.checked_sub(start).filter(|bytes| *bytes <= MAX_TENSOR_BYTES);
    let bytes = bytes.ok_or_else(|| format!("the tensor {name} has a wrong size"))?;
    let width = match info.dtype.as_str() {
        "F32" | "I32" => 4,
        "F16" | "BF16" => 2,
        "I8" => 1,
        "F64" | "I64" => 8,
        other => return Err(format!("the tensor {name} has the type {other}, which is not supported")),
    };
    let count = info.shape.iter().try_fold(1_u64, |product, side| product.checked_mul(*side as u64));
    if count.and_then(|count| count.checked_mul(width)) != Some(bytes) {
        return Err(format!("the shape and the size of the tensor {name} do not fit"));
    }
    let offset = 8_u64.checked_add(header_bytes).and_then(|offset| offset.checked_add(start));
    let offset = offset.ok_or_else(|| format!("the tensor {name} has a wrong place"))?;
    file.seek(SeekFrom::Start(offset)).map_err(|error| error.to_string())?;
    let mut data = vec![0; bytes as usize];
    file.read_exact(&mut data).map_err(|_| format!("the tensor {name} is cut"))?;
    Ok(Some(Tensor { shape: info.shape, values: numbers(&info.dtype, &data) }))
}

fn numbers(dtype: &str, data: &[u8]) -> Vec<f32> {
    fn words<const N: usize>(data: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
        data.as_chunks::<N>().0.iter().copied()
    }
    match dtype {
        "F32" => words(data).map(f32::from_le_bytes).collect(),
        "F64" => words(data).map(|bytes| f64::from_le_bytes(bytes) as f32).collect(),
        "I32" => words(data).map(|bytes| i32::from_le_bytes(bytes) as f32).collect(),
        "I64" => words(data).map(|bytes| i64::from_le_bytes(bytes) as f32).collect(),
        "BF16" => {
            words(data).map(|bytes| f32::from_bits(u32::from(u16::from_le_bytes(bytes)) << 16)).collect()
        }
        "F16" => words(data).map(|bytes| half_to_f32(u16::from_le_bytes(bytes))).collect(),
        _ => data.iter().map(|byte| f32::from(byte.cast_signed())).collect(),
    }
}

/// IEEE 754 binary16 to binary32.
fn half_to_f32(half: u16) -> f32 {
    let sign = u32::from(half >> 15) << 31;
    let exponent = u32::from(half >> 10) & 0x1f;
    let fraction = u32::from(half) & 0x3ff;
    match (exponent, fraction) {
        (0, 0) => f32::from_bits(sign),
        // Subnormal: the fraction counts steps of 2^-24.
        (0, _) => {
            let value = fraction as f32 / 16_777_216.0;
            if sign == 0 { value } else { -value }
        }
        (0x1f, _) => f32::from_bits(sign | 0x7f80_0000 | (fraction << 13)),
        _ => f32::from_bits(sign | ((exponent + 112) << 23) | (fraction << 13)),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    pub(crate) fn file_with(header: &Value, data: &[u8]) -> Vec<u8> {
        let header = header.to_string();
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
    }

    #[test]
    fn tensors_of_all_types_are_read_as_numbers() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("m.safetensors");
        let halves: Vec<u8> =
            [0x3c00_u16, 0xc000, 0x0001, 0x7c00].iter().flat_map(|it| it.to_le_bytes()).collect();
        let brain: Vec<u8> = [0x3f80_u16, 0xc000].iter().flat_map(|it| it.to_le_bytes()).collect();
        let floats: Vec<u8> = [1.5_f32, -2.0].iter().flat_map(|it| it.to_le_bytes()).collect();
        let data = [&halves[..], &brain, &floats, &[1, 255]].concat();
        let header = json!({
            "__metadata__": {"a": "b"},
            "half": {"dtype": "F16", "shape": [2, 2], "data_offsets": [0, 8]},
            "brain": {"dtype": "BF16", "shape": [2], "data_offsets": [8, 12]},
            "float": {"dtype": "F32", "shape": [2], "data_offsets": [12, 20]},
            "byte": {"dtype": "I8", "shape": [1, 2], "data_offsets": [20, 22]},
            "cut": {"dtype": "I8", "shape": [9], "data_offsets": [20, 29]},
            "odd": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]},
            "back": {"dtype": "I8", "shape": [1], "data_offsets": [2, 1]},
            "text": {"dtype": "STR", "shape": [1], "data_offsets": [0, 1]},
        });
        std::fs::write(&path, file_with(&header, &data)).expect("written");
        let values = |name: &str| read_tensor(&path, name).map(|tensor| tensor.map(|it| it.values));
        assert_eq!(values("half"), Ok(Some(vec![1.0, -2.0, 5.960_464_5e-8, f32::INFINITY])));
        assert_eq!(values("brain"), Ok(Some(vec![1.0, -2.0])));
        assert_eq!(values("float"), Ok(Some(vec![1.5, -2.0])));
        assert_eq!(values("byte"), Ok(Some(vec![1.0, -1.0])));
        assert_eq!(values("none"), Ok(None));
        for damaged in ["cut", "odd", "back", "text"] {
            assert!(values(damaged).is_err(), "{damaged}");
        }
        for bytes in [&b"abc"[..], &u64::MAX.to_le_bytes(), &[9, 0, 0, 0, 0, 0, 0, 0, b'{']] {
            std::fs::write(&path, bytes).expect("written");
            assert!(values("half").is_err());
        }
    }
}
