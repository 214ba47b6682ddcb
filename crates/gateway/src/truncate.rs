//! Texts of others, truncated for logs and labels.

use std::borrow::Cow;

use crate::limits;

/// A text of at most [`limits::LABEL_BYTES`].
pub(crate) fn truncate(text: &str) -> Cow<'_, str> {
    truncate_to(text, limits::LABEL_BYTES)
}

/// A text of at most this many bytes.
pub(crate) fn truncate_to(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(most - 3);
    Cow::Owned(format!("{}...", &text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        let long = "ä".repeat(100);
        let cut = truncate(&long);
        assert!(cut.len() <= limits::LABEL_BYTES && cut.ends_with("ä..."), "{cut}");
    }
}
