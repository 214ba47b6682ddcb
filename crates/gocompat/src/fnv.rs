//! The hash FNV-1a of 32 bits, as Kubernetes' `DeepHashObject` prints it: in hex without leading zeros.
//!
//! Needed for as long as pods are taken over that ToolHive's operator started: names of volumes and annotations carry
//! it.

use crate::dump;

/// The hash of a Go value, given as its [`dump`].
pub fn hash(dump: &str) -> String {
    let hash =
        dump.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{hash:x}")
}

/// The hash of a Go string, such as the one that the names of volumes end in.
///
/// Renaming a volume would replace its pod.
pub fn string_hash(text: &str) -> String {
    hash(&dump::string(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_equals_the_hash_that_go_computes() {
        assert_eq!(string_hash("sec/key"), "feb8668a");
        assert_eq!(string_hash("my-secret/key"), "43dcd792");
    }

    #[test]
    fn leading_zeros_are_left_out() {
        assert_eq!(string_hash("hooks/0"), "30f5850");
    }
}
