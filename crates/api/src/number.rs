//! Numbers as the API writes them.

use schemars::Schema;

/// An integer whose width the API leaves open: `#[schemars(transform = plain_integer)]`.
pub(crate) fn plain_integer(schema: &mut Schema) {
    schema.remove("format");
}
