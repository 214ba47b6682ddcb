//! Short hashes, of names and of what Go has dumped.

/// The hash that names carry: FNV-1a of 32 bits over the text as Go dumps it, in hex without leading zeros.
///
/// Volumes have carried it in their names since before skep, and a pod whose volumes are renamed is another pod.
pub(super) fn name_hash(text: &str) -> String {
    hash(&format!("(string){text}"))
}

/// The hash of a text in which Go has dumped a value.
pub(crate) fn hash(dump: &str) -> String {
    let hash =
        dump.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{hash:x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_one_that_go_computes() {
        assert_eq!(name_hash("sec/key"), "feb8668a");
        assert_eq!(name_hash("my-secret/key"), "43dcd792");
    }

    #[test]
    fn leading_zeros_are_left_out() {
        assert_eq!(name_hash("hooks/0"), "30f5850");
    }
}
