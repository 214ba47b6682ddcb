//! The rule of the files: what is not set is left out.
//!
//! A text that is empty, a number that is zero, a list without items: each says "not set", whether it is written or
//! not. Where zero is a value of its own, the field is an `Option`.

/// Whether a field says nothing, so that it is left out.
pub(crate) fn zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
