//! Integers whose width the API does not state.

use schemars::Schema;

/// An integer without a format: `#[schemars(transform = number::plain_integer)]`.
pub(crate) fn plain_integer(schema: &mut Schema) {
    schema.remove("format");
}
