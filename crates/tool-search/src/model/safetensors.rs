//! The matrix of a model, in the format of safetensors.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

/// A matrix: one row for each token.
pub(super) struct Matrix {
    values: Vec<f32>,
    width: usize,
}

#[derive(Deserialize)]
struct Tensor {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

impl std::fmt::Debug for Matrix {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Matrix").field("width", &self.width).finish_non_exhaustive()
    }
}

impl Matrix {
    /// The only matrix in a file.
    pub(super) fn parse(file: &[u8]) -> Result<Self, String> {
        let (length, rest) = file.split_first_chunk().ok_or("it is too short")?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|error| error.to_string())?;
        let (header, data) = rest.split_at_checked(length).ok_or("it is too short for its header")?;
        let mut header: HashMap<String, Value> =
            serde_json::from_slice(header).map_err(|error| format!("its header: {error}"))?;
        header.remove("__metadata__");
        let mut tensors = header.into_values();
        let (Some(tensor), None) = (tensors.next(), tensors.next()) else {
            return Err("it must have one tensor, with a vector for each token".into());
        };
        let Tensor { dtype, shape, data_offsets: (start, end) } =
            Tensor::deserialize(tensor).map_err(|error| format!("its header: {error}"))?;
        let bytes = data.get(start..end).ok_or("it is too short for its tensor")?;
        let (size, value): (usize, fn(&[u8]) -> f32) = match &*dtype {
            "F32" => (4, |bytes| bytes.try_into().map(f32::from_le_bytes).unwrap_or_default()),
            "F16" => (2, |bytes| bytes.try_into().map(u16::from_le_bytes).map(half).unwrap_or_default()),
            "BF16" => (2, |bytes| {
                let bits = bytes.try_into().map(u16::from_le_bytes).unwrap_or_default();
                f32::from_bits(u32::from(bits) << 16)
            }),
            other => return Err(format!("its tensor is of {other}, and must be of F32, F16 or BF16")),
        };
        let [rows, width] = shape[..] else { return Err("its tensor must have two dimensions".into()) };
        let expected = rows.checked_mul(width).and_then(|count| count.checked_mul(size));
        if width == 0 || expected != Some(bytes.len()) {
            return Err("the shape of its tensor does not fit its size".into());
        }
        Ok(Self { values: bytes.chunks_exact(size).map(value).collect(), width })
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// The vector of a token. One that the matrix does not have is empty.
    pub(super) fn row(&self, token: u32) -> &[f32] {
        let start = (token as usize).saturating_mul(self.width);
        self.values.get(start..start.saturating_add(self.width)).unwrap_or_default()
    }
}

/// A number of IEEE 754 with 16 bits.
fn half(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f32::from(bits & 0x3ff);
    sign * match exponent {
        0 => fraction * 2f32.powi(-24),
        0x1f if fraction == 0.0 => f32::INFINITY,
        0x1f => f32::NAN,
        _ => (1.0 + fraction / 1024.0) * 2f32.powi(exponent - 15),
    }
}
