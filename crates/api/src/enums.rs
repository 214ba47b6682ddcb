//! Enums whose values are words of the API.

/// Declares an enum whose variants are written as the given texts, in manifests and by `as_str`.
///
/// The texts are stated once: serde, the schema and `as_str` all take them from here.
macro_rules! text_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $( $(#[$variant_meta:meta])* $variant:ident = $text:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash,
            serde::Deserialize, serde::Serialize, schemars::JsonSchema,
        )]
        pub enum $name {
            $( $(#[$variant_meta])* #[serde(rename = $text)] $variant, )+
        }

        impl $name {
            /// The word that manifests use.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $text, )+ }
            }
        }
    };
}

pub(crate) use text_enum;
