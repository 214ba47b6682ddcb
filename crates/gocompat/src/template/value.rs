//! Values of a template, and how many of them it may compute.

use std::borrow::Cow;

use serde_json::Value;

use super::{MAX_OUTPUT, RenderError};

/// How many values may be computed.
const MAX_STEPS: usize = 100_000;
/// How many bytes all of them may have, with those that are not written.
const MAX_BYTES: usize = 2 * MAX_OUTPUT;

/// A value: part of the data, or computed.
pub(super) type Val<'a> = Cow<'a, Value>;

/// What is left of the limits.
pub(super) struct Budget {
    steps: usize,
    bytes: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { steps: MAX_STEPS, bytes: MAX_BYTES }
    }
}

impl Budget {
    pub(super) fn step(&mut self) -> Result<(), RenderError> {
        self.steps = self.steps.checked_sub(1).ok_or_else(|| RenderError::from("it takes too many steps"))?;
        Ok(())
    }

    pub(super) fn take(&mut self, bytes: usize) -> Result<(), RenderError> {
        let left = self.bytes.checked_sub(bytes);
        self.bytes = left.ok_or_else(|| RenderError::from("its values are too large"))?;
        Ok(())
    }
}
